// The operations of this broker, from its OpenAPI description: those of a later version appear by themselves.

import { get } from "./api.js";
import { upper } from "./format.js";

export const operations = [];
const byId = new Map();
/** No operations: the stream of events, and messages sent and taken. */
const isOther = (described) => described["x-command"] === undefined || "text/event-stream" in (described.responses?.["200"]?.content ?? {});

/** Reads the description. */
export async function load(signal) {
  const found = await get("/api/openapi.json", {}, signal);
  operations.length = 0;
  byId.clear();
  for (const [path, methods] of Object.entries(found.paths)) {
    for (const [method, described] of Object.entries(methods)) {
      if (isOther(described)) continue;
      const operation = read(path, method.toUpperCase(), described);
      operations.push(operation);
      byId.set(operation.id, operation);
    }
  }
  return found.info;
}

function read(path, method, described) {
  const schema = described.responses?.["200"]?.content?.["application/json"]?.schema ?? {};
  const rows = schema.properties?.data?.items?.properties;
  const names = [...path.matchAll(/{([^}]+)}/g)].map((match) => match[1]);
  return {
    id: described.operationId,
    name: described.operationId.split(".").pop(),
    path,
    method,
    /** The parts of the path that name something: what it is on. */
    on: names,
    collection: path.split("/")[2] ?? "",
    sentence: (described.summary ?? "").replaceAll("`", ""),
    result: described.responses?.["200"]?.description ?? "",
    command: described["x-command"] ?? "",
    isChange: method !== "GET",
    /** What is lost for good, with names in braces; "": nothing. */
    destroys: described["x-destroys"] ?? "",
    parameters: [...(described.parameters ?? []), ...secretsOf(described), ...linesOf(described)],
    /** The fields of a row, or of the one thing that it shows. */
    fields: fieldsOf(rows ?? schema.properties),
    isList: rows !== undefined,
    isDownload: described.responses?.["200"] !== undefined && !("application/json" in (described.responses["200"].content ?? {})),
    /** May the stream of events tell what changes in its answer? */
    isWatchable: described["x-watchable"] === true,
  };
}

/** Passwords: they are in the body, because URLs are kept in logs. */
function secretsOf(described) {
  const { properties = {}, required = [] } = described.requestBody?.content?.["application/json"]?.schema ?? {};
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    in: "body",
    required: required.includes(name),
    description: schema.description ?? "",
    schema,
  }));
}

function linesOf({ requestBody: body }) {
  const schema = body?.content?.["application/jsonl"]?.schema;
  return schema ? [{ name: "lines", in: "lines", required: true, description: body.description, schema }] : [];
}

function fieldsOf(properties) {
  return Object.entries(properties ?? {}).map(([name, schema]) => ({
    name,
    type: [schema.type].flat()[0],
    sentence: schema.description ?? "",
    unit: schema["x-unit"] ?? "",
    isBrief: schema["x-brief"] === true,
  }));
}

export const operation = (id) => byId.get(id);

/** The operation of a method and path, or undefined. */
export const at = (method, path) => operations.find((one) => one.method === method && one.path === path);

/** The operation that answers a request, as pages want it. */
export function asked(text) {
  const parts = text.split("?")[0].split("/");
  return operations.find((one) => {
    const wanted = one.path.split("/").slice(2);
    return one.method === "GET" && wanted.length === parts.length && wanted.every((part, at) => part.startsWith("{") || part === parts[at]);
  });
}

/** Lists of their own. */
export const lists = () => operations.filter((one) => one.isList && one.method === "GET" && one.on.length === 0 && one.path.split("/").length === 3);

/** What changes something: `on` are the names in the path, such as `["queue"]`. */
export const changesOf = (...on) => operations.filter((one) => one.isChange && one.on.join() === on.join());

/** What reports about something, besides its own fields. */
export const reportsOf = (...on) => operations.filter((one) => !one.isChange && one.on.join() === on.join() && !one.path.endsWith(`{${on.at(-1)}}`));

/** What changes a collection as a whole, such as `queues`. */
export const changesOfAll = (collection) => operations.filter((one) => one.isChange && one.on.length === 0 && one.collection === collection);

/** Does it add to its collection? */
export const isCreator = (one) => one.method === "POST" && one.path === `/api/${one.collection}`;

/** Does it destroy something? Then the console asks twice. */
export const isDestructive = (one) => one.destroys !== "";

const LABELS = { "close-address": "Close connections from …", "close-user": "Close connections of …", "close-consumers": "Close consumers of …" };

/** What a button says: the last words of the command. */
export function label(one) {
  const all = one.command.split(" ");
  const words = (all[0] === "why" ? all : all.slice(1)).join(" ") || one.name;
  return LABELS[words] ?? upper(words).replaceAll("-", " ");
}

/** The path with its names filled in; the rest is the query, and secrets the body. */
export function target(one, given) {
  const query = {};
  let body, text;
  let path = one.path;
  for (const parameter of one.parameters) {
    const value = given[parameter.name];
    if (parameter.in === "path") {
      path = path.replace(`{${parameter.name}}`, encodeURIComponent(value ?? ""));
    } else if (value === undefined || value === "") {
      continue;
    } else if (parameter.in === "lines") {
      text = value;
    } else if (parameter.in === "body") {
      body = { ...body, [parameter.name]: value };
    } else {
      query[parameter.name] = value;
    }
  }
  return { path, query, body, text };
}
