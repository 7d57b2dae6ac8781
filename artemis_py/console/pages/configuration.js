// The configuration: what is in force, what a reload would change, and which messages that would affect.

import { ask } from "../js/api.js";
import { at } from "../js/description.js";
import { h } from "../js/dom.js";
import { count, date } from "../js/format.js";
import { anyTable } from "../js/any.js";
import { button, card, chip, empty, head, pretty, problemBox, tile } from "../js/parts.js";

export class ConfigurationPage {
  title = "Configuration";
  #now = null;
  #changes = null;
  #problem = null;

  constructor(app) {
    this.app = app;
    this.#look();
  }

  async #look() {
    try {
      [this.#now, this.#changes] = await Promise.all([ask("GET", "/api/broker/configuration"), ask("GET", "/api/broker/changes")]);
      this.#problem = null;
    } catch (error) {
      this.#problem = error;
    }
    this.app.draw();
  }

  view() {
    const reload = at("POST", "/api/broker/reload");
    const changes = this.#changes?.changes ?? [];
    return [
      head("Configuration", {
        sentence: "The file, what has changed in it since it was read, and what that would do.",
        actions: [button("Look again", () => this.#look(), "", { key: "look" }), reload && button("Reload", () => this.app.act(reload, { done: () => this.#look() }), "primary", { key: "reload", disabled: this.#now?.valid === false })],
      }),
      this.#problem && problemBox(this.#problem),
      this.#now && this.#state(this.#now),
      this.#changes && this.#lists(changes),
    ];
  }

  #state(now) {
    const problems = now.problems ?? [];
    return [
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("File", now.valid === false ? "has errors" : "is valid", { note: now.file }),
        tile("Read", now.readAt ? date(now.readAt).slice(11, 19) : "–", { note: now.readAt ? date(now.readAt).slice(0, 10) : null }),
        tile("Watched", now.watched ? "yes" : "no", { note: now.watched ? "an edit is brought into force by itself" : "reload to bring an edit into force" }),
        tile("After a restart", count((now.pendingRestart ?? []).length), { note: "changes wait for one" }),
      ),
      problems.length > 0 && card("What is wrong with it", h("ol", { class: "gates" }, problems.map((one, place) => h("li", { class: "reason", key: place }, typeof one === "string" ? one : h("pre", { class: "code" }, pretty(one))))), { right: chip(`${problems.length}`, "bad") }),
    ];
  }

  #lists(changes) {
    const affected = this.#changes.affected ?? [];
    const pending = this.#changes.pendingRestart ?? [];
    const table = (label, rows) => (typeof rows[0] === "object" ? anyTable(label, rows) : h("ul", { class: "card-body" }, rows.map((one) => h("li", { key: one }, one))));
    return [
      card("What a reload would change", changes.length > 0 ? table("Changes", changes) : empty("Nothing", "What is in force is what the file says."), { bare: true, note: String(changes.length) }),
      affected.length > 0 && card("What that would do to messages", table("Affected", affected), { bare: true, note: String(affected.length) }),
      pending.length > 0 && card("What only a restart brings into force", table("Pending", pending), { bare: true, note: String(pending.length) }),
    ];
  }
}
