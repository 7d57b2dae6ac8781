// A sentence about the broker, made of what several short lists say.

import { open, url } from "./api.js";
import { h } from "./dom.js";
import { several } from "./format.js";
import { link, to } from "./parts.js";
import { said } from "./states.js";

const FEW = 3;
const list = (path, where, fields, sort = null) => url(path, { where, sort, size: FEW, fields });

/** What the sentence asks for, by name. */
export const ASKED = {
  waiting: list("connections", ["state=blocked"], "connectionID,clientID"),
  stalled: list("connections", ["state=stalled"], "connectionID,clientID"),
  full: list("addresses", ["addressLimitPercent>=80", "paging=false"], "name"),
  blocked: list("addresses", ["blocked=true"], "name"),
};

/** What /health/ready says: `{isReady, reason, warnings}`; null if it may not be asked. */
export async function readiness(signal) {
  try {
    const answer = await (await open("GET", "/health/ready", { signal })).json();
    return { isReady: true, reason: null, warnings: answer.warnings ?? [] };
  } catch (error) {
    if (error.status === 503) return { isReady: false, reason: error.message, warnings: [] };
    return null;
  }
}

function named(rows, name, path) {
  if (rows.count !== 1) return null;
  const row = rows.data[0];
  return row === undefined ? null : link(to(path, row[name]), String(row[name]));
}

/** Parts of the sentence, the worst first: each is a list of nodes. */
function troubles(answers, worst) {
  const found = [];
  const at = (name) => (answers[name]?.count > 0 ? answers[name] : null);
  const bad = (...nodes) => found.push(h("span", { class: "bad" }, nodes));
  const warn = (...nodes) => found.push(h("span", { class: "warn" }, nodes));
  const waiting = at("waiting");
  if (waiting) bad(link(`/connections?where=state%3Dblocked`, several(waiting.count, "client")), waiting.count === 1 ? " waits for room" : " wait for room");
  for (const row of worst.data.slice(0, FEW)) {
    const [look, words] = said(row);
    found.push(h("span", { class: look }, link(to("queues", row.name), row.name), ` ${words}`));
  }
  const more = worst.count - Math.min(FEW, worst.data.length);
  if (more > 0) warn(link("/queues?show=Need%20a%20look", `${more} more ${more === 1 ? "queue" : "queues"}`), more === 1 ? " needs a look" : " need a look");
  const full = at("full");
  if (full) bad(named(full, "name", "addresses") ?? link("/addresses?show=Nearly%20full", several(full.count, "address", "addresses")), full.count === 1 ? " is full, or nearly" : " are full, or nearly");
  const blocked = at("blocked");
  if (blocked) warn(named(blocked, "name", "addresses") ?? link("/addresses?show=Blocked", several(blocked.count, "address", "addresses")), blocked.count === 1 ? " is blocked" : " are blocked");
  const stalled = at("stalled");
  if (stalled) warn(link("/connections?show=Stalled", several(stalled.count, "client")), stalled.count === 1 ? " does not read" : " do not read");
  return found;
}

/** The sentence. `answers` by the names above; `worst`: the queues that need a look, the worst first; `ready` is what the
 * health check says; `isThere`: does the broker answer? */
export function sentence(answers, worst, ready, isThere) {
  if (!isThere) return h("p", { class: "sentence", id: "health" }, h("span", { class: "bad" }, "The broker does not answer."), " The console tries again by itself.");
  const begin = ready && !ready.isReady ? h("span", { class: "bad" }, `Takes no messages: ${ready.reason}.`) : "Taking messages.";
  const found = troubles(answers, worst ?? { count: 0, data: [] });
  const isKnown = worst !== undefined && Object.keys(ASKED).every((name) => answers[name] !== undefined);
  if (found.length === 0) {
    return h("p", { class: "sentence", id: "health" }, begin, " ", isKnown ? h("span", { class: "good" }, "No queue is stuck, and nobody waits.") : h("span", { class: "soft" }, "Asking about the rest…"));
  }
  const parts = found.flatMap((one, place) => [place === 0 ? null : place === found.length - 1 ? ", and " : ", ", one]);
  return h("p", { class: "sentence", id: "health" }, begin, " ", parts, ".");
}
