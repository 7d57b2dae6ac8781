// More columns of a list; this browser keeps the choice.

import { dialog } from "../js/dialog.js";
import { h } from "../js/dom.js";
import { button } from "../js/parts.js";

const KEPT = "artemis-columns-";

export const chosen = (list) => JSON.parse(localStorage.getItem(KEPT + list) ?? "[]");

export class ColumnChoice {
  constructor(list, fields, close, changed) {
    Object.assign(this, { list, fields, close, changed });
    this.names = new Set(chosen(list));
  }

  #set(name, isOn) {
    if (isOn) this.names.add(name);
    else this.names.delete(name);
    localStorage.setItem(KEPT + this.list, JSON.stringify([...this.names]));
    this.changed();
  }

  view() {
    return dialog(
      this.close,
      { key: "columns", "aria-label": "Columns", isLight: true },
      h("div", { class: "dialog-head" }, h("h2", { class: "grow" }, "More columns"), button("Done", this.close, "primary tiny", { autofocus: true })),
      h(
        "div",
        { class: "dialog-body" },
        this.fields.map((field) =>
          h(
            "label",
            { class: "check", key: field.name },
            h("input", { type: "checkbox", checked: this.names.has(field.name), onchange: (event) => this.#set(field.name, event.target.checked) }),
            h("span", { class: "field" }, h("span", null, field.name), h("span", { class: "help" }, field.sentence)),
          ),
        ),
      ),
    );
  }
}
