// More columns of a list; this browser keeps the choice.

import { dialog } from "../js/dialog.js";
import { h } from "../js/dom.js";

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
    const box = (name) => h("input", { type: "checkbox", checked: this.names.has(name), onchange: (event) => this.#set(name, event.target.checked) });
    const rows = this.fields.map(({ name, sentence }) => h("label", { class: "check", key: name }, box(name), h("span", { class: "field" }, h("span", null, name), h("span", { class: "help" }, sentence))));
    return dialog(this.close, "More columns", { key: "columns", isLight: true }, h("div", { class: "dialog-body" }, rows));
  }
}
