// The form that sends a message, also as command and curl line.

import { current } from "./brokers.js";
import { dialog } from "./dialog.js";
import { login, open, url } from "./api.js";
import { h } from "./dom.js";
import { quoted } from "./lines.js";
import { button, copyLine, problemBox, to } from "./parts.js";

export class Send {
  problem = null;
  sent = null;
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
    } catch (error) {
      this.problem = error;
    }
    this.draw();
  }

  view() {
    const change = (set) => (event) => (set(event.target.value), this.draw());
    return dialog(
      this.close,
      { key: "send", "aria-labelledby": "send-title" },
      h("div", { class: "dialog-head" }, h("h2", { id: "send-title", class: "grow cut" }, `Send to ${this.address}`)),
      h(
        "form",
        { class: "dialog-body", id: "send-form", onsubmit: (event) => this.#submit(event) },
        h("div", { class: "field" }, h("label", { for: "send-body" }, "Body"), h("textarea", { id: "send-body", rows: 6, autofocus: true, spellcheck: "false", value: this.#body, oninput: change((text) => (this.#body = text)) })),
        h("div", { class: "field" }, h("label", { for: "send-type" }, "Content-Type"), h("input", { type: "text", id: "send-type", value: this.#type, oninput: change((text) => (this.#type = text)) })),
        h("div", { class: "field" }, h("label", { for: "send-headers" }, "Headers"), h("textarea", { id: "send-headers", rows: 2, placeholder: "name: value, one per line", spellcheck: "false", value: this.#headers, oninput: change((text) => (this.#headers = text)) })),
        h("label", { class: "check" }, h("input", { type: "checkbox", checked: this.#isPersistent, onchange: (event) => ((this.#isPersistent = event.target.checked), this.draw()) }), h("span", null, "Persistent: survives a restart, with persistence-enabled")),
        this.problem && problemBox(this.problem),
        this.sent && h("div", { class: "chips", role: "status", id: "send-result" }, h("span", { class: `chip ${this.sent.routed === false || this.sent.duplicate ? "warn" : "good"}` }, this.sent.routed === false ? "No queue matched: it went to the dead-letter address" : this.sent.duplicate ? "Dropped as a duplicate" : "Sent")),
        h("div", { class: "lines" }, h("span", { class: "soft small" }, "From a shell"), copyLine("command", this.#command), copyLine("curl line", this.#curl)),
      ),
      h("div", { class: "dialog-foot" }, button(this.sent ? "Close" : "Cancel", this.close), h("button", { type: "submit", form: "send-form", class: "button primary" }, "Send")),
    );
  }
}
