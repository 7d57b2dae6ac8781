// One message: its body, its headers, how it is, and what can be done with it.

import { ask } from "../js/api.js";
import { at, operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count, date } from "../js/format.js";
import { reasons } from "../js/reasons.js";
import { asking, button, card, chip, facts, head, link, pretty, tile, to } from "../js/parts.js";
import { actionButtons, missing, reportsCard } from "./thing_page.js";

const LEFT_OUT = new Set(["body", "headers", "BodyPreview", "PropertiesText"]);
const BODY = "/api/queues/{queue}/messages/{message}/body";

export class MessagePage {
  #message = null;
  #why = null;
  #problem = null;

  constructor(app, { names: [queue, _, number] }) {
    this.app = app;
    this.queue = queue;
    this.number = number;
    this.title = `Message ${number}`;
    this.#look();
  }

  async #look() {
    try {
      this.#message = await ask("GET", `/api${to("queues", this.queue, "messages", this.number)}`);
      this.#problem = null;
      this.#why = await ask("GET", `/api${to("queues", this.queue, "why", "not-delivered")}`, { query: { message: this.number } });
    } catch (error) {
      this.#problem = error;
    }
    this.app.draw();
  }

  keys() {
    return { u: [() => this.app.go(to("queues", this.queue)), "Up to the queue"] };
  }

  view() {
    const crumb = [link("/queues", "Queues"), " / ", link(to("queues", this.queue), this.queue)];
    const row = this.#message;
    if (row === null) return [head(this.title, { crumb }), this.#problem ? missing(this.#problem, "It was consumed, moved or removed.") : asking(), this.#problem && this.#life()];
    const given = { queue: this.queue, message: this.number };
    const options = () => ({ given, name: this.number, done: () => this.#look() });
    return [
      head(this.title, { crumb, chips: [chip(row.state, row.state === "ready" ? "good" : "accent"), row.durable ? null : chip("not durable")], actions: actionButtons(this.app, ["queue", "message"], options, { name: `message ${this.number}`, first: ["moveMessage", "retryMessage", "removeMessage"], leftOut: new Set(row.originalAddress ? [] : ["retryMessage"]) }) }),
      this.#problem && missing(this.#problem, "This is how it was."),
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("Came", date(row.timestamp).slice(11, 19), { note: date(row.timestamp).slice(0, 10) }),
        tile("Deliveries", count(row.deliveryCount), { note: row.redelivered ? "it came back" : "it has not come back" }),
        tile("Priority", String(row.priority)),
        tile("Size", bytes(row.persistentSize), { note: row.contentType ?? "no content-type" }),
        tile("Expires", row.expiration > 0 ? date(row.expiration).slice(11, 19) : "never", { note: row.expiration > 0 ? date(row.expiration).slice(0, 10) : null }),
      ),
      h("div", { class: "columns wide-first", key: "middle" }, h("div", { class: "stack" }, this.#bodyCard(row), this.#headers(row)), h("div", { class: "stack" }, this.#why && card("Why is it here?", reasons(this.#why.data)), this.#life())),
      reportsCard(this.app, ["queue", "message"], given, new Set(["getMessageBody"])),
      card("All about it", facts(row, operation("queue.getMessage")?.fields ?? [], LEFT_OUT)),
    ];
  }

  #bodyCard(row) {
    const save = at("GET", BODY) && button("Save as a file", () => this.app.act(at("GET", BODY), { given: { queue: this.queue, message: this.number } }), "tiny");
    const [kind, shown] = decoded(row.body);
    return card("Body", row.body === null ? h("p", { class: "soft" }, "It is no text, or too long to be shown here.") : h("pre", { class: "code", id: "body", tabindex: "0" }, shown), { note: `${kind}${bytes(row.bodySize)}`, right: save });
  }

  #headers(row) {
    const entries = Object.entries(row.headers ?? {});
    return card("Headers", entries.length === 0 ? h("p", { class: "soft" }, "It has none.") : h("dl", { class: "facts" }, entries.map(([name, value]) => h("div", { class: "fact long", key: name }, h("dt", null, name), h("dd", { class: "mono" }, String(value))))), { note: String(entries.length) });
  }

  #life() {
    const original = this.#message?.originalMessageID ?? 0;
    return card("Its life", [
      h("p", { class: "soft" }, "The log knows when it came, who had it, and what became of it."),
      h("div", { class: "chips" }, link(to("life", this.number), "Show its life", "button"), original > 0 && link(to("life", original), `Life of its original, message ${original}`, "button")),
    ]);
  }
}

/** The body as JSON if it is such, else as it is. */
function decoded(text) {
  if (text === null || !/^\s*[[{"]/.test(text)) return ["", text];
  try {
    return ["JSON, ", pretty(JSON.parse(text))];
  } catch {
    return ["", text];
  }
}
