// The form that sends a message, also as command and curl line.

import { current } from "./brokers.js";
import { dialog } from "./dialog.js";
import { ask, login, open, url } from "./api.js";
import { h } from "./dom.js";
import { quoted } from "./lines.js";
import { several } from "./format.js";
import { button, chip, link, problemBox, shell, to } from "./parts.js";

export class Send {
  problem = null;
  sent = null;
  queues = [];
  #body = "";
  #type = "application/json";
  #headers = "";
  #isPersistent = true;

  constructor(address, { draw, close, done }) {
    Object.assign(this, { address, draw, close, done });
  }

  get #path() {
    const header = this.#headers.split("\n").map((line) => line.replace(/^([^:]+):\s*/, "$1:")).filter((line) => line.includes(":"));
    return url(to("api", "messages", this.address), { header, persistent: this.#isPersistent ? null : "false" });
  }

  get #curl() {
    const user = login.user ? `-u ${quoted(login.user)} ` : "";
    return `curl ${user}${quoted(current() + this.#path)} -H ${quoted(`Content-Type: ${this.#type}`)} -d ${quoted(this.#body)}`;
  }

  get #command() {
    const options = this.#headers.split("\n").filter((line) => line.includes(":")).map((line) => `--header ${quoted(line.replace(/:\s*/, "="))} `);
    return `artemis-py send ${options.join("")}--content-type ${quoted(this.#type)} ${this.#isPersistent ? "" : "--no-persistent "}${quoted(this.address)} ${quoted(this.#body)}`;
  }

  async #submit(event) {
    event.preventDefault();
    this.problem = this.sent = null;
    try {
      this.sent = await (await open("POST", this.#path, { text: this.#body, more: { "Content-Type": this.#type } })).json();
      this.done();
      const [address, queue] = this.address.split("::");
      const where = queue ? `name=${queue}` : `address=${address}`;
      this.queues = (await ask("GET", "/api/queues", { query: { where, fields: "name,messageCount", size: 3 } }).catch(() => null))?.data ?? [];
    } catch (error) {
      this.problem = error;
    }
    this.draw();
  }

  #result() {
    const { routed, duplicate } = this.sent;
    const said = routed === false ? "No queue matched: it went to the dead-letter address" : duplicate ? "Dropped as a duplicate" : `Sent to ${this.address}`;
    const there = this.queues.map(({ name, messageCount }) => h("span", { key: name, onclick: this.close }, link(to("queues", name), name), ` has ${several(messageCount, "message")}`));
    return h("div", { class: "chips", role: "status", id: "send-result" }, chip(said, routed === false || duplicate ? "warn" : "good"), there);
  }

  view() {
    const field = (id, name, tag, value, set, more) => h("div", { class: "field" }, h("label", { for: id }, name), h(tag, { id, spellcheck: "false", value, oninput: (event) => (set(event.target.value), this.draw()), ...more }));
    return dialog(
      this.close,
      `Send to ${this.address}`,
      { key: "send" },
      h(
        "form",
        { class: "dialog-body", id: "send-form", onsubmit: (event) => this.#submit(event) },
        field("send-body", "Body", "textarea", this.#body, (text) => (this.#body = text), { rows: 6, autofocus: true }),
        field("send-type", "Content-Type", "input", this.#type, (text) => (this.#type = text), { type: "text" }),
        field("send-headers", "Headers", "textarea", this.#headers, (text) => (this.#headers = text), { rows: 2, placeholder: "name: value, one per line" }),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: this.#isPersistent, onchange: (event) => ((this.#isPersistent = event.target.checked), this.draw()) }), h("span", null, "Persistent: survives a restart, with persistence-enabled")),
        this.problem && problemBox(this.problem),
        this.sent && this.#result(),
        shell(this.#command, this.#curl),
      ),
      h("div", { class: "dialog-foot" }, button(this.sent ? "Close" : "Cancel", this.close), h("button", { type: "submit", form: "send-form", class: "button primary" }, "Send")),
    );
  }
}
