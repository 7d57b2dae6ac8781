// The keys of the console and of the page.

import { dialog } from "./dialog.js";
import { h } from "./dom.js";

/** What the keys of a page do, in words and deeds. */
export const keysOf = (page) => ({ ...(page.up && { u: [() => (location.hash = `#${page.up}`), "Up one level"] }), ...page.keys?.() });

export class Help {
  constructor(page, pages, close) {
    Object.assign(this, { page, pages, close });
  }

  view() {
    const own = Object.entries(keysOf(this.page)).map(([key, [, words]]) => [key, words]);
    const general = [
      ["Ctrl K", "Search and commands"],
      ["/", this.page.search ? "Filter this page" : "Search and commands"],
      ["t", "Theme: light, dark or system"],
      ["?", "These keys"],
      ["Esc", "Close, or leave the field"],
    ];
    const list = (rows) =>
      h("dl", { class: "keys" }, rows.map(([key, words]) => [h("dt", { key: `k${key}` }, key.split(" ").map((one) => [h("kbd", null, one), " "])), h("dd", { key: `w${key}` }, words)]));
    return dialog(
      this.close,
      "Keys",
      { key: "help", isLight: true },
      h(
        "div",
        { class: "dialog-body" },
        own.length > 0 && [h("h3", null, this.page.title), list(own)],
        h("h3", null, "Everywhere"),
        list(general),
        h("h3", null, "Go to a page"),
        list(this.pages.filter((page) => page.key !== "").map((page) => [`g ${page.key}`, page.title])),
      ),
    );
  }
}
