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
  const clients = (name, state, look, one, more) => {
    const { count = 0 } = answers[name] ?? {};
    if (count > 0) found.push(h("span", { class: look }, link(`/connections?where=state%3D${state}`, several(count, "client")), count === 1 ? one : more));
  };
  const addresses = (name, show, look, one, more) => {
    const { count = 0, data } = answers[name] ?? {};
    if (count === 0) return;
    const about = count === 1 ? link(to("addresses", data[0].name), data[0].name) : link(`/addresses?show=${encodeURIComponent(show)}`, several(count, "address", "addresses"));
    found.push(h("span", { class: look }, about, count === 1 ? one : more));
  };
  clients("waiting", "blocked", "bad", " is blocked", " are blocked");
  for (const row of worst.data.slice(0, FEW)) {
    const [look, words] = said(row);
    found.push(h("span", { class: look }, link(to("queues", row.name), row.name), ` ${words}`));
  }
  const more = worst.count - Math.min(FEW, worst.data.length);
  if (more > 0) found.push(h("span", { class: "warn" }, link("/queues?show=Need%20attention", `${more} more ${more === 1 ? "queue" : "queues"}`), more === 1 ? " needs attention" : " need attention"));
  addresses("full", "Nearly full", "bad", answers.full?.data[0]?.addressLimitPercent < 100 ? " is nearly full" : " is full", " are nearly full");
  addresses("blocked", "Blocked", "warn", " is blocked", " are blocked");
  clients("stalled", "stalled", "warn", " does not read", " do not read");
  return found;
}

/** The sentence. `answers` by the names above; `worst`: the queues that need attention, the worst first; `ready` is what the
 * health check says; `isThere`: does the broker answer? */
export function sentence(answers, worst, ready, isThere) {
  if (!isThere) return h("p", { class: "sentence", id: "health" }, h("span", { class: "bad" }, "The broker does not answer."), " The console keeps trying.");
  const begin = ready && !ready.isReady ? h("span", { class: "bad" }, `Accepting no messages: ${ready.reason}.`) : "Accepting messages.";
  const found = troubles(answers, worst ?? { count: 0, data: [] });
  const isKnown = worst !== undefined && Object.keys(ASKED).every((name) => answers[name] !== undefined);
  if (found.length === 0) {
    return h("p", { class: "sentence", id: "health" }, begin, " ", isKnown ? h("span", { class: "good" }, "No queue needs attention, and no client waits.") : h("span", { class: "soft" }, "Checking the rest…"));
  }
  const parts = found.flatMap((one, place) => [place === 0 ? null : place === found.length - 1 ? ", and " : ", ", one]);
  return h("p", { class: "sentence", id: "health" }, begin, " ", parts, ".");
}
