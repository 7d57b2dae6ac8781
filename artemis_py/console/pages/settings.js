// The settings in force for an address or a queue, each with the line that decided it; and who may do what there.

import { ask } from "../js/api.js";
import { has } from "../js/description.js";
import { h } from "../js/dom.js";
import { card, empty, head, problemBox, to } from "../js/parts.js";
import { anyTable } from "../js/any.js";

const SIZE = 500;

export class SettingsPage {
  title = "Settings";
  search = "filter";
  filter = "";
  #settings = null;
  #roles = null;
  #problem = null;

  constructor(app, { names: [name] }) {
    this.app = app;
    this.name = name ?? "";
    if (this.name !== "") this.#look();
  }

  async #look() {
    const of = (what) => ask("GET", `/api${to(what, this.name)}`, { query: { size: SIZE } });
    try {
      this.#settings = await of("settings");
      if (has("getRolesAsJSON")) this.#roles = await of("roles");
      this.#problem = null;
    } catch (error) {
      this.#problem = error;
    }
    this.app.draw();
  }

  view() {
    const rows = (this.#settings?.data ?? []).filter((row) => JSON.stringify(row).toLowerCase().includes(this.filter.toLowerCase()));
    return [
      head(this.name === "" ? "Settings" : `Settings of ${this.name}`, { sentence: "What is in force, and the file and line that decided it." }),
      h(
        "form",
        { class: "filters", onsubmit: (event) => (event.preventDefault(), this.app.go(to("settings", new FormData(event.target).get("name")))) },
        h("input", { type: "search", name: "name", "aria-label": "Address, or ADDRESS::QUEUE", placeholder: "Address, or ADDRESS::QUEUE", value: this.name, mount: (element) => void (this.name === "" && element.focus()) }),
        h("button", { type: "submit", class: "button primary" }, "Show"),
        this.#settings && h("input", { type: "search", id: "filter", key: "filter", "aria-label": "Filter settings", placeholder: "Filter settings", value: this.filter, oninput: (event) => ((this.filter = event.target.value), this.app.draw()) }),
      ),
      this.#problem && problemBox(this.#problem),
      this.name === "" && empty("Of which address?", "It need not exist: you see what it would have."),
      this.#settings && card("In force", rows.length > 0 ? anyTable("Settings", rows) : empty("No setting is like this", "Try another word."), { bare: true, note: String(rows.length) }),
      this.#roles && card("Who may do what", anyTable("Roles", this.#roles.data), { bare: true }),
    ];
  }
}
