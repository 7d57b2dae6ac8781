// A sentence about the broker, made of what several short lists say.

import { open, url } from "./api.js";
import { h } from "./dom.js";
import { several } from "./format.js";
import { link, to } from "./parts.js";

const FEW = 3;
const list = (path, where, fields, sort = null) => url(path, { where, sort, size: FEW, fields });

/** What the sentence asks for, by name. */
export const ASKED = {
  unconsumed: list("queues", ["messageCount>0", "consumerCount=0", "holdsDeadLetters=false"], "name,messageCount", "messageCount:desc"),
  paused: list("queues", ["paused=true"], "name"),
  waiting: list("connections", ["state=blocked"], "connectionID,clientID"),
  stalled: list("connections", ["state=stalled"], "connectionID,clientID"),
  full: list("addresses", ["addressLimitPercent>=80", "paging=false"], "name"),
  blocked: list("addresses", ["blocked=true"], "name"),
  paging: list("addresses", ["paging=true"], "name"),
  dead: list("queues", ["messageCount>0", "holdsDeadLetters=true"], "name,messageCount"),
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
function troubles(answers) {
  const found = [];
  const at = (name) => (answers[name]?.count > 0 ? answers[name] : null);
  const bad = (...nodes) => found.push(h("span", { class: "bad" }, nodes));
  const warn = (...nodes) => found.push(h("span", { class: "warn" }, nodes));
  const waiting = at("waiting");
  if (waiting) bad(link(`/connections?where=state%3Dblocked`, several(waiting.count, "client")), waiting.count === 1 ? " waits for room" : " wait for room");
  const unconsumed = at("unconsumed");
  if (unconsumed) {
    const one = named(unconsumed, "name", "queues");
    bad(one ?? link("/queues?show=No%20consumer", several(unconsumed.count, "queue")), one ? " has messages and no consumer" : " have messages and no consumer");
  }
  const full = at("full");
  if (full) bad(named(full, "name", "addresses") ?? link("/addresses?show=Nearly%20full", several(full.count, "address", "addresses")), full.count === 1 ? " is full, or nearly" : " are full, or nearly");
  const blocked = at("blocked");
  if (blocked) warn(named(blocked, "name", "addresses") ?? link("/addresses?show=Blocked", several(blocked.count, "address", "addresses")), blocked.count === 1 ? " is blocked" : " are blocked");
  const paused = at("paused");
  if (paused) warn(named(paused, "name", "queues") ?? link("/queues?show=Paused", several(paused.count, "queue")), paused.count === 1 ? " is paused" : " are paused");
  const stalled = at("stalled");
  if (stalled) warn(link("/connections?show=Stalled", several(stalled.count, "client")), stalled.count === 1 ? " does not read" : " do not read");
  const paging = at("paging");
  if (paging) warn(named(paging, "name", "addresses") ?? link("/addresses?show=Paging", several(paging.count, "address", "addresses")), paging.count === 1 ? " pages to the disk" : " page to the disk");
  const dead = at("dead");
  if (dead) warn(named(dead, "name", "queues") ?? link("/queues?show=Dead%20letters", several(dead.count, "queue")), dead.count === 1 ? " has dead letters" : " have dead letters");
  return found;
}

/** The sentence. `answers` by the names above; `ready` is what the health check says; `isThere`: does the broker answer? */
export function sentence(answers, ready, isThere) {
  if (!isThere) return h("p", { class: "sentence", id: "health" }, h("span", { class: "bad" }, "The broker does not answer."), " The console tries again by itself.");
  const begin = ready && !ready.isReady ? h("span", { class: "bad" }, `Takes no messages: ${ready.reason}.`) : "Taking messages.";
  const found = troubles(answers);
  const isKnown = Object.keys(ASKED).every((name) => answers[name] !== undefined);
  if (found.length === 0) {
    return h("p", { class: "sentence", id: "health" }, begin, " ", isKnown ? h("span", { class: "good" }, "No queue is stuck, and nobody waits.") : null);
  }
  const parts = found.flatMap((one, place) => [place === 0 ? null : place === found.length - 1 ? ", and " : ", ", one]);
  return h("p", { class: "sentence", id: "health" }, begin, " ", parts, ".");
}
