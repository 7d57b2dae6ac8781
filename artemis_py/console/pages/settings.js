// The effective settings of an address or a queue, each with its line, and the permissions there.

import { attempt, get } from "../js/api.js";
import { h } from "../js/dom.js";
import { asking, card, empty, filterBox, head, placeOf, problemBox, searchBox, to, toggle } from "../js/parts.js";
import { anyTable } from "../js/any.js";
import { shortTable } from "../js/table.js";

const SIZE = 500;
const COLUMNS = [
  { name: "name", title: "Setting", width: [100, 1.5], cell: (row) => h("span", { class: "wraps", title: row.meaning }, row.name) },
  { name: "value", width: [80, 0.9], cell: (row) => h("strong", { class: "wraps", title: row.value }, row.value === "" ? "–" : row.value, row.unit && /^-?[\d.]+$/.test(row.value) && h("span", { class: "soft" }, ` ${row.unit}`)) },
  { name: "place", title: "Set at", width: [72, 0.6], cell: (row) => (row.declaredAt ? placeOf(row.declaredAt) : h("span", { class: "faint" }, "default")) },
  { name: "match", width: [60, 0.5], from: 860, cell: (row) => row.match ?? "" },
  { name: "meaning", width: [120, 2.4], from: 1000, cell: (row) => h("span", { class: "soft", title: row.meaning }, row.meaning) },
];

export class SettingsPage {
  title = "Settings";
  search = "filter";
  filter = "";
  #onlyWritten = false;
  #settings = null;
  #roles = null;
  problem = null;

  constructor(app, { names: [name] }) {
    this.app = app;
    this.name = this.text = name ?? "";
    if (this.name !== "") this.#look();
  }

  #look() {
    const of = (what) => get(`/api${to(what, this.name)}`, { size: SIZE });
    return attempt(this, async () => ((this.#settings = await of("settings")), (this.#roles = await of("roles"))));
  }

  view() {
    const rows = (this.#settings?.data ?? []).filter((row) => JSON.stringify(row).toLowerCase().includes(this.filter.toLowerCase()) && !(this.#onlyWritten && row.isDefault));
    return [
      head(this.name === "" ? "Settings" : `Settings of ${this.name}`, { sentence: "Effective settings, each with the file and line that set it." }),
      h(
        "form",
        { class: "filters", key: "form", onsubmit: (event) => (event.preventDefault(), this.app.go(to("settings", this.text))) },
        searchBox("Address, or ADDRESS::QUEUE", { id: "address", value: this.text, oninput: (event) => (this.text = event.target.value), mount: (element) => void (this.name === "" && element.focus()) }),
        h("button", { type: "submit", class: "button primary" }, "Show"),
        this.#settings && filterBox(this, "Filter settings"),
        this.#settings && toggle("Without defaults", this.#onlyWritten, () => ((this.#onlyWritten = !this.#onlyWritten), this.app.draw())),
      ),
      this.problem && problemBox(this.problem),
      this.name !== "" && !this.#settings && !this.problem && asking(),
      this.name === "" && empty("Enter an address", "It need not exist yet."),
      this.#settings && card("Settings", rows.length > 0 ? shortTable("Settings", COLUMNS, rows) : empty("No match", "Try another word."), { bare: true, note: String(rows.length) }),
      this.#roles && card("Permissions", anyTable("Roles", this.#roles.data), { bare: true }),
    ];
  }
}
