// The life of a message and its copies, from the log.

import { ask } from "../js/api.js";
import { at } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, clock, date, duration, several } from "../js/format.js";
import { commandLine, curlLine } from "../js/lines.js";
import { button, card, chip, empty, head, link, problemBox, searchBox, shell, to } from "../js/parts.js";

const LIFE = "/api/messages/{message}/life";
const ANSWERS_MAX = 15;
const LOOKS = {
  arrived: "accent", known: "accent", recalled: "accent", copied: "accent", there: "accent",
  acknowledged: "good",
  failed: "warn", returned: "warn", expired: "warn", replaced: "warn",
  dead: "bad", killed: "bad", purged: "bad", deleted: "bad", abandoned: "bad", damaged: "bad", cancelled: "bad",
};

/** The number in a message-id, after the dash if it has one; "": none. */
export const numberIn = (text) => /^\s*(?:\d+-)?(\d+)\s*$/.exec(text)?.[1] ?? "";

export class LifePage {
  search = "message";
  #stop = new AbortController();
  #moments = [];
  #last = null;
  #problem = null;
  #isReading = false;

  constructor(app, { names: [text = ""] }) {
    this.app = app;
    this.text = text;
    this.number = numberIn(text);
    this.wrong = text !== "" && this.number === "" ? text : "";
    this.title = this.number ? `Life of message ${this.number}` : "Life of a message";
    if (this.number) this.#read();
  }

  /** Reads on until the log is at its end, or for a good while. */
  async #read() {
    this.#isReading = true;
    this.#problem = null;
    this.app.draw();
    const path = LIFE.replace("{message}", this.number);
    try {
      for (let answers = 0; answers < ANSWERS_MAX && !this.#last?.isWhole; answers += 1) {
        const query = this.#last === null ? {} : { after: this.#last.readTo };
        this.#last = await ask("GET", path, { query, signal: this.#stop.signal });
        this.#moments = [...this.#moments, ...this.#last.data];
        this.app.draw();
      }
    } catch (error) {
      if (this.#stop.signal.aborted) return;
      this.#problem = error;
      this.#last = null;
      this.#moments = [];
    }
    this.#isReading = false;
    this.app.draw();
  }

  view() {
    const original = this.#moments[0]?.original ?? 0;
    return [
      head(this.title, {
        sentence: "Who sent it, who got it, and what happened to it and its copies: from the log, even after its end.",
        actions: original ? [link(to("life", original), `Life of its original, message ${original}`, "button")] : [],
      }),
      h(
        "form",
        { class: "filters", key: "form", onsubmit: (event) => (event.preventDefault(), this.app.go(to("life", this.text.trim()))) },
        searchBox("Number of a message, or its message-id", { id: "message", value: this.text, required: true, oninput: (event) => (this.text = event.target.value), mount: (element) => void (this.number === "" && element.focus()) }),
        h("button", { type: "submit", class: "button primary" }, "Show"),
      ),
      this.wrong && problemBox({ message: `${this.wrong} is no message number.`, advice: "Enter a number, or a message-id such as 3-1234." }),
      this.#problem && problemBox(this.#problem),
      this.#last && this.#body(),
      !this.number && !this.wrong && empty("Enter the number of a message", "Lists of messages show it, and it follows the dash in a client's message-id."),
      this.number && this.#lines(),
    ];
  }

  #body() {
    const { isWhole, logBegan, lostParts, leftOut } = this.#last;
    const moments = this.#moments;
    const notes = [
      lostParts > 0 && `${several(lostParts, "part")} of the log could not be read: events may be missing.`,
      leftOut > 0 && `It has ${several(leftOut, "more copy", "more copies")}.`,
    ].filter(Boolean);
    const nothing = isWhole
      ? empty("The log has no such message", `It has persistent messages on durable queues${logBegan ? `, since ${date(logBegan).slice(0, 19)}` : ""}. With journal-retention-directory it keeps all of their past.`)
      : h("p", { class: "soft card-body" }, "Nothing found yet.");
    return [
      notes.map((text) => h("p", { class: "warning", key: text }, text)),
      card("History", moments.length > 0 ? h("ol", { class: "life card-body" }, moments.map((one, place) => this.#moment(one, moments[place - 1]))) : nothing, { bare: true, note: this.#progress() }),
      !isWhole && !this.#isReading && h("div", { class: "chips", key: "on" }, button("Continue", () => this.#read(), "primary"), h("span", { class: "soft" }, "The rest of the log is not read yet.")),
    ];
  }

  #progress() {
    const { isWhole, readBytes } = this.#last;
    const shown = several(this.#moments.length, "event");
    return isWhole ? shown : `${shown}; ${bytes(readBytes)} of the log read${this.#isReading ? "…" : ""}`;
  }

  #moment(one, before) {
    const passed = before?.time && one.time ? one.time - before.time : 0;
    const look = LOOKS[one.what] ?? "";
    return h(
      "li",
      { class: "moment", key: `${one.lsn} ${one.messageID} ${one.what} ${one.queue}` },
      h("time", { class: "soft number" }, one.time ? [h("span", { class: "faint" }, date(one.time).slice(0, 10)), ` ${clock(one.time)}.${String(one.time % 1000).padStart(3, "0")}`] : "now"),
      h("span", { class: `dot ${look}` }),
      h(
        "div",
        null,
        h("div", { class: "chips" }, chip(one.what, look), one.queue && link(to("queues", one.queue), one.queue, "long"), String(one.messageID) !== this.number && link(to("life", one.messageID), `message ${one.messageID}`), passed > 0 && h("span", { class: "faint small" }, `${duration(passed)} later`)),
        h("p", null, one.text),
        one.who && h("p", { class: "soft small" }, one.who),
      ),
    );
  }

  #lines() {
    const operation = at("GET", LIFE);
    const given = { message: this.number };
    return h("div", { class: "card card-body", key: "shell" }, shell(commandLine(operation, given), curlLine(operation, given)));
  }

  close() {
    this.#stop.abort();
  }
}
