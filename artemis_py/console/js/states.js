// The words for how a queue is, from its numbers. Each has a sentence and a colour. Where there is a reason for it, they
// are those of `why`.

export const STUCK_MS = 30_000;
const STEADY = 0.03; // such a share of what flows is no trend

/** The fields that the words are made of. */
export const STATE_FIELDS = [
  "messageCount", "consumerCount", "deliveringCount", "scheduledCount", "pagedCount", "messagesAdded", "messagesAcked", "paused", "enabled", "sendersWait", "holdsDeadLetters",
];

/** Words for a row of a queue; `seen` is what its rates know, `now` the time in ms. */
export function words(row, seen, now) {
  const found = [];
  const say = (word, look, sentence) => found.push({ word, look, sentence });
  if (row.paused) say("paused", "warn", "It delivers nothing until it is resumed.");
  if (row.enabled === false) say("disabled", "bad", "It takes no messages.");
  if (row.sendersWait) say("queue-depth", "bad", "It is full: senders wait until messages leave.");
  if (row.messageCount > 0 && row.consumerCount === 0) {
    if (row.holdsDeadLetters) say("dead-letters", "warn", "Messages that could not be delivered, or expired, wait here.");
    else say("no-consumer", "bad", "Messages wait, and nobody takes them.");
  } else if (row.messageCount > 0 && row.messageCount === row.scheduledCount) {
    say("scheduled", "", "All messages wait for their time.");
  } else if (row.messageCount > 0 && row.deliveringCount >= row.messageCount && !(seen?.rates.messagesAcked > 0)) {
    say("held", "", "Consumers have all messages and have not settled them.");
  } else if (isStuck(row, seen, now)) {
    say("no-acknowledgements", "bad", "It has messages and consumers, and nothing was acknowledged lately.");
  }
  if (row.pagedCount > 0) say("paging", "warn", "Some messages are in pages on the disk.");
  if (found.length === 0) {
    const flows = (seen?.rates.messagesAcked ?? 0) > 0 || (seen?.rates.messagesAdded ?? 0) > 0;
    if (flows) say("flows", "good", "Messages come and go.");
    else if (row.messageCount > 0) say("waiting", "", "It has messages; nothing was acknowledged since this page looks.");
    else say("idle", "", "It is empty.");
  }
  return found;
}

function isStuck(row, seen, now) {
  if (row.messageCount === 0 || row.consumerCount === 0 || row.paused || seen === undefined) return false;
  return now - (seen.since.messagesAcked ?? now) >= STUCK_MS;
}

/** How long until it is empty, in ms; null: not known, or it stays as it is; Infinity: never. */
export function drainMs(row, seen) {
  if (row.messageCount === 0) return null;
  const { messagesAcked: out, messagesAdded: comes } = seen?.rates ?? {};
  if (out === undefined) return null;
  const net = out - (comes ?? 0);
  if (Math.abs(net) <= STEADY * Math.max(out, comes ?? 0)) return null;
  return net > 0 ? (row.messageCount / net) * 1000 : Infinity;
}
