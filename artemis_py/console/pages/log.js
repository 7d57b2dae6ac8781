// The log: its files, and the cursors of those who read it.

import { ask, url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { ago, bytes, count, date } from "../js/format.js";
import { asking, button, card, chip, empty, head, problemBox, tile } from "../js/parts.js";
import { shortTable } from "../js/table.js";

const SHOWN_MAX = 200;
const CURSORS = url("cursors", { size: SHOWN_MAX });
const day = (ms) => (ms > 0 ? date(ms).slice(0, 19) : "–");
const SEGMENTS = [
  { name: "number", title: "No.", width: "64px", isNumber: true, cell: (row) => String(row.segment) },
  { name: "state", title: "State", width: "90px", cell: (row) => (row.error ? chip("damaged", "bad", row.error) : row.current ? chip("current", "accent", "It is written to.") : chip("closed")) },
  { name: "lsn", title: "Records", width: "minmax(120px, 1fr)", isNumber: true, from: 700, sentence: "From the first lsn to the last", cell: (row) => `${row.firstLsn} – ${row.lastLsn}` },
  { name: "messages", title: "Messages", width: "84px", isNumber: true, sentence: "Messages that came", cell: (row) => count(row.messages) },
  { name: "first", title: "From", width: "158px", isNumber: true, from: 860, cell: (row) => day(row.firstTime) },
  { name: "last", title: "To", width: "158px", isNumber: true, from: 860, cell: (row) => day(row.lastTime) },
  { name: "size", title: "Size", width: "84px", isNumber: true, cell: (row) => bytes(row.bytes) },
  { name: "file", title: "File", width: "minmax(120px, 1.6fr)", from: 1180, cell: (row) => h("code", { title: row.name }, row.name) },
];

function cursorState(row) {
  if (row.overtaken) return chip("overtaken", "bad", "What it has not read is partly gone.");
  return row.holds ? chip("holds", "good", "Files are kept until it has read them.") : chip("lapsed", "warn", "It was not moved for too long, and keeps nothing any more.");
}

export class LogPage {
  title = "Log";
  #segments = null;
  #problem = null;

  constructor(app) {
    this.app = app;
    const remove = operation("removeLogCursor");
    this.columns = [
      { name: "name", title: "Name", width: "minmax(90px, 1fr)", cell: (row) => h("strong", { title: row.name }, row.name) },
      { name: "state", title: "State", width: "100px", cell: cursorState },
      { name: "lsn", title: "Has read to", width: "minmax(90px, 0.6fr)", isNumber: true, from: 560, cell: (row) => String(row.lsn) },
      { name: "lag", title: "Behind", width: "90px", isNumber: true, sentence: "How much of the log it has not read", cell: (row) => bytes(row.lag) },
      { name: "moved", title: "Moved", width: "110px", isNumber: true, from: 860, sentence: "How long ago", cell: (row) => ago(row.movedAt) },
      { name: "owner", title: "Reader", width: "minmax(100px, 1.6fr)", from: 1000, cell: (row) => h("span", { title: row.owner }, row.owner) },
      { name: "remove", title: "", width: "80px", from: 700, cell: (row) => remove && button("Remove", () => app.act(remove, { given: { cursor: row.name }, name: row.name }), "tiny danger") },
    ];
    this.#look();
  }

  async #look() {
    try {
      this.#segments = await ask("GET", "/api/log/segments", { query: { sort: "segment:desc", size: SHOWN_MAX } });
      this.#problem = null;
    } catch (error) {
      this.#problem = error;
    }
    this.app.draw();
  }

  wants() {
    return [CURSORS];
  }

  view() {
    return [
      head("Log", { sentence: "Every message and every acknowledgement is a record here. Programs read it over HTTP; a cursor says how far one has got.", actions: [button("Look again", () => this.#look())] }),
      this.#problem && (this.#problem.status === 409 ? empty("There is no log", this.#problem.message) : problemBox(this.#problem)),
      this.#segments ? this.#body(this.#segments) : !this.#problem && asking(),
    ];
  }

  #body({ data, count: total }) {
    const cursors = this.app.feed.value(CURSORS)?.data ?? [];
    const isAll = data.length === total;
    return [
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("Segments", count(total)),
        tile("Size", bytes(data.reduce((sum, one) => sum + one.bytes, 0)), { note: isAll ? null : `of the newest ${data.length}` }),
        tile("Written to", String(data[0]?.lastLsn ?? "–"), { note: "the last lsn" }),
        tile("Began", day(data.at(-1)?.firstTime), { note: isAll ? "nothing is older" : `of the newest ${data.length}` }),
        tile("Cursors", count(cursors.length)),
      ),
      card("Cursors", cursors.length === 0 ? empty("No cursors", "A cursor keeps log files until they are read.") : shortTable("Cursors", this.columns, cursors), { bare: true, note: String(cursors.length) }),
      card("Segments", shortTable("Segments", SEGMENTS, data, { key: (row) => row.segment }), { bare: true, note: isAll ? "the newest first" : `the newest ${data.length} of ${count(total)}` }),
    ];
  }
}
