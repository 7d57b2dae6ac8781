// The words for how a queue is. The broker decides them from its trend and its consumers (core/queue_states.py); here
// each has a colour, a sentence, and what the overview says of such a queue.

import { h } from "./dom.js";
import { duration } from "./format.js";
import { chip } from "./parts.js";

export const STATES = {
  "step-failed": ["bad", "A step of it failed, and the broker paused it.", "was paused because a step failed"],
  disabled: ["bad", "It takes no messages.", "takes no messages"],
  "queue-depth": ["bad", "It is full: senders wait until messages leave.", "is full, and senders wait"],
  "no-consumer": ["bad", "Messages wait, and nobody takes them.", "has messages and no consumer"],
  "no-acknowledgements": ["bad", "Messages wait, and no consumer has acknowledged anything lately.", "gets no acknowledgements"],
  "falling-behind": ["bad", "More comes in than consumers acknowledge.", "falls behind"],
  growing: ["bad", "Messages come in, and none is acknowledged.", "grows"],
  "will-be-full": ["bad", "At this rate a limit is reached."],
  paused: ["warn", "It delivers nothing until it is resumed.", "is paused"],
  "address-paused": ["warn", "It delivers nothing until its address is resumed.", "waits for its address to be resumed"],
  "consumers-before-dispatch": ["warn", "It waits until enough consumers are there.", "waits for more consumers"],
  "dead-letters": ["warn", "Messages that could not be delivered, or expired, wait here.", "has dead letters"],
  "will-page": ["warn", "At this rate its address pages to the disk."],
  paging: ["warn", "Some messages are in pages on the disk.", "has messages in pages"],
  "max-backlog": ["warn", "As many messages as it allows are with consumers."],
  backlog: ["warn", "Its consumers hold as many messages as they may."],
  window: ["warn", "The windows of its consumers are full of messages that they have not acknowledged."],
  moving: ["", "Messages go back to their places."],
  kept: ["", "It keeps its messages: nobody has to take them."],
  held: ["", "Consumers have all messages and have not settled them."],
  scheduled: ["", "All messages wait for their time."],
  draining: ["good", "More is acknowledged than comes in."],
  flows: ["good", "Messages come and go."],
  waiting: ["", "It has messages; nothing was acknowledged lately."],
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
