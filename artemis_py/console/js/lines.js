// The command and the curl line that do the same as a button.

import { login, url } from "./api.js";
import { current } from "./brokers.js";
import { target } from "./description.js";

const USUAL_URL = "http://127.0.0.1:8161";

/** A word as a shell wants it. */
export function quoted(text) {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`;
}

/** `artemis-py queue pause orders`. */
export function commandLine(operation, given) {
  const words = ["artemis-py", operation.command];
  const options = [];
  for (const { name, required, schema, in: place } of operation.parameters) {
    const value = given[name];
    if (place === "body") continue; // the command asks for it
    if (place === "lines") words.push("FILE");
    else if (required) {
      words.push(quoted(value === undefined || value === "" ? name.toUpperCase() : String(value)));
    } else if (value === undefined || value === "") {
      continue;
    } else if (schema.type === "boolean") {
      options.push(value === true || value === "true" ? `--${name}` : `--no-${name}`);
    } else {
      for (const one of [value].flat().filter((text) => text !== "")) options.push(`--${name} ${quoted(String(one))}`);
    }
  }
  if (operation.destroys) options.push("--yes"); // a button has asked already
  if (current() !== USUAL_URL) options.push(`--url ${current()}`);
  if (login.user) options.push(`--user ${quoted(login.user)}`);
  return [...words, ...options].join(" ");
}

/** `curl -X POST 'http://…/api/queues/orders/pause'`, with names in the place of secrets. */
export function curlLine(operation, given) {
  const { path, query, body } = target(operation, given);
  const method = operation.method === "GET" ? "" : `-X ${operation.method} `;
  const user = login.user ? `-u ${quoted(login.user)} ` : "";
  const hidden = body && JSON.stringify(Object.fromEntries(Object.keys(body).map((name) => [name, name.toUpperCase()])));
  const data = body ? ` -H 'Content-Type: application/json' -d ${quoted(hidden)}` : operation.parameters.at(-1)?.in === "lines" ? " --data-binary @FILE" : "";
  return `curl ${method}${user}${quoted(current() + url(path, query))}${data}`;
}
