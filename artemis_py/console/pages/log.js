// The log: its files, and the cursors of those who read it.

import { get } from "../js/api.js";
import { h } from "../js/dom.js";
import { ago, bytes, count, date, several, title } from "../js/format.js";
import { button, card, chip, empty, head, problemBox, tile } from "../js/parts.js";
import { shortTable } from "../js/table.js";

const SHOWN_MAX = 200;
const day = (ms) => (ms > 0 ? date(ms).slice(0, 19) : "–");
const SEGMENTS = [
  { name: "number", title: "No.", width: "64px", isNumber: true, cell: (row) => String(row.segment) },
  { name: "state", title: "State", width: "90px", cell: (row) => (row.error ? chip("damaged", "bad", row.error) : row.is_current ? chip("current", "accent", "It is written to.") : chip("closed")) },
  { name: "lsn", title: "Records", width: "minmax(120px, 1fr)", isNumber: true, from: 700, sentence: "From the first lsn to the last", cell: (row) => (row.error ? "–" : `${row.first_lsn} – ${row.last_lsn}`) },
  { name: "messages", title: "Messages", width: "84px", isNumber: true, sentence: "Messages that came", cell: (row) => count(row.messages) },
  { name: "first", title: "From", width: "158px", isNumber: true, from: 860, cell: (row) => day(row.first_ms) },
  { name: "last", title: "To", width: "158px", isNumber: true, from: 860, cell: (row) => day(row.last_ms) },
  { name: "size", title: "Size", width: "84px", isNumber: true, cell: (row) => bytes(row.bytes) },
  { name: "file", title: "File", width: "minmax(120px, 1.6fr)", from: 1180, cell: (row) => h("code", { title: row.name }, row.name) },
];
const CURSORS = [
  { name: "name", title: "Name", width: "minmax(90px, 1fr)", cell: (row) => h("strong", null, row.name) },
  { name: "state", title: "State", width: "110px", cell: (row) => (row.is_overtaken ? chip("overtaken", "bad", "What it has not read is partly gone.") : row.holds ? chip("holds", "good", "Files are kept until it has read them.") : chip("expired", "warn", "It was not moved for too long, and keeps nothing any more.")) },
  { name: "lsn", title: "Has read to", width: "minmax(90px, 0.8fr)", isNumber: true, cell: (row) => String(row.lsn) },
  { name: "behind", title: "Behind", width: "90px", isNumber: true, sentence: "How much of the log it has not read", cell: (row) => bytes(row.lag_bytes) },
  { name: "moved", title: "Moved", width: "110px", isNumber: true, from: 860, sentence: "How long ago", cell: (row) => ago(row.moved_ms) },
  { name: "owner", title: "Reader", width: "minmax(100px, 1.6fr)", from: 1000, cell: (row) => h("span", { title: row.owner }, row.owner) },
];

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
      head("Log", { sentence: "Every message and every acknowledgement is a record here. Programs read it over HTTP; a cursor says how far one has got.", actions: [button("Look again", () => this.#look())] }),
      this.#problem && (this.#problem.status === 404 ? empty("There is no log", this.#problem.message) : problemBox(this.#problem)),
      log && this.#body(log),
    ];
  }

  #body(log) {
    const segments = log.segments ?? [];
    const size = segments.reduce((sum, one) => sum + (one.bytes ?? 0), 0);
    const plain = Object.entries(log).filter(([, value]) => typeof value !== "object");
    return [
      h("div", { class: "tiles", key: "tiles" }, tile("Segments", count(segments.length)), tile("Size", bytes(size)), tile("Cursors", count(this.#cursors.length)), plain.filter(([name]) => /lsn/.test(name)).map(([name, value]) => tile(title(name), String(value)))),
      card("Cursors", this.#cursors.length === 0 ? empty("Nobody keeps a cursor", "A reader that does keeps files from being deleted until it has read them.") : shortTable("Cursors", CURSORS, this.#cursors), { bare: true, note: String(this.#cursors.length) }),
      card("Segments", shortTable("Segments", SEGMENTS, segments.slice(-SHOWN_MAX).reverse(), { key: (row) => row.segment }), { bare: true, note: segments.length > SHOWN_MAX ? `the newest ${SHOWN_MAX} of ${several(segments.length, "file")}` : "the newest first" }),
    ];
  }
}
