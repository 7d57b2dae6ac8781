// A table of any length: the broker filters, sorts and pages; only visible rows are asked for and drawn.

import { h } from "./dom.js";
import { count, title, value } from "./format.js";

const ROW_PX = 38;
const HEAD_PX = 36;
const CHUNK = 100;
const BEYOND = 6;
const HEIGHT_MAX_PX = 12_000_000;

const look = (column) => `cell${column.isNumber ? " number" : ""}`;

/** By which field a column sorts: by its own (`true`), by another, or by none. */
const sortOf = ({ name, sort }) => (sort === true ? name : sort);

/** The columns for which the window has room, and their widths. */
function fitting(columns) {
  const track = (width = [80, 1]) => (width.length === 2 ? `minmax(${width[0]}px, ${width[1]}fr)` : typeof width === "number" ? `${width}px` : width);
  const usual = ({ name, isNumber }) => ({ title: title(name), cell: (row) => (isNumber ? count(row[name], true) : (row[name] ?? "–")) });
  const shown = columns.filter(({ from = 0 }) => innerWidth >= from).map((column) => ({ ...usual(column), ...column }));
  return [shown, shown.map((column) => track(column.width)).join(" ")];
}

/** The fields that columns need, as a request has them. */
export const fieldsOf = (columns) => [...new Set(columns.flatMap(({ name, fields = [name] }) => fields))].join(",");

/** A column for a field of the description. */
export function fieldColumn(field) {
  const isText = field.type === "string";
  return {
    name: field.name,
    sentence: field.sentence,
    width: [9 * Math.max(10, ...title(field.name).split(" ").map((word) => word.length)), isText ? 1 : 0.8],
    isNumber: field.type === "integer",
    cell: (row) => h("span", isText ? { class: "wraps" } : null, value(row[field.name], field.unit, field.name)),
  };
}

/** Columns are `{name, title, cell(row), width, isNumber, sort, from, fields}`: `width` in px, `[px at least, share]` or as
 * CSS has it; `from` the width of the window in px from which on a column is shown; `fields` what it needs, if not its name. `request(page, size, sort)` is the text that the feed is asked for. */
export class Table {
  cursor = -1;
  sort = "";
  #element = null;
  #first = 0;
  #shown = 20;
  #count = null;

  constructor({ label, one, several = `${one}s`, columns, request, feed, open = null, sort = "", again, empty, narrowest = null }) {
    Object.assign(this, { label, one, several, columns, request, feed, open, sort, again, empty, narrowest });
  }

  /** The requests whose answers have the rows that are seen. */
  wants() {
    const from = Math.floor(this.#first / CHUNK);
    const to = Math.floor(Math.max(this.#first, Math.min((this.count ?? 1) - 1, this.#first + this.#shown - 1)) / CHUNK);
    return Array.from({ length: to - from + 1 }, (_, at) => this.request(from + at + 1, CHUNK, this.sort));
  }

  /** How many rows there are; null: not known yet. */
  get count() {
    const first = this.request(Math.floor(this.#first / CHUNK) + 1, CHUNK, this.sort);
    this.#count = this.feed.value(first)?.count ?? this.#count;
    return this.#count;
  }

  get problem() {
    return this.wants().map((text) => this.feed.problem(text)).find((one) => one !== null) ?? null;
  }

  get #end() {
    return Math.min(this.count ?? 0, this.#first + this.#shown);
  }

  row(at) {
    return this.feed.value(this.request(Math.floor(at / CHUNK) + 1, CHUNK, this.sort))?.data[at % CHUNK];
  }

  /** What is wanted has changed: begin at the top. */
  reset() {
    this.cursor = -1;
    this.#count = null;
    this.#first = 0;
    if (this.#element) this.#element.scrollTop = 0;
    this.again();
  }

  /** Moves the cursor by some rows. */
  move(by) {
    if (!this.count) return;
    this.cursor = Math.max(0, Math.min(this.count - 1, this.cursor + by));
    const top = this.cursor * ROW_PX;
    const element = this.#element;
    if (element !== null && element.clientHeight > 0) {
      const room = element.clientHeight - HEAD_PX;
      if (top < element.scrollTop) element.scrollTop = top;
      else if (top + ROW_PX > element.scrollTop + room) element.scrollTop = top + ROW_PX - room;
    }
    this.again();
  }

  openCursor() {
    const row = this.row(this.cursor);
    if (row !== undefined) this.open?.(row);
  }

  keys() {
    return {
      j: [() => this.move(1), "Next row"],
      k: [() => this.move(-1), "Previous row"],
      Enter: [() => this.openCursor(), "Open the row"],
      G: [() => this.move(Infinity), "Last row"],
    };
  }

  #sortBy(column) {
    const [by, order = "asc"] = this.sort.split(":");
    const own = sortOf(column);
    const first = column.first ?? (column.isNumber ? "desc" : "asc");
    const second = first === "desc" ? "asc" : "desc";
    if (by !== own) this.sort = `${own}:${first}`;
    else this.sort = order === first ? `${own}:${second}` : "";
    this.reset();
  }

  #scrolled() {
    const element = this.#element;
    const first = Math.max(0, Math.floor(element.scrollTop / ROW_PX) - BEYOND);
    const shown = Math.ceil(element.clientHeight / ROW_PX) + 2 * BEYOND;
    if (first === this.#first && shown === this.#shown) return;
    this.#first = first;
    this.#shown = shown;
    this.again();
  }

  #mounted(element) {
    this.#element = element;
    const sized = new ResizeObserver(() => this.#scrolled());
    sized.observe(element);
    return () => {
      sized.disconnect();
      this.#element = null;
    };
  }

  view() {
    const [columns, template] = fitting(this.columns);
    const rows = [];
    for (let at = this.#first; at < this.#end; at += 1) rows.push(this.#rowView(at, columns));
    const isEmpty = this.count === 0;
    const height = Math.min(HEIGHT_MAX_PX, (this.count ?? 0) * ROW_PX);
    const foots = [
      h("span", { role: "status" }, this.count === null ? "Loading…" : count(this.count), this.count !== null && ` ${this.count === 1 ? this.one : this.several}`),
      h("span", { class: "hint" }, h("kbd", null, "j"), " ", h("kbd", null, "k"), " move, ", h("kbd", null, "Enter"), " opens"),
    ];
    return h(
      "div",
      { class: "table fills", key: "table", style: { "--template": template, ...(this.narrowest ? { "--narrowest": this.narrowest } : {}) } },
      h(
        "div",
        { class: "rows", role: "grid", "aria-label": this.label, "aria-rowcount": (this.count ?? 0) + 1, tabindex: "0", onscroll: () => this.#scrolled(), mount: (element) => this.#mounted(element) },
        h("div", { class: "row row-head", role: "row", "aria-rowindex": 1, key: "head" }, columns.map((column) => this.#headView(column))),
        isEmpty ? h("div", { key: "empty" }, this.empty()) : h("div", { class: "space", role: "rowgroup", key: "rows", style: { height: `${height}px` } }, rows),
      ),
      h("div", { class: "table-foot soft small" }, foots),
    );
  }

  #headView(column) {
    const [by, order] = this.sort.split(":");
    const isSorted = by === sortOf(column);
    const sorting = isSorted ? (order === "desc" ? "descending" : "ascending") : null;
    return h(
      "div",
      { class: look(column), role: "columnheader", "aria-sort": sorting, key: column.name, title: column.sentence ?? null },
      column.sort
        ? h("button", { type: "button", class: "sort", "data-order": isSorted ? order || "asc" : null, onclick: () => this.#sortBy(column) }, column.title, h("span", { class: "arrow", "aria-hidden": "true" }, order === "desc" ? "▼" : "▲"))
        : column.title,
    );
  }

  #rowView(at, columns) {
    const row = this.row(at);
    const place = { transform: `translateY(${at * ROW_PX}px)` };
    const shared = { role: "row", "aria-rowindex": at + 2, key: at, style: place };
    if (row === undefined) {
      return h("div", { class: "row row-body waiting", ...shared }, columns.map(() => h("div", { class: "cell", role: "gridcell" })));
    }
    const select = (event) => {
      this.cursor = at;
      this.again();
      if (event.target.closest("a, button") === null && this.open) this.open(row);
    };
    return h(
      "div",
      { class: `row row-body${this.open ? "" : " still"}`, "aria-selected": at === this.cursor ? "true" : null, onclick: select, ...shared },
      columns.map((column) => h("div", { class: look(column), role: "gridcell", key: column.name }, column.cell(row))),
    );
  }
}

/** A short table that is there as a whole. */
export function shortTable(label, columns, rows, { open = null, key = (row) => row.name, narrowest = null } = {}) {
  const [shown, template] = fitting(columns);
  return h(
    "div",
    { class: "table flat", style: { "--template": template, ...(narrowest ? { "--narrowest": narrowest } : {}) } },
    h(
      "div",
      { class: "rows", role: "table", "aria-label": label },
      h("div", { class: "row row-head", role: "row", key: "head" }, shown.map((column) => h("div", { class: look(column), role: "columnheader", title: column.sentence ?? null }, column.title))),
      rows.map((row) =>
        h(
          "div",
          { class: `row row-body${open ? "" : " still"}`, role: "row", key: `row ${key(row)}`, onclick: open && ((event) => event.target.closest("a, button") === null && open(row)) },
          shown.map((column) => h("div", { class: look(column), role: "cell", key: column.name }, column.cell(row))),
        ),
      ),
    ),
  );
}
