// The settings in force for an address or a queue, each with the line that decided it; and who may do what there.

import { ask } from "../js/api.js";
import { h } from "../js/dom.js";
import { asking, card, empty, filterBox, head, placeOf, problemBox, searchBox, to, toggle } from "../js/parts.js";
import { anyTable } from "../js/any.js";
import { shortTable } from "../js/table.js";

const SIZE = 500;
const COLUMNS = [
  { name: "name", title: "Setting", width: "minmax(100px, 1.3fr)", cell: (row) => h("span", { class: "wraps", title: row.meaning }, row.name) },
  { name: "value", title: "Value", width: "minmax(98px, 0.8fr)", cell: (row) => h("strong", { title: row.value }, row.value === "" ? "–" : row.value, row.unit && /^-?[\d.]+$/.test(row.value) && h("span", { class: "soft" }, ` ${row.unit}`)) },
  { name: "place", title: "Decided by", width: "minmax(90px, 0.9fr)", cell: (row) => (row.declaredAt ? placeOf(row.declaredAt) : h("span", { class: "faint" }, "default")) },
  { name: "match", title: "Match", width: "minmax(60px, 0.5fr)", from: 860, cell: (row) => row.match ?? "" },
  { name: "meaning", title: "What it does", width: "minmax(120px, 2.4fr)", from: 1000, cell: (row) => h("span", { class: "soft", title: row.meaning }, row.meaning) },
];

export class SettingsPage {
  title = "Settings";
  search = "filter";
  filter = "";
  #onlyWritten = false;
  #settings = null;
  #roles = null;
  #problem = null;

  constructor(app, { names: [name] }) {
    this.app = app;
    this.name = this.text = name ?? "";
    if (this.name !== "") this.#look();
  }

  async #look() {
    const of = (what) => ask("GET", `/api${to(what, this.name)}`, { query: { size: SIZE } });
    try {
      this.#settings = await of("settings");
      this.#roles = await of("roles");
      this.#problem = null;
    } catch (error) {
      this.#problem = error;
    }
    this.app.draw();
  }

  view() {
    const rows = (this.#settings?.data ?? []).filter((row) => JSON.stringify(row).toLowerCase().includes(this.filter.toLowerCase()) && !(this.#onlyWritten && row.isDefault));
    return [
      head(this.name === "" ? "Settings" : `Settings of ${this.name}`, { sentence: "What is in force, and the file and line that decided it." }),
      h(
        "form",
        { class: "filters", key: "form", onsubmit: (event) => (event.preventDefault(), this.app.go(to("settings", this.text))) },
        searchBox("Address, or ADDRESS::QUEUE", { id: "address", value: this.text, oninput: (event) => (this.text = event.target.value), mount: (element) => void (this.name === "" && element.focus()) }),
        h("button", { type: "submit", class: "button primary" }, "Show"),
        this.#settings && filterBox(this, "Filter settings"),
        this.#settings && toggle("Only what somebody has set", this.#onlyWritten, () => ((this.#onlyWritten = !this.#onlyWritten), this.app.draw())),
      ),
      this.#problem && problemBox(this.#problem),
      this.name !== "" && !this.#settings && !this.#problem && asking(),
      this.name === "" && empty("Of which address?", "It need not exist: you see what it would have."),
      this.#settings && card("In force", rows.length > 0 ? shortTable("Settings", COLUMNS, rows) : empty("No setting is like this", "Try another word."), { bare: true, note: String(rows.length) }),
      this.#roles && card("Who may do what", anyTable("Roles", this.#roles.data), { bare: true }),
    ];
  }
}
