// The form of the login.

import { basic, login, open } from "./api.js";
import { called, current } from "./brokers.js";
import { h } from "./dom.js";
import { problemBox } from "./parts.js";
import { begin, providers } from "./weblogin.js";

export class SignIn {
  problem = null;
  broker = current(); // whatever is chosen while it is open
  #waiting = [];
  #isToken = false;
  #isTrying = false;
  #providers = [];

  constructor(reason, draw) {
    this.reason = reason;
    this.draw = draw;
    this.#try(async () => (this.#providers = await providers(this.broker)));
  }

  async #try(work) {
    try {
      await work();
    } catch (error) {
      this.problem = error;
    }
    this.draw();
  }

  /** A promise that holds when somebody has logged in. */
  wait() {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  /** There is a login, or nobody wants one here any more. */
  leave() {
    for (const go of this.#waiting) go();
  }

  async #submit(event) {
    event.preventDefault();
    const given = new FormData(event.target);
    const user = this.#isToken ? null : given.get("user");
    const header = this.#isToken ? `Bearer ${given.get("token").trim()}` : basic(user, given.get("password"));
    this.#isTrying = true;
    this.draw();
    try {
      await open("GET", "/api/openapi.json", { header, broker: this.broker });
      login.set(user ?? "token", header, given.get("keep") !== null, null, this.broker);
    } catch (error) {
      // 403: known, but may not read the description; the pages say what is not allowed
      if (error.status === 403) error.advice = "This user may not read the broker's operations: grant the permission view.";
      this.problem = error;
    }
    this.#isTrying = false;
    this.draw();
  }

  view() {
    const field = (id, words, type, more = {}) =>
      h("div", { class: "field", key: id }, h("label", { for: id }, words), h("input", { id, name: id, type, required: true, ...more }));
    return h(
      "main",
      { class: "login", key: "login" },
      h(
        "form",
        { onsubmit: (event) => this.#submit(event), "aria-label": "Log in" },
        h("div", null, h("h1", null, `Log in to ${called(this.broker)}`), h("p", { class: "soft" }, "This broker requires a login.")),
        this.problem && problemBox(this.problem),
        this.#isToken
          ? field("token", "Token", "password", { autocomplete: "off", autofocus: true })
          : [
              field("user", "User", "text", { autocomplete: "username", mount: (element) => element.focus() }),
              field("password", "Password", "password", { autocomplete: "current-password" }),
            ],
        h("label", { class: "check" }, h("input", { type: "checkbox", name: "keep" }), h("span", null, "Keep it until this tab is closed")),
        h("button", { type: "submit", class: "button primary", disabled: this.#isTrying }, this.#isTrying ? "Asking…" : "Log in"),
        this.#providers.map((name) => h("button", { type: "button", class: "button", key: name, onclick: (event) => this.#try(() => begin(this.broker, name, event.target.form.keep.checked)) }, `Log in with ${name}`)),
        h("button", { type: "button", class: "button plain", onclick: () => ((this.#isToken = !this.#isToken), this.draw()) }, this.#isToken ? "Use a user and password" : "Use a token instead"),
      ),
    );
  }
}
