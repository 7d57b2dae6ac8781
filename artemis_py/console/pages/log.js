// The log: its files, and the cursors of those who read it.

import { attempt, get, url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { ago, bytes, count, date } from "../js/format.js";
import { asking, button, card, chip, empty, head, problemBox, tile } from "../js/parts.js";
import { shortTable } from "../js/table.js";

const SHOWN_MAX = 200;
const CURSORS = url("cursors", { size: SHOWN_MAX });
const day = (ms) => (ms > 0 ? date(ms).slice(0, 19) : "–");
const SEGMENTS = [
  { name: "number", title: "No.", width: 64, isNumber: true, cell: (row) => String(row.segment) },
  { name: "state", width: 90, cell: (row) => (row.error ? chip("damaged", "bad", row.error) : row.current ? chip("current", "accent", "The broker writes to it.") : chip("closed")) },
  { name: "lsn", title: "Records", width: [120, 1], isNumber: true, from: 700, sentence: "From the first lsn to the last", cell: (row) => `${row.firstLsn} – ${row.lastLsn}` },
  { name: "messages", width: 84, isNumber: true, sentence: "Messages received" },
  { name: "first", title: "From", width: 158, isNumber: true, from: 860, cell: (row) => day(row.firstTime) },
  { name: "last", title: "To", width: 158, isNumber: true, from: 860, cell: (row) => day(row.lastTime) },
  { name: "size", width: 84, isNumber: true, cell: (row) => bytes(row.bytes) },
  { name: "file", width: [120, 1.6], from: 1180, cell: (row) => h("code", { title: row.name }, row.name) },
];

function cursorState(row) {
  if (row.overtaken) return chip("overtaken", "bad", "Part of what it has not read is deleted.");
  return row.holds ? chip("holds", "good", "It keeps files until they are read.") : chip("lapsed", "warn", "Unmoved for too long: it keeps no files.");
}

export class LogPage {
  title = "Log";
  #segments = null;
  problem = null;

  constructor(app) {
    this.app = app;
    const remove = operation("removeLogCursor");
    this.columns = [
      { name: "name", width: [90, 1], cell: (row) => h("strong", { title: row.name }, row.name) },
      { name: "state", width: 100, cell: cursorState },
      { name: "lsn", title: "Has read to", width: [90, 0.6], isNumber: true, from: 560, cell: (row) => String(row.lsn) },
      { name: "lag", title: "Behind", width: 90, isNumber: true, sentence: "Unread part of the log", cell: (row) => bytes(row.lag) },
      { name: "moved", width: 110, isNumber: true, from: 860, sentence: "How long ago", cell: (row) => ago(row.movedAt) },
      { name: "owner", title: "Reader", width: [100, 1.6], from: 1000, cell: (row) => h("span", { title: row.owner }, row.owner) },
      { name: "remove", title: "", width: 80, from: 700, cell: (row) => remove && button("Remove", () => app.act(remove, { given: { cursor: row.name }, name: row.name }), "tiny danger") },
    ];
    this.#look();
  }

  #look() {
    return attempt(this, async () => (this.#segments = await get("/api/log/segments", { sort: "segment:desc", size: SHOWN_MAX })));
  }

  wants() {
    return [CURSORS];
  }

  view() {
    return [
      head("Log", { sentence: "Messages and acknowledgements as records. Programs read them over HTTP; a cursor is the position of one.", actions: [button("Refresh", () => this.#look())] }),
      this.problem && (this.problem.status === 409 ? empty("No log", this.problem.message) : problemBox(this.problem)),
      this.#segments ? this.#body(this.#segments) : !this.problem && asking(),
    ];
  }

  #body({ data, count: total }) {
    const cursors = this.app.feed.value(CURSORS)?.data ?? [];
    const isAll = data.length === total;
    const began = day(data.at(-1)?.firstTime);
    return [
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("Segments", count(total)),
        tile("Size", bytes(data.reduce((sum, one) => sum + one.bytes, 0)), { note: isAll ? null : `of the newest ${data.length}` }),
        tile("Written to", String(data[0]?.lastLsn ?? "–"), { note: "the last lsn" }),
        tile(isAll ? "Oldest record" : `The newest ${data.length} began`, began.slice(0, 10), { note: began.slice(11) }),
        tile("Cursors", count(cursors.length)),
      ),
      card("Cursors", cursors.length === 0 ? empty("No cursors", "A cursor keeps log files until they are read.") : shortTable("Cursors", this.columns, cursors), { bare: true, note: String(cursors.length) }),
      card("Segments", shortTable("Segments", SEGMENTS, data, { key: (row) => row.segment }), { bare: true, note: isAll ? "newest first" : `the newest ${data.length} of ${count(total)}` }),
    ];
  }
}
