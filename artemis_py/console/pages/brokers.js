// The brokers of this console side by side: state, worst queues, or why one is unreachable.

import { OWN, Watch, add, brokers, called, current, isAdded, placeOf, remove } from "../js/brokers.js";
import { h } from "../js/dom.js";
import { count, several } from "../js/format.js";
import { button, chip, head, searchBox, to } from "../js/parts.js";
import { states } from "../js/states.js";

/** A link to a page of a broker, which keeps the logins of this page. */
function linkTo(app, broker, path, text) {
  const go = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    app.choose(broker, path);
  };
  return h("a", { href: placeOf(broker, path), onclick: go }, text);
}

/** The brokers as cards. */
export function brokerCards(app, watch) {
  return h("div", { class: "fleet", key: "fleet" }, brokers.map((broker) => brokerCard(app, broker, watch.states.get(broker))));
}

function brokerCard(app, broker, state = { word: "asking", look: "" }) {
  const { about, worst } = state;
  return h(
    "section",
    { class: `card${broker === current() ? " current" : ""}`, key: broker, "aria-label": called(broker), "data-state": state.word },
    h("div", { class: "card-head" }, h("span", { class: `dot ${state.look}` }), h("h2", { class: "grow cut" }, linkTo(app, broker, "/", called(broker))), chip(state.word, about ? "" : state.look)),
    h(
      "div",
      { class: "card-body" },
      state.reason && h("span", { class: "small" }, state.reason),
      about && h("span", { class: "soft small" }, broker),
      about && h("span", null, `${several(about.messageCount, "message")} on ${several(about.queueCount, "queue")}, ${several(about.connectionCount, "connection")}`),
      worst?.data.map((row) => h("div", { class: "line", key: row.name }, h("span", { class: "cut" }, linkTo(app, broker, to("queues", row.name), row.name)), states({ ...row, state: row.state.split(",")[0] }, true))),
      worst && h("span", { class: "soft small" }, worst.count === 0 ? "No queue needs attention." : worst.count > worst.data.length && `${count(worst.count - worst.data.length)} more need attention`),
      state.word === "not logged in" && broker !== current() && button("Log in", () => app.choose(broker)),
      isAdded(broker) && app.page instanceof BrokersPage && button("Remove from this list", () => remove(broker), "tiny"),
    ),
  );
}

export class BrokersPage {
  title = "Brokers";
  #problem = null;

  constructor(app) {
    this.app = app;
    this.watch = new Watch(() => app.draw());
  }

  #submit(event) {
    event.preventDefault();
    try {
      add(new FormData(event.target).get("url").trim());
    } catch (error) {
      this.#problem = error.message;
      this.app.draw();
    }
  }

  view() {
    return [
      head(this.title, { sentence: ["Each HTTP acceptor needs ", h("code", null, `allowedOrigins=${OWN}`), " for this page. This browser keeps the list; each broker needs its own login."] }),
      brokerCards(this.app, this.watch),
      h(
        "form",
        { class: "filters", key: "add", onsubmit: (event) => this.#submit(event) },
        searchBox("URL of an HTTP acceptor", { name: "url", id: "broker-url", required: true }),
        h("button", { type: "submit", class: "button primary" }, "Add a broker"),
        this.#problem && h("span", { role: "alert" }, this.#problem),
      ),
    ];
  }

  close() {
    this.watch.close();
  }
}
