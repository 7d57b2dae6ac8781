// A sentence about the broker, made of what several short lists say.

import { open, url } from "./api.js";
import { h } from "./dom.js";
import { several } from "./format.js";
import { link, to } from "./parts.js";
import { said } from "./states.js";

const FEW = 3;
const list = (path, where, fields) => url(path, { where, size: FEW, fields });

/** What the sentence asks for, by name. */
export const ASKED = {
  waiting: list("connections", ["state=blocked"], "connectionID"),
  stalled: list("connections", ["state=stalled"], "connectionID"),
  full: list("addresses", ["addressLimitPercent>=80", "paging=false"], "name,addressLimitPercent"),
  blocked: list("addresses", ["blocked=true"], "name"),
  bridges: list("bridges", ["state!=connected", "reason!="], "name,reason"),
};

/** What /health/ready says: `{isReady, reason, warnings}`; null if it may not be asked. */
export async function readiness(signal) {
  try {
    const { warnings } = await (await open("GET", "/health/ready", { signal })).json();
    return { isReady: true, warnings };
  } catch (error) {
    return error.status === 503 ? { isReady: false, reason: error.message } : null;
  }
}

/** Parts of the sentence, the worst first. */
function troubles(answers, worst) {
  const found = [];
  const say = (look, ...parts) => found.push(h("span", { class: look }, parts));
  const clients = (name, state, look, one, more) => {
    const { count = 0 } = answers[name] ?? {};
    if (count > 0) say(look, link(`/connections?where=state%3D${state}`, several(count, "client")), count === 1 ? one : more);
  };
  const addresses = (name, show, look, one, more) => {
    const { count = 0, data } = answers[name] ?? {};
    if (count === 1) say(look, link(to("addresses", data[0].name), data[0].name), one);
    if (count > 1) say(look, link(`/addresses?show=${encodeURIComponent(show)}`, several(count, "address", "addresses")), more);
  };
  clients("waiting", "blocked", "bad", " is blocked", " are blocked");
  const { count: cut = 0, data: [bridge] = [] } = answers.bridges ?? {};
  if (cut > 0) say("bad", link(to("list", "bridges", bridge.name), bridge.name), ` is a bridge without a connection (${bridge.reason})`);
  if (cut > 1) say("bad", link("/list/bridges", several(cut - 1, "more bridge")), cut > 2 ? " have none" : " has none");
  for (const row of worst.data.slice(0, FEW)) {
    const [look, words] = said(row);
    say(look, link(to("queues", row.name), row.name), ` ${words}`);
  }
  const more = worst.count - Math.min(FEW, worst.data.length);
  if (more > 0) say("warn", link("/queues?show=Need%20attention", several(more, "more queue")), more === 1 ? " needs attention" : " need attention");
  addresses("full", "Nearly full", "bad", answers.full?.data[0]?.addressLimitPercent < 100 ? " is nearly full" : " is full", " are nearly full");
  addresses("blocked", "Blocked", "warn", " is blocked", " are blocked");
  clients("stalled", "stalled", "warn", " does not read", " do not read");
  return found;
}

/** The sentence. `answers` by the names above; `worst`: the queues that need attention, the worst first; `ready` is what the
 * health check says; `isThere`: does the broker answer? */
export function sentence(answers, worst, ready, isThere) {
  const say = (...parts) => h("p", { class: "sentence", id: "health" }, parts);
  if (!isThere) return say(h("span", { class: "bad" }, "The broker does not answer."), " The console keeps trying.");
  const begin = ready && !ready.isReady ? h("span", { class: "bad" }, `Accepting no messages: ${ready.reason}.`) : "Accepting messages.";
  const found = troubles(answers, worst ?? { count: 0, data: [] });
  const isKnown = worst !== undefined && Object.keys(ASKED).every((name) => answers[name] !== undefined);
  if (found.length === 0) return say(begin, " ", isKnown ? h("span", { class: "good" }, "No queue needs attention, and no client waits.") : h("span", { class: "soft" }, "Checking the rest…"));
  return say(begin, " ", found.flatMap((one, place) => [place === 0 ? null : place === found.length - 1 ? ", and " : ", ", one]), ".");
}
