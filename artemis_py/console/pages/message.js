// One message: body, headers, state and operations.

import { attempt, get } from "../js/api.js";
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
  problem = null;

  constructor(app, { names: [queue, _, number] }) {
    this.app = app;
    this.queue = queue;
    this.number = number;
    this.up = to("queues", queue);
    this.title = `Message ${number}`;
    this.#look();
  }

  #look() {
    return attempt(this, async () => {
      this.#message = await get(`/api${to("queues", this.queue, "messages", this.number)}`);
      this.#why = await get(`/api${to("queues", this.queue, "why", "not-delivered")}`, { message: this.number });
    });
  }

  view() {
    const crumb = [link("/queues", "Queues"), " / ", link(to("queues", this.queue), this.queue)];
    const row = this.#message;
    if (row === null) return [head(this.title, { crumb }), this.problem ? missing(this.problem, "It was acknowledged, moved or deleted.") : asking(), this.problem && this.#life()];
    const given = { queue: this.queue, message: this.number };
    const options = () => ({ given, name: this.number, done: () => this.#look() });
    return [
      head(this.title, { crumb, chips: [chip(row.state, row.state === "ready" ? "good" : "accent"), row.durable ? null : chip("not durable")], actions: actionButtons(this.app, ["queue", "message"], options, { name: `message ${this.number}`, first: ["moveMessage", "retryMessage", "removeMessage"], leftOut: new Set(row.originalAddress ? [] : ["retryMessage"]) }) }),
      this.problem && missing(this.problem, "This was its last state."),
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("Received", date(row.timestamp).slice(11, 19), { note: date(row.timestamp).slice(0, 10) }),
        tile("Deliveries", count(row.deliveryCount), { note: row.redelivered ? "redelivered" : "not redelivered" }),
        tile("Priority", String(row.priority)),
        tile("Size", bytes(row.persistentSize), { note: row.contentType ?? "no content-type" }),
        tile("Expires", row.expiration > 0 ? date(row.expiration).slice(11, 19) : "never", { note: row.expiration > 0 ? date(row.expiration).slice(0, 10) : null }),
      ),
      h("div", { class: "columns wide-first", key: "middle" }, h("div", { class: "stack" }, this.#bodyCard(row), this.#headers(row)), h("div", { class: "stack" }, this.#why && card("Why is it here?", reasons(this.#why.data)), this.#life())),
      reportsCard(this.app, ["queue", "message"], given, new Set(["getMessageBody"])),
      card("Attributes", facts(row, operation("queue.getMessage")?.fields ?? [], LEFT_OUT)),
    ];
  }

  #bodyCard(row) {
    const save = at("GET", BODY) && button("Download", () => this.app.act(at("GET", BODY), { given: { queue: this.queue, message: this.number } }), "tiny");
    const [kind, shown] = decoded(row.body);
    return card("Body", row.body === null ? h("p", { class: "soft" }, "Binary, or too long to show.") : h("pre", { class: "code", id: "body", tabindex: "0" }, shown), { note: `${kind}${bytes(row.bodySize)}`, right: save });
  }

  #headers(row) {
    const entries = Object.entries(row.headers ?? {});
    return card("Headers", entries.length === 0 ? h("p", { class: "soft" }, "None.") : h("dl", { class: "facts" }, entries.map(([name, value]) => h("div", { class: "fact long", key: name }, h("dt", null, name), h("dd", { class: "mono" }, String(value))))), { note: String(entries.length) });
  }

  #life() {
    const original = this.#message?.originalMessageID ?? 0;
    return card("Life of the message", [
      h("p", { class: "soft" }, "From the log: who sent it, who got it, and what happened to it."),
      h("div", { class: "chips" }, link(to("life", this.number), "Show", "button"), original > 0 && link(to("life", original), `Life of its original, message ${original}`, "button")),
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
