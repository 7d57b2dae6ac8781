// What is on the screen. A page says what it wants, as requests without /api/; one stream of events tells changes of it.
// Without the stream, the broker is asked every two seconds.

import { Problem, get } from "./api.js";
import { asked } from "./description.js";
import { changed, follow, gathered } from "./events.js";

const POLL_MS = 2000;
const FIRST_POLL_MS = 800;
const TICK_MS = 1000;
const FRESH_MS = 3500;
const ASKED_BEATS = 5;
const SETTLE_MS = 250;
const PAUSE_MAX_MS = 4000;
const KEPT = 200;
const STREAM = "/api/events";

/** Can the stream tell of it? */
const isWatchable = (text) => asked(text)?.isWatchable ?? false;

export class Feed {
  /** connecting, live or lost. */
  status = "connecting";
  /** What has happened in the broker, the newest first. */
  notifications = [];
  #values = new Map();
  #times = new Map();
  #problems = new Map();
  #keys = new Map();
  #wanted = [];
  #failures = 0;
  #timer = null;
  #settling = null;
  #retry = null;
  #mayStream = true;
  #stream = null;
  #lastId = null;
  #round = 0;
  #over = new AbortController();

  /** `drawn()`: something has changed; `tick(now)`: a second or two have passed; `recovered()`: the broker answers
   * again. */
  constructor({ drawn, tick, recovered }) {
    Object.assign(this, { drawn, tick, recovered });
    document.addEventListener("visibilitychange", () => this.#looked(), { signal: this.#over.signal });
  }

  /** Asks nothing any more. */
  close() {
    this.#over.abort();
    clearTimeout(this.#settling);
    clearTimeout(this.#retry);
    this.#end();
    this.#wanted = [];
    this.drawn = this.tick = this.recovered = () => {};
  }

  value(text) {
    return this.#values.get(text);
  }

  /** When that was so: now, if no change was told recently. */
  time(text, now) {
    const told = this.#times.get(text) ?? now;
    return now - told < FRESH_MS ? told : now;
  }

  problem(text) {
    return this.#problems.get(text) ?? null;
  }

  /** From now on these are wanted, and nothing else. */
  want(texts) {
    if (texts.join("\n") === this.#wanted.join("\n")) return;
    const fresh = texts.filter((text) => !this.#wanted.includes(text));
    this.#wanted = texts;
    for (const known of [this.#values, this.#times, this.#problems, this.#keys]) {
      for (const text of known.keys()) if (!texts.includes(text)) known.delete(text);
    }
    if (fresh.length > 0 && this.status !== "lost") this.#ask(fresh);
    clearTimeout(this.#settling);
    this.#settling = setTimeout(() => this.#begin(), SETTLE_MS);
  }

  /** Something was changed from here: do not wait for the next look. */
  touch() {
    return this.#ask(this.#wanted);
  }

  #looked() {
    if (document.hidden) {
      this.#end();
    } else {
      this.touch();
      this.#begin();
    }
  }

  #end() {
    clearTimeout(this.#timer);
    this.#stream?.abort();
    this.#stream = null;
    this.#round += 1;
  }

  #begin() {
    this.#end();
    if (document.hidden || this.status === "lost") return;
    if (this.#mayStream) {
      this.#listen();
      this.#beat();
    } else {
      this.tick(Date.now());
      this.#poll(FIRST_POLL_MS);
    }
  }

  #poll(after_ms) {
    const round = this.#round;
    this.#timer = setTimeout(async () => {
      await this.#ask(this.#wanted);
      if (round !== this.#round || this.status === "lost") return;
      this.tick(Date.now());
      this.drawn();
      this.#poll(POLL_MS);
    }, after_ms);
  }

  #beat(beats = 1) {
    this.#timer = setTimeout(() => {
      if (beats % ASKED_BEATS === 0) this.#ask(this.#wanted.filter((text) => !isWatchable(text)));
      this.tick(Date.now());
      this.drawn();
      this.#beat(beats + 1);
    }, TICK_MS);
  }

  async #listen() {
    const stream = new AbortController();
    this.#stream = stream;
    try {
      const told = (kind, data, id) => stream === this.#stream && this.#told(kind, data, id);
      await follow(STREAM, { watch: this.#wanted.filter(isWatchable) }, { signal: stream.signal, lastId: this.#lastId, told });
    } catch (error) {
      if (stream.signal.aborted) return;
      if (error instanceof Problem && error.status !== 0) {
        this.#mayStream = error.status !== 403;
        this.#end();
        this.#poll(FIRST_POLL_MS); // too many listen already, or it is not allowed: ask instead
        return;
      }
    }
    if (stream === this.#stream) this.#lose();
  }

  #told(kind, data, id) {
    this.#lastId = id ?? this.#lastId;
    if (kind === "state") {
      this.#keys.set(data.watch, data.key);
      this.#note(data.watch, Array.isArray(data.data) ? data : data.data);
    } else if (kind === "changes") {
      const known = changed(this.#values.get(data.watch), { ...data, key: this.#keys.get(data.watch) });
      if (known === null || known === undefined) this.#ask([data.watch]);
      else this.#note(data.watch, known);
    } else if (kind === "problem") {
      this.#refuse(data.watch, new Problem(404, data.error));
    } else if (kind === "notification") {
      this.notifications = gathered(this.notifications, { ...data, id }, KEPT);
    }
    this.drawn();
  }

  #note(text, value) {
    if (!this.#wanted.includes(text)) return;
    this.#values.set(text, value);
    this.#times.set(text, Date.now());
    this.#problems.delete(text);
  }

  /** What was known of it does not hold any more. */
  #refuse(text, problem) {
    this.#values.delete(text);
    this.#problems.set(text, problem);
  }

  async #ask(texts) {
    await Promise.all(
      texts.map(async (text) => {
        try {
          this.#note(text, await get(`/api/${text}`));
          this.#found();
        } catch (error) {
          if (!(error instanceof Problem)) throw error;
          if (error.status === 0) this.#lose();
          else this.#refuse(text, error);
        }
      }),
    );
    this.drawn();
  }

  #found() {
    const wasLost = this.status === "lost";
    clearTimeout(this.#retry);
    this.#retry = null;
    this.#failures = 0;
    this.status = "live";
    if (!wasLost) return;
    this.recovered();
    this.#begin();
  }

  /** The broker is gone: try again, ever less often. */
  #lose() {
    if (this.#retry !== null) return;
    this.#end();
    this.status = "lost";
    this.#failures += 1;
    const again = () => {
      this.#retry = null;
      this.#ask(this.#wanted.slice(0, 1));
    };
    this.#retry = setTimeout(again, Math.min(PAUSE_MAX_MS, 250 * 2 ** this.#failures));
    this.drawn();
  }
}
