// The log: its files, and the cursors of those who read it.

import { get } from "../js/api.js";
import { h } from "../js/dom.js";
import { anyTable } from "../js/any.js";
import { bytes, count, title } from "../js/format.js";
import { button, card, empty, head, problemBox, tile } from "../js/parts.js";

const SHOWN_MAX = 200;

export class LogPage {
  title = "Log";
  #stop = new AbortController();
  #log = null;
  #cursors = [];
  #problem = null;

  constructor(app) {
    this.app = app;
    this.#look();
  }

  async #look() {
    try {
      const [log, { cursors }] = await Promise.all([get("/log", {}, this.#stop.signal), get("/log/cursors", {}, this.#stop.signal)]);
      this.#log = log;
      this.#cursors = cursors;
      this.#problem = null;
    } catch (error) {
      this.#problem = error;
    }
    this.app.draw();
  }

  view() {
    const log = this.#log;
    return [
      head("Log", { sentence: "Every message and every acknowledgement is a record here. Programs read it over HTTP; a cursor says how far one has got.", actions: button("Look again", () => this.#look()) }),
      this.#problem && (this.#problem.status === 404 ? empty("There is no log", this.#problem.message) : problemBox(this.#problem)),
      log && this.#body(log),
    ];
  }

  #body(log) {
    const segments = log.segments ?? [];
    const size = segments.reduce((sum, one) => sum + (one.size ?? one.bytes ?? one.size_bytes ?? 0), 0);
    const plain = Object.entries(log).filter(([, value]) => typeof value !== "object");
    return [
      h("div", { class: "tiles", key: "tiles" }, tile("Segments", count(segments.length)), tile("Size", bytes(size)), tile("Cursors", count(this.#cursors.length)), plain.filter(([name]) => /lsn/.test(name)).map(([name, value]) => tile(title(name), String(value)))),
      card("Cursors", this.#cursors.length === 0 ? empty("Nobody keeps a cursor", "A reader that does keeps files from being deleted until it has read them.") : anyTable("Cursors", this.#cursors), { bare: true, note: String(this.#cursors.length) }),
      card("Segments", anyTable("Segments", segments.slice(-SHOWN_MAX).reverse()), { bare: true, note: "the newest first" }),
    ];
  }
}
