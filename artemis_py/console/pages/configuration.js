// The configuration: its state, and what a reload would change, also for messages.

import { ask } from "../js/api.js";
import { at } from "../js/description.js";
import { h } from "../js/dom.js";
import { count, date } from "../js/format.js";
import { anyTable } from "../js/any.js";
import { shortTable } from "../js/table.js";
import { asking, button, card, chip, empty, head, placeOf, problemBox, tile } from "../js/parts.js";

const lastRead = (app) => app.feed.notifications.find((one) => one.type.startsWith("CONFIGURATION_"))?.id;

export class ConfigurationPage {
  title = "Configuration";
  #now = null;
  #changes = null;
  #problem = null;
  #told = null;

  constructor(app) {
    this.app = app;
    this.#told = lastRead(app);
    this.#look();
  }

  async #look() {
    const [now, changes] = await Promise.allSettled([ask("GET", "/api/broker/configuration"), ask("GET", "/api/broker/changes")]);
    this.#now = now.value ?? null;
    this.#changes = changes.value ?? null; // none while the file has errors, which the first answer names
    this.#problem = now.reason ?? null;
    this.app.draw();
  }

  /** The file was read again, by whomever: what is shown is old. */
  tick() {
    const told = lastRead(this.app);
    if (told === this.#told) return;
    this.#told = told;
    this.#look();
  }

  view() {
    const reload = at("POST", "/api/broker/reload");
    const changes = this.#changes?.changes ?? [];
    return [
      head("Configuration", {
        sentence: "Changes in the file since it was read, and what a reload would do.",
        actions: [button("Refresh", () => this.#look(), "", { key: "refresh" }), reload && button("Reload", () => this.app.act(reload, { done: () => this.#look() }), "primary", { key: "reload", disabled: this.#now?.valid === false })],
      }),
      this.#problem && problemBox(this.#problem),
      this.#now ? this.#state(this.#now) : !this.#problem && asking(),
      this.#changes && this.#lists(changes),
    ];
  }

  #state(now) {
    const problems = now.problems ?? [];
    return [
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("File", now.valid === false ? h("span", { class: "bad" }, "has errors") : "is valid", { note: now.file }),
        tile("Read", now.readAt ? date(now.readAt).slice(11, 19) : "–", { note: now.readAt ? date(now.readAt).slice(0, 10) : null }),
        tile("Watched", now.watched ? "yes" : "no", { note: now.watched ? "edits apply automatically" : "reload to apply edits" }),
        tile("After a restart", count((now.pendingRestart ?? []).length), { note: "changes waiting" }),
      ),
      problems.length > 0 && card("Errors", h("ol", null, problems.map((one, place) => h("li", { class: "reason", key: place }, problemLine(one)))), { right: chip(`${problems.length}`, "bad") }),
    ];
  }

  #lists(changes) {
    const affected = this.#changes.affected ?? [];
    const pending = this.#now?.pendingRestart ?? [];
    return [
      card("What a reload would change", changes.length > 0 ? changesTable("Changes", changes) : empty("No changes", "The file is in force."), { bare: true, note: String(changes.length) }),
      affected.length > 0 && card("Effect on messages", anyTable("Affected", affected), { bare: true, note: String(affected.length) }),
      pending.length > 0 && card("Waits for a restart", h("ul", null, pending.map((text) => h("li", { key: text }, text))), { note: String(pending.length) }),
    ];
  }
}

/** A problem of the file: its line first. */
function problemLine(text) {
  const [, place, rest] = /^(\S+:\d+): (.*)$/s.exec(text) ?? [null, "", text];
  return [place && h("code", null, place), h("p", null, rest)];
}

const value = (text) => (text === null || text === "" ? h("span", { class: "faint" }, "nothing") : h("code", { title: text }, text));
const COLUMNS = [
  { name: "what", width: [120, 1.2], cell: (row) => [`${row.part} `, h("strong", null, row.name)] },
  { name: "setting", width: [120, 1.2], cell: (row) => row.setting || row.action },
  { name: "old", title: "From", width: [80, 0.9], cell: (row) => value(row.old) },
  { name: "new", title: "To", width: [80, 0.9], cell: (row) => value(row.new) },
  { name: "effect", title: "In force", width: 108, cell: (row) => chip(row.effect === "restart" ? "after a restart" : row.effect, row.effect === "restart" ? "warn" : "good", row.note) },
  { name: "place", title: "Line", width: [90, 0.7], from: 860, cell: (row) => row.line ? placeOf(`${row.file}:${row.line}`) : "–" },
];

const changesTable = (label, rows) => shortTable(label, COLUMNS, rows, { key: (row) => `${row.part} ${row.name} ${row.setting} ${row.line}` });
