// Server-sent events, read with fetch: so the login goes with the request.

import { open } from "./api.js";

/** Reads the response of a path until it ends or is given up; `told(kind, data, id)` hears each event. */
export async function follow(path, query, { signal, lastId, told }) {
  const response = await open("GET", path, { query, signal, more: lastId ? { "Last-Event-ID": lastId } : {} });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) tell(part, told);
  }
}

function tell(text, told) {
  const event = { event: "message", data: [], id: null };
  for (const line of text.split("\n")) {
    if (line === "" || line.startsWith(":")) continue;
    const at = line.indexOf(":");
    const name = at < 0 ? line : line.slice(0, at);
    const value = at < 0 ? "" : line.slice(at + 1).replace(/^ /, "");
    if (name === "data") event.data.push(value);
    else if (name in event) event[name] = value;
  }
  if (event.data.length > 0) told(event.event, JSON.parse(event.data.join("\n")), event.id);
}

/** What is known, with changes; null if they do not fit. */
export function changed(known, told) {
  if (told.data === undefined || !Array.isArray(known?.data)) return known && { ...known, ...told.data };
  const rows = new Map(known.data.map((row) => [row[told.key], row]));
  for (const row of told.data) rows.set(row[told.key], { ...rows.get(row[told.key]), ...row });
  const order = told.order ?? known.data.map((row) => row[told.key]);
  const data = order.map((key) => rows.get(key));
  if (data.includes(undefined)) return null;
  return { ...known, count: told.count ?? known.count, data };
}

/** Repeated for one queue, address or user. */
const REPEATED = /^MESSAGE|^LIMIT|^LEASES|^ALERT|FULL$|BLOCKED$|HELD_UP$|_SLOW$|VIOLATION$/;
const about = ({ type, queue, routingName, address, user }) => `${type} ${queue ?? routingName ?? address ?? user ?? ""}`;

/** Events, newest first, with another one. Repeated ones are one, with `times` and `since`; `count` adds up. */
export function gathered(known, event, most) {
  const at = REPEATED.test(event.type) ? known.findIndex((one) => about(one) === about(event)) : -1;
  if (at < 0) return [event, ...known].slice(0, most);
  const { times = 1, count = times, since, at: first, id } = known[at];
  const isCounted = event.count !== undefined || known[at].count !== undefined;
  const sum = isCounted ? { count: count + (event.count ?? 1) } : {};
  return [{ ...event, ...sum, id, times: times + 1, since: since ?? first }, ...known.filter((_, place) => place !== at)];
}
