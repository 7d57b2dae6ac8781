// All operations of this broker, each with its form.

import { isDestructive, operations } from "../js/description.js";
import { h } from "../js/dom.js";
import { title } from "../js/format.js";
import { button, card, chip, filterBox, head } from "../js/parts.js";

export class OperationsPage {
  title = "Operations";
  search = "filter";

  constructor(app, { query }) {
    this.app = app;
    this.filter = query.get("filter") ?? "";
  }

  view() {
    const words = this.filter.toLowerCase().split(/\s+/).filter(Boolean);
    const shown = operations.filter((one) => words.every((word) => `${one.id} ${one.command} ${one.path} ${one.sentence}`.toLowerCase().includes(word)));
    const groups = new Set(shown.map((one) => one.collection));
    return [
      head("Operations", { sentence: "All operations of this broker. Each is also a command and a request." }),
      h("div", { class: "filters" }, filterBox(this, "Filter operations")),
      [...groups].map((name) => {
        const some = shown.filter((one) => one.collection === name);
        return card(title(name), h("ul", { class: "stops" }, some.map((one) => this.#row(one))), { note: String(some.length) });
      }),
    ];
  }

  #row(one) {
    return h(
      "li",
      { class: "stop", key: one.id },
      h("span", null, button(one.command || one.id, () => this.app.act(one), `tiny${isDestructive(one) ? " danger" : ""}`)),
      h("span", null, one.sentence, " ", chip(one.isChange ? "edit" : "view"), h("br"), h("code", { class: "faint" }, `${one.method} ${one.path}`)),
    );
  }
}
