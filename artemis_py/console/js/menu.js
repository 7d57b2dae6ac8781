// All operations on a thing, each with its sentence.

import { dialog } from "./dialog.js";
import { isDestructive, label } from "./description.js";
import { h } from "./dom.js";
import { button } from "./parts.js";

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

  view() {
    return dialog(
      this.close,
      { key: "menu", "aria-label": this.title, isLight: true, onkeydown: (event) => this.#move(event) },
      h("div", { class: "dialog-head" }, h("h2", { class: "grow cut" }, this.title), button("Close", this.close, "tiny")),
      h(
        "ul",
        { class: "menu" },
        this.operations.map((one, at) =>
          h(
            "li",
            { key: one.id },
            h("button", { type: "button", autofocus: at === 0 || null, class: isDestructive(one) ? "bad" : null, "data-operation": one.id, onclick: () => this.choose(one) }, h("strong", null, label(one)), h("span", { class: "soft small" }, one.sentence)),
          ),
        ),
      ),
    );
  }
}
