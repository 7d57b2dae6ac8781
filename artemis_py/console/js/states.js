// The states of queues, which the broker decides (core/queue_states.py): each with a colour, a sentence, and what the
// overview says of such a queue.

import { h } from "./dom.js";
import { duration } from "./format.js";
import { chip } from "./parts.js";

const ACKS = "waits for acknowledgements";

export const STATES = {
  "step-failed": ["bad", "The broker paused it after an error.", "was paused after an error"],
  disabled: ["bad", "It accepts no messages.", "accepts no messages"],
  "queue-depth": ["bad", "It is full: senders wait, or are refused.", "is full"],
  "no-consumer": ["bad", "Messages wait for a consumer.", "has messages and no consumer"],
  "no-acknowledgements": ["bad", "Messages wait, and no consumer acknowledges any.", "gets no acknowledgements"],
  "falling-behind": ["bad", "More arrives than consumers acknowledge.", "falls behind"],
  growing: ["bad", "Messages arrive, and none is acknowledged.", "grows"],
  "will-be-full": ["bad", "At this rate a limit is reached."],
  paused: ["warn", "It delivers nothing until it is resumed.", "is paused"],
  "address-paused": ["warn", "It delivers nothing until its address is resumed.", "waits for its address to be resumed"],
  "consumers-before-dispatch": ["warn", "It waits for more consumers.", "waits for more consumers"],
  "dead-letters": ["warn", "It holds dead or expired messages.", "has dead letters"],
  "will-page": ["warn", "At this rate its address starts to page."],
  paging: ["warn", "Some messages are in pages on disk.", "has messages in pages"],
  "max-backlog": ["warn", "Consumers hold max-backlog messages.", ACKS],
  backlog: ["warn", "Each consumer holds its backlog.", ACKS],
  window: ["warn", "Consumer windows are full of unacknowledged messages.", ACKS],
  moving: ["", "Messages return to the queue."],
  kept: ["", "It keeps its messages and needs no consumer."],
  held: ["", "Consumers have all messages; none was acknowledged for half a minute."],
  scheduled: ["", "All messages are scheduled."],
  draining: ["good", "More is acknowledged than arrives."],
  flows: ["good", "Messages flow."],
  waiting: ["", "It has messages; none was acknowledged recently."],
  idle: ["", "It is empty."],
};

/** The fields that the words are made of. */
export const STATE_FIELDS = ["state", "timeUntilEmpty", "timeUntilLimit"];

export const grows = (row) => /growing|falling-behind/.test(row.state);

/** What is ahead at this rate, and when. */
export function ahead(row) {
  if (row.timeUntilLimit >= 0) return [row.state.includes("will-page") ? "Pages in" : "Full in", duration(row.timeUntilLimit)];
  if (row.timeUntilEmpty >= 0) return ["Drained in", duration(row.timeUntilEmpty)];
  return grows(row) ? ["Drained", "never"] : ["Steady", ""];
}

/** Its words as chips; in a table, without what another column says. */
export function states(row, inTable = false) {
  const words = row.state.split(",").filter((word) => !(inTable && word.startsWith("will-")));
  const shown = (word) => (/^will-|draining/.test(word) && !inTable ? ahead(row).join(" ").toLowerCase() : word.replaceAll("-", " "));
  return h("span", { class: "chips", title: words.map((word) => STATES[word]?.[1]).join(" ") }, words.map((word) => chip(shown(word), STATES[word]?.[0] ?? "", STATES[word]?.[1])));
}

/** What the overview says of a queue. */
export function said(row) {
  const [word] = row.state.split(",");
  const [look, sentence, short = sentence] = STATES[word] ?? ["warn", "", word];
  const when = row.timeUntilLimit >= 0 ? ` (${ahead(row).join(" ").toLowerCase()})` : "";
  return [look, `${short}${when}`];
}
