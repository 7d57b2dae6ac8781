// What counters grow by in a second, and how it was before: known only to this page, from what it has seen.

const KEPT = 180;
const WEIGHT = 0.6;

/** Counters of many things by key. */
export class Rates {
  #seen = new Map();

  /** Notes the counters of a thing at a time in ms. */
  note(key, at, counters, depth = 0) {
    let one = this.#seen.get(key);
    if (one === undefined) {
      one = { at, counters, rates: {}, history: [], since: {} };
      this.#seen.set(key, one);
      for (const name of Object.keys(counters)) one.since[name] = at;
      return one;
    }
    const passed = (at - one.at) / 1000;
    if (passed < 0.4) return one;
    for (const [name, value] of Object.entries(counters)) {
      const grown = value - one.counters[name];
      if (grown !== 0) one.since[name] = at;
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

  /** Only these are of interest now. */
  keep(keys) {
    for (const key of this.#seen.keys()) if (!keys.has(key)) this.#seen.delete(key);
  }

  clear() {
    this.#seen.clear();
  }
}
