// A page with one list: filter, quick conditions, table.

import { url } from "../js/api.js";
import { changesOfAll, isCreator, isDestructive, label, operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { button, empty, head, problemBox, searchBox, toggle } from "../js/parts.js";
import { title } from "../js/format.js";
import { Table, fieldColumn, fieldsOf } from "../js/table.js";
import { icon } from "../js/icons.js";
import { ColumnChoice, chosen } from "./choice.js";

const CALM_MS = 180;
const CONDITION = /^[A-Za-z]\w*[!<>]?[=~<>]/;

/** `spec` says what is listed: `path`, `one`; if not those of the path, `list` (the operation), `title`, `several`; `filterBy` (the
 * field that the filter searches), `columns`, `quick` (`[words, conditions]`), `open(row)`,
 * `sort`, `sentence()`, `wants` (what else is asked for), `nothing` (title, advice and command for an empty list). */
export class ListPage {
  search = "filter";
  #timer = null;

  constructor(app, { query }, spec) {
    this.app = app;
    const name = title(spec.path);
    this.spec = { list: `list${name}`, title: name, several: spec.path, ...spec };
    this.title = this.spec.title;
    this.filter = query.get("filter") ?? "";
    this.quick = spec.quick?.find(([words]) => words === query.get("show")) ?? null;
    this.where = query.getAll("where");
    this.table = new Table({
      label: this.title,
      one: spec.one,
      several: this.spec.several,
      columns: [],
      feed: app.feed,
      sort: query.get("sort") ?? spec.sort ?? "",
      request: (page, size, sort) => url(spec.path, { where: this.#conditions, sort, page, size, fields: this.#fields }),
      open: spec.open ?? null,
      again: () => app.draw(),
      empty: () => this.#nothing(),
    });
    this.#choose();
  }

  get #described() {
    return operation(this.spec.list)?.fields ?? [];
  }

  get #more() {
    const usual = new Set(this.spec.columns.map((column) => column.name));
    return this.#described.filter((field) => !usual.has(field.name));
  }

  #choose() {
    const names = new Set(chosen(this.spec.list));
    const more = this.#more.filter((field) => names.has(field.name));
    this.table.columns = [...this.spec.columns, ...more.map(fieldColumn)].map((column) => ({ sort: true, ...column }));
    this.table.narrowest = more.length > 0 ? `${560 + 130 * more.length}px` : null;
    this.app.draw();
  }

  get #fields() {
    return this.spec.needsAll ? null : fieldsOf(this.table.columns);
  }

  get #conditions() {
    const text = this.filter.trim();
    const own = text === "" ? [] : text.split(/\s+/).map((word) => (CONDITION.test(word) ? word : `${this.spec.filterBy}~${word}`));
    return [...own, ...(this.quick?.[1] ?? []), ...this.where];
  }

  wants() {
    return [...this.table.wants(), ...(this.spec.wants ?? [])];
  }

  keys() {
    return { "/": [() => document.getElementById("filter")?.select(), "Filter"], ...this.table.keys() };
  }

  #typed(text) {
    this.filter = text;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.table.reset(), CALM_MS);
  }

  #press(quick) {
    this.quick = this.quick === quick ? null : quick;
    this.table.reset();
  }

  #clear() {
    this.filter = "";
    this.quick = null;
    this.where = [];
    this.table.reset();
  }

  #nothing() {
    const isFiltered = this.filter.trim() !== "" || this.quick !== null || this.where.length > 0;
    if (!isFiltered) return empty(...this.spec.nothing);
    return h(
      "div",
      { class: "empty" },
      h("strong", null, `No ${this.spec.one} matches`),
      h("span", null, "Filter by words of the name, or by conditions such as messageCount>10."),
      button("Show all", () => this.#clear()),
    );
  }

  #columnsButton() {
    if (this.#more.length === 0) return null;
    const open = () => {
      this.app.overlay = new ColumnChoice(this.spec.list, this.#more, () => this.app.shut(), () => this.#choose());
      this.app.draw();
    };
    return button("Columns", open, "", { id: "columns" });
  }

  view() {
    const changes = changesOfAll(this.spec.path);
    const look = (one) => (isCreator(one) ? "primary" : isDestructive(one) ? "danger" : "");
    const problem = this.table.problem;
    return [
      head(this.spec.title, {
        sentence: this.spec.sentence?.() ?? null,
        actions: changes.map((one) => button(label(one), () => this.app.act(one), look(one), { key: one.id, title: one.sentence })),
      }),
      h(
        "div",
        { class: "filters", key: "filters" },
        searchBox(`Filter by ${this.spec.filterBy}, or ${this.spec.example}`, { id: "filter", value: this.filter, oninput: (event) => this.#typed(event.target.value) }),
        h(
          "div",
          { class: "chips" },
          (this.spec.quick ?? []).map((quick) => toggle(quick[0], this.quick === quick, () => this.#press(quick))),
          this.where.map((one) => toggle([one, icon("close")], true, () => ((this.where = this.where.filter((other) => other !== one)), this.table.reset()), { key: `where ${one}`, title: "Remove this condition" })),
        ),
        h("span", { class: "grow" }),
        this.#columnsButton(),
      ),
      problem && problemBox(problem),
      this.table.view(),
    ];
  }

  close() {
    clearTimeout(this.#timer);
  }
}
