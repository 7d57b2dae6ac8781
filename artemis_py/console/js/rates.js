// Rates: those that this page has measured, and those that the broker kept of the last hour.

import { get } from "./api.js";

const AGAIN_MS = 60_000;
const KEPT = 180;
const WEIGHT = 0.6;

/** What charts show. */
export const SERIES = [
  ["messagesAdded", "In", "in"],
  ["messagesAcked", "Out", "out"],
];

/** Counters of one thing: what each grows by in a second, and how it was. */
export class Rates {
  rates = {};
  history = [];
  #before = null;

  /** Notes the counters at a time in ms. */
  note(at, counters, depth) {
    const before = this.#before ?? (this.#before = { at, counters });
    const passed = (at - before.at) / 1000;
    if (passed < (this.history.length > 0 ? 0.4 : 3)) return; // the first time is inexact
    for (const [name, value] of Object.entries(counters)) {
      const grown = value - before.counters[name];
      const now = grown < 0 ? 0 : grown / passed;
      const last = this.rates[name];
      this.rates[name] = last === undefined || grown < 0 || now === 0 ? now : WEIGHT * now + (1 - WEIGHT) * last;
    }
    this.#before = { at, counters };
    this.history.push({ at, depth, ...this.rates });
    if (this.history.length > KEPT) this.history.shift();
  }
}

/** The last hour of a queue, or of the broker; `path` is that of its history. */
export class Past {
  #points = [];
  #stop = new AbortController();

  constructor(path, draw) {
    Object.assign(this, { path, draw });
    this.#look();
    this.timer = setInterval(() => document.hidden || this.#look(), AGAIN_MS);
  }

  async #look() {
    try {
      const { data } = await get(`/api/${this.path}`, {}, this.#stop.signal);
      const perSecond = (row, name) => (1000 * row[name]) / row.span;
      this.#points = data.map((row) => ({ at: row.at, depth: row.messageCount, messagesAdded: perSecond(row, "messagesAdded"), messagesAcked: perSecond(row, "messagesAcked") }));
      this.draw();
    } catch {
      // the curve begins now
    }
  }

  /** The broker's points, then those that this page has seen. */
  with(seen = []) {
    const from = seen[0]?.at ?? Infinity;
    return [...this.#points.filter((one) => one.at < from), ...seen];
  }

  close() {
    clearInterval(this.timer);
    this.#stop.abort();
  }
}
