// All operations on a thing, each with its sentence.

import { dialog } from "./dialog.js";
import { isDestructive, label } from "./description.js";
import { h } from "./dom.js";

export class Menu {
  constructor(title, operations, choose, close) {
    Object.assign(this, { title, operations, choose, close });
  }

  #move(event) {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined) return;
    event.preventDefault();
    const all = [...event.currentTarget.querySelectorAll(".menu button")];
    all[(all.indexOf(document.activeElement) + by + all.length) % all.length]?.focus();
  }

  #item(one, at) {
    const act = { type: "button", autofocus: at === 0 || null, class: isDestructive(one) ? "bad" : null, "data-operation": one.id, onclick: () => this.choose(one) };
    return h("li", { key: one.id }, h("button", act, h("strong", null, label(one)), h("span", { class: "soft small" }, one.sentence)));
  }

  view() {
    const list = h("ul", { class: "menu" }, this.operations.map((one, at) => this.#item(one, at)));
    return dialog(this.close, this.title, { key: "menu", isLight: true, onkeydown: (event) => this.#move(event) }, list);
  }
}
