// The command palette: pages, queues and operations by their words.

import { get } from "./api.js";
import { dialog } from "./dialog.js";
import * as description from "./description.js";
import { h } from "./dom.js";
import { numberIn } from "../pages/life.js";
import { to } from "./parts.js";

const SHOWN_MAX = 40;
const CALM_MS = 150;

export class Palette {
  text = "";
  at = 0;
  #found = [];
  #said = "";
  #timer = null;
  #asking = null;

  constructor({ pages, act, go, draw, close, extras }) {
    Object.assign(this, { pages, act, go, draw, extras });
    this.close = () => (this.#stop(), close());
    this.#look();
  }

  #look() {
    const words = this.text.toLowerCase().split(/\s+/).filter(Boolean);
    const fits = (text) => words.every((word) => text.toLowerCase().includes(word));
    const entries = [
      ...this.pages.map((page) => ({ text: page.title, kind: "page", run: () => this.go(page.path) })),
      ...this.extras,
      ...description.operations
        .map((one) => ({ text: `${one.command || one.id}`, kind: one.sentence, run: () => this.act(one) })),
    ].filter((entry) => fits(`${entry.text} ${entry.kind}`));
    const number = numberIn(this.text);
    if (number) entries.unshift({ text: `Life of message ${number}`, kind: "from the log", run: () => this.go(to("life", number)) });
    this.#found = entries.slice(0, SHOWN_MAX);
    this.at = 0;
    this.#stop();
    this.#said = words.length > 0 ? "Searching…" : "";
    if (words.length > 0) this.#timer = setTimeout(() => this.#ask(words, entries), CALM_MS);
    this.draw();
  }

  /** Aborts the search. */
  #stop() {
    clearTimeout(this.#timer);
    this.#asking?.abort();
  }

  async #ask(words, entries) {
    const asking = (this.#asking = new AbortController());
    try {
      const found = await this.#named(words, asking.signal);
      this.#found = [...found, ...entries].slice(0, SHOWN_MAX);
      this.#said = this.#found.length > 0 ? "" : "No match.";
    } catch (error) {
      if (asking.signal.aborted) return;
      this.#said = `Search failed: ${error.message}`;
    }
    if (!asking.signal.aborted) this.draw();
  }

  async #named(words, signal) {
    const query = { where: words.map((word) => `name~${word}`), size: 8, fields: "name" };
    const [queues, addresses] = await Promise.all([get("/api/queues", query, signal), get("/api/addresses", query, signal)]);
    return [
      ...queues.data.map(({ name }) => ({ text: name, kind: "queue", run: () => this.go(to("queues", name)) })),
      ...addresses.data.map(({ name }) => ({ text: name, kind: "address", run: () => this.go(to("addresses", name)) })),
    ];
  }

  #run(entry) {
    this.close();
    entry?.run();
  }

  #key(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      this.at = Math.max(0, Math.min(this.#found.length - 1, this.at + steps[event.key]));
      this.draw();
      document.getElementById(`palette-${this.at}`)?.scrollIntoView({ block: "nearest" });
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#run(this.#found[this.at]);
    }
  }

  view() {
    return dialog(
      this.close,
      null,
      { class: "palette", key: "palette", "aria-label": "Search and commands", isLight: true },
      h("input", {
        type: "text",
        role: "combobox",
        "aria-expanded": "true",
        "aria-controls": "palette-list",
        "aria-activedescendant": `palette-${this.at}`,
        "aria-label": "Queue, address, page or command",
        placeholder: "Queue, address, page or command",
        autofocus: true,
        autocomplete: "off",
        spellcheck: "false",
        value: this.text,
        oninput: (event) => ((this.text = event.target.value), this.#look()),
        onkeydown: (event) => this.#key(event),
      }),
      h(
        "ul",
        { role: "listbox", id: "palette-list", "aria-label": "Found" },
        this.#said && h("li", { class: "soft", role: "status", key: "said" }, this.#said),
        this.#found.map((entry, at) =>
          h(
            "li",
            { role: "option", id: `palette-${at}`, key: `${entry.kind} ${entry.text}`, "aria-selected": at === this.at ? "true" : "false", onclick: () => this.#run(entry) },
            h("span", { class: "cut" }, entry.text),
            h("span", { class: "kind cut" }, entry.kind),
          ),
        ),
      ),
    );
  }
}
