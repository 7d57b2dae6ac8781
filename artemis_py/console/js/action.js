// The dialog of an operation: a form made from its description, the same as command and curl line, and the result. What
// cannot be undone is counted, and must be confirmed.

import { ask, download } from "./api.js";
import { isDestructive, label, target } from "./description.js";
import { dialog } from "./dialog.js";
import { h } from "./dom.js";
import { commandLine, curlLine } from "./lines.js";
import { answerView } from "./any.js";
import { button, chip, problemBox, shell, to } from "./parts.js";
import { several, title } from "./format.js";

const FIELDS_SHOWN = 6;
const CALM_MS = 300;
const MOVES = { moveMessages: "moves", sendMessagesToDeadLetterAddress: "dead-letters", retryMessages: "retries", copyMessages: "copies", changeMessagesPriority: "changes" };
/** They take messages from where somebody may want them. */
const TAKES = new Set(["moveMessages", "sendMessagesToDeadLetterAddress"]);

/** What is known of the thing that an operation is on: `given` are arguments that are set, `name` what must be typed
 * before something is removed, `lost` how many messages it has, `notes` what to say of arguments. */
export class Action {
  problem = null;
  result = null;
  #isDry = false;
  isRunning = false;
  typed = "";

  constructor(operation, { given = {}, name = null, lost = null, preset = {}, done = () => {}, draw, close, notes = {} }) {
    this.operation = operation;
    this.fixed = new Set(Object.keys(given));
    this.given = { ...preset, ...given };
    this.name = name;
    this.lost = lost;
    this.notes = notes;
    this.done = done;
    this.draw = draw;
    this.close = close;
  }

  get #mustType() {
    return (isDestructive(this.operation) || TAKES.has(this.operation.name)) && this.name !== null;
  }

  get #dryRun() {
    return this.operation.parameters.find((one) => /^dry-?run$/i.test(one.name));
  }

  get #lacks() {
    return this.operation.parameters.some((one) => one.required && (this.given[one.name] ?? "") === "");
  }

  set(name, value) {
    this.given[name] = value;
    if (name === "filter" && this.given.queue) this.#recount(value);
    this.draw();
  }

  /** How many messages match another filter. */
  #recount(filter) {
    this.lost = null;
    clearTimeout(this.timer);
    this.timer = setTimeout(async () => {
      const found = await ask("GET", `/api${to("queues", this.given.queue, "messages")}`, { query: { filter, size: 1, fields: "messageID" } }).catch(() => null);
      if (this.given.filter !== filter) return;
      this.lost = found?.count ?? null;
      this.draw();
    }, CALM_MS);
  }

  /** Carries it out if it needs nothing else. */
  show() {
    if (!this.#lacks) this.run();
  }

  async run(more = {}) {
    if (this.isRunning) return;
    this.isRunning = true;
    this.problem = null;
    this.draw();
    try {
      const { path, query, body, text } = target(this.operation, { ...this.given, ...more });
      if (this.operation.isDownload) this.result = await download(path, query);
      else this.result = await ask(this.operation.method, path, { query, body, text });
      this.#isDry = Object.keys(more).length > 0;
      if (!this.#isDry) this.done(this.result);
    } catch (error) {
      this.problem = error;
    }
    this.isRunning = false;
    this.draw();
  }

  view() {
    const { operation } = this;
    const isBad = isDestructive(operation);
    const mayRun = !this.isRunning && !this.#lacks && (!this.#mustType || this.typed === this.name);
    const fields = operation.parameters.filter((one) => !this.fixed.has(one.name) && one !== this.#dryRun); // that has a button
    const shown = Math.max(FIELDS_SHOWN, fields.filter((one) => one.required).length);
    return dialog(
      this.close,
      this.name === null ? label(operation) : `${label(operation)} ${this.name}`,
      { key: `action ${operation.id}`, class: this.result !== null && operation.isList ? "wide" : "" },
      h(
        "form",
        { class: "dialog-body", method: "dialog", id: "action-form", onsubmit: (event) => (event.preventDefault(), mayRun && this.run()) },
        h("p", { class: "soft" }, operation.sentence),
        (isBad || operation.name in MOVES) && this.#warning(isBad),
        fields.slice(0, shown).map((parameter, at) => this.#field(parameter, at === 0)),
        fields.length > shown && h("details", { key: "more" }, h("summary", null, `${fields.length - shown} more arguments`), h("div", { class: "stack" }, fields.slice(shown).map((parameter) => this.#field(parameter, false)))),
        this.problem && problemBox(this.problem),
        this.result !== null && this.#resultView(),
        shell(operation.command && commandLine(operation, this.given), curlLine(operation, this.given)),
      ),
      h(
        "div",
        { class: "dialog-foot" },
        button(this.result === null && label(operation) !== "Cancel" ? "Cancel" : "Close", this.close, "", { id: "action-close" }),
        this.#dryRun && button("Dry run", () => this.run({ [this.#dryRun.name]: true }), "", { disabled: this.isRunning || this.#lacks, id: "action-dry" }),
        h(
          "button",
          { type: "submit", form: "action-form", id: "action-run", class: `button primary${isBad ? " danger" : ""}`, disabled: !mayRun },
          this.isRunning ? "Working…" : this.operation.isChange ? label(operation) : "Show",
        ),
      ),
    );
  }

  #warning(isBad) {
    const wanted = Number(this.given.count) || Infinity;
    const count = this.lost === null ? "the messages that match" : several(Math.min(this.lost, wanted), "message");
    const what = this.operation.destroys.replace("{messages}", count).replace(/\{([^}]+)\}/g, (_, name) => this.given[name] || "…");
    return h(
      "div",
      { class: isBad ? "danger-box" : "warning" },
      h("span", null, isBad ? `This destroys ${what}. It cannot be undone.` : `This ${MOVES[this.operation.name]} ${count} of queue ${this.given.queue}.`),
      this.#mustType &&
        h(
          "label",
          { class: "field" },
          h("span", { class: "small" }, "Type ", h("strong", null, this.name), " to confirm"),
          h("input", { type: "text", id: "action-name", autocomplete: "off", spellcheck: "false", value: this.typed, oninput: (event) => ((this.typed = event.target.value), this.draw()) }),
        ),
    );
  }

  #resultView() {
    const { result } = this;
    const entries = Object.entries(result ?? {});
    const isSmall = entries.length > 0 && entries.length <= 3 && entries.every(([, value]) => typeof value !== "object");
    const isOpen = !this.operation.isChange || this.#isDry;
    const said = this.#isDry ? "Dry run: nothing changed" : isSmall ? entries.map(([name, value]) => `${title(name)}: ${value}`).join(", ") : "Done";
    return h(
      "div",
      { class: "field", role: "status", id: "action-result", mount: (element) => void element.scrollIntoView({ block: "nearest" }) },
      h("span", { class: "chips" }, chip(said, "good")),
      (!isSmall || this.#isDry) && h("details", { open: isOpen }, h("summary", null, this.#isDry ? "Preview" : "Answer"), answerView(this.operation, result)),
    );
  }

  #field(parameter, isFirst) {
    const { name, schema, required, description } = parameter;
    const id = `argument-${name}`;
    const value = this.given[name];
    if (schema.type === "boolean" && schema.default !== undefined) {
      const isOn = value === undefined ? schema.default : value;
      return h(
        "label",
        { class: "check", key: name },
        h("input", { type: "checkbox", id, checked: isOn, onchange: (event) => this.set(name, event.target.checked) }),
        h("span", { class: "field" }, h("span", null, title(name)), h("span", { class: "help" }, description)),
      );
    }
    return h(
      "div",
      { class: "field", key: name },
      h("label", { for: id }, title(name), required && h("span", { class: "needed" }, "  required")),
      this.#input(parameter, id, value, isFirst),
      h("span", { class: "help", id: `${id}-help` }, description, this.notes[name] && h("strong", null, ` ${this.notes[name]}`)),
    );
  }

  #input({ name, schema, required, in: place }, id, value, isFirst) {
    const shared = { id, "aria-describedby": `${id}-help`, autofocus: isFirst || null, required: required || null };
    const choices = schema.enum ?? (schema.type === "boolean" ? ["true", "false"] : null);
    if (choices !== null) {
      const words = schema.type === "boolean" ? { true: "Yes", false: "No" } : {};
      return h(
        "select",
        { ...shared, value: value ?? "", onchange: (event) => this.set(name, event.target.value) },
        h("option", { value: "" }, "Default"),
        choices.map((one) => h("option", { value: one, key: one }, words[one] ?? one)),
      );
    }
    if (schema.type === "array") {
      const read = (event) => this.set(name, event.target.value.split("\n"));
      return h("textarea", { ...shared, rows: 2, placeholder: "one per line", value: (value ?? []).join("\n"), oninput: read });
    }
    if (place === "lines") return h("textarea", { ...shared, rows: 6, value, oninput: (event) => this.set(name, event.target.value) });
    const isNumber = schema.type === "integer" || schema.type === "number";
    return h("input", {
      ...shared,
      type: schema.format === "password" ? "password" : "text",
      inputmode: isNumber ? "numeric" : null,
      autocomplete: schema.format === "password" ? "new-password" : "off",
      spellcheck: "false",
      placeholder: schema.default === undefined ? "" : String(schema.default),
      value: value ?? "",
      oninput: (event) => this.set(name, event.target.value),
    });
  }
}
