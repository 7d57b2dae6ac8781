// What a message of a queue passes before a consumer has it, and where it is stopped.

import { h } from "../js/dom.js";
import { count, duration, several } from "../js/format.js";
import { STUCK_MS } from "../js/states.js";

const MARKS = { good: "✓", bad: "✕", warn: "!" };
const NAMES = { good: "Passes: ", bad: "Stopped: ", warn: "Mind: " };

const gate = (look, text, then = null, key = text) =>
  h("li", { class: "gate", key }, h("span", { class: `mark ${look}` }, h("span", { class: "hidden" }, NAMES[look]), h("span", { "aria-hidden": "true" }, MARKS[look])), h("span", null, text), then && h("span", { class: "then" }, then));

/** The gates of a queue, from its numbers. */
export function gates(row, seen) {
  const ready = row.messageCount - row.deliveringCount - row.scheduledCount;
  const found = [];
  if (row.messageCount === 0) found.push(gate("good", "It is empty", "There is nothing to deliver."));
  else if (ready > 0) found.push(gate("good", `${several(ready, "message")} ready`, null, "ready"));
  if (row.deliveringCount > 0) found.push(gate(ready > 0 ? "good" : "warn", `${several(row.deliveringCount, "message")} in delivery`, "Consumers have them and have not settled them.", "delivering"));
  if (row.scheduledCount > 0) found.push(gate("warn", `${several(row.scheduledCount, "message")} scheduled`, "They wait for their time.", "scheduled"));
  found.push(row.paused ? gate("bad", "Paused", "It delivers nothing until it is resumed: press Resume.") : gate("good", "Not paused"));
  if (row.consumerCount === 0) found.push(gate(row.messageCount > 0 ? "bad" : "warn", "No consumer", "Start a client that subscribes to it."));
  else found.push(gate("good", several(row.consumerCount, "consumer"), null, "consumers"));
  const since = seen?.since.messagesAcked;
  const quiet = since === undefined ? 0 : seen.at - since;
  if (row.messageCount > 0 && row.consumerCount > 0 && quiet >= STUCK_MS) found.push(gate("bad", `Nothing acknowledged for ${duration(quiet)}`, "Look at the consumers below: do they read, and do they acknowledge?", "stuck"));
  if (row.pagedCount > 0) found.push(gate("warn", `${count(row.pagedCount)} in pages`, "They are read from the disk when there is room.", "paged"));
  if (row.sendersWait) found.push(gate("bad", "Senders wait", "It is full."));
  return h("ul", { class: "gates" }, found);
}
