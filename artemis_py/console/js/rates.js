// What counters grow by in a second: what this page has seen, and what the broker has kept of the last hour.

import { get } from "./api.js";

const AGAIN_MS = 60_000;
const KEPT = 180;
const WEIGHT = 0.6;

/** Counters of many things by key. */
export class Rates {
  #seen = new Map();

  /** Notes the counters of a thing at a time in ms. */
  note(key, at, counters, depth = 0) {
    let one = this.#seen.get(key);
    if (one === undefined) {
      one = { at, counters, rates: {}, history: [] };
      this.#seen.set(key, one);
      return one;
    }
    const passed = (at - one.at) / 1000;
    if (passed < 0.4) return one;
    for (const [name, value] of Object.entries(counters)) {
      const grown = value - one.counters[name];
      const now = grown < 0 ? 0 : grown / passed;
      const before = one.rates[name];
      one.rates[name] = before === undefined || grown < 0 || now === 0 ? now : WEIGHT * now + (1 - WEIGHT) * before;
    }
    one.at = at;
    one.counters = counters;
    one.history.push({ at, depth, ...one.rates });
    if (one.history.length > KEPT) one.history.shift();
    return one;
  }

  of(key) {
    return this.#seen.get(key);
  }

  clear() {
    this.#seen.clear();
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
      // the page says what is wrong with what it shows; the curve begins with what is seen from now on
    }
  }

  /** All points: those of the broker, and behind them those that this page has seen. */
  with(seen = []) {
    const from = seen[0]?.at ?? Infinity;
    return [...this.#points.filter((one) => one.at < from), ...seen];
  }

  close() {
    clearInterval(this.timer);
    this.#stop.abort();
  }
}
