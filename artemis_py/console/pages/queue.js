// One queue: numbers, flow, reasons, consumers, messages and operations.

import { url } from "../js/api.js";
import { SPANS, chart, legend } from "../js/chart.js";
import { at, operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count, duration, rate, several } from "../js/format.js";
import { asking, card, chip, empty, facts, head, link, tile, to, toggle, told } from "../js/parts.js";
import { Past, Rates, SERIES } from "../js/rates.js";
import { ahead, grows, states } from "../js/states.js";
import { reasons } from "../js/reasons.js";
import { fieldsOf, shortTable } from "../js/table.js";
import { consumerColumns } from "./consumers.js";
import { Messages } from "./messages.js";
import { AGE } from "./queues.js";
import { actionButtons, missing, sendButton, reportsCard } from "./thing_page.js";

const CONSUMERS_MAX = 20;
const DEPTH = [["depth", "Messages", "warn"]];
const SHOWN = new Set(["browse", "whyNotDelivered", "getHistory"]);
const FIRST = ["sendMessage", "pause", "resume", "updateQueue", "removeAllMessages"];

export class QueuePage {
  #shows = "rates";
  #span = "5 min";
  #rates = new Rates();

  constructor(app, { names: [name], query }) {
    this.app = app;
    this.name = name;
    this.title = name;
    this.request = to("queues", name).slice(1);
    this.consumers = url("consumers", { where: `queue=${name}`, sort: "messagesInTransit:desc", size: CONSUMERS_MAX, fields: fieldsOf(consumerColumns) });
    this.why = `${this.request}/why/not-delivered`;
    this.growing = `${this.request}/why/growing`;
    this.past = new Past(`${this.request}/history`, () => app.draw());
    this.wantsWhy = query.has("why");
    this.messages = at("GET", "/api/queues/{queue}/messages") ? new Messages(app, name, query.get("filter") ?? "") : null;
    this.columns = consumerColumns.filter((column) => column.name !== "queue");
  }

  wants() {
    return [this.request, this.consumers, this.why, ...(this.row !== null && grows(this.row) ? [this.growing] : [])];
  }

  get row() {
    return this.app.feed.value(this.request) ?? null;
  }

  tick(now) {
    if (this.row === null) return;
    const { messagesAdded, messagesAcked, messageCount } = this.row;
    this.#rates.note(this.app.feed.time(this.request, now), { messagesAdded, messagesAcked }, messageCount);
  }

  up = "/queues";

  #options() {
    return { given: { queue: this.name }, preset: this.messages?.preset ?? {}, name: this.name, lost: this.row?.messageCount ?? null, done: () => this.#lookAgain() };
  }

  /** A message was sent from here. */
  sent() {
    this.#lookAgain();
  }

  #lookAgain() {
    this.app.feed.touch();
    this.messages?.look();
  }

  view() {
    const { row } = this;
    const crumb = [link("/queues", "Queues"), row && [" on ", link(to("addresses", row.address), row.address)]];
    if (row === null) {
      const problem = this.app.feed.problem(this.request);
      return [head(this.name, { crumb }), problem ? missing(problem, "See all queues, or create it.") : asking()];
    }
    const isPaused = row.paused;
    const leftOut = new Set([isPaused ? "pause" : "resume", row.enabled === false ? "disable" : "enable"]);
    return [
      head(this.name, {
        crumb,
        chips: [states(row), chip(row.routingType.toLowerCase()), row.durable ? null : chip("not durable")],
        actions: sendButton(this.app, row.address === this.name ? this.name : `${row.address}::${this.name}`).concat(actionButtons(this.app, ["queue"], () => this.#options(), { name: this.name, leftOut, first: row.holdsDeadLetters ? ["retryMessages", ...FIRST] : FIRST })),
      }),
      this.#tiles(row),
      h("div", { class: "columns wide-first", key: "middle" }, this.#flow(), this.#whyCard(row)),
      this.#consumersCard(row),
      this.messages?.view(),
      reportsCard(this.app, ["queue"], { queue: this.name }, SHOWN),
      card("Attributes", facts(row, operation("queue.getAttributes")?.fields ?? [], new Set(["recentDepths"]))),
    ];
  }

  #whyCard(row) {
    const mount = (element) => void (this.wantsWhy && element.scrollIntoView());
    const tell = (request) => told(this.app.feed, request, ({ data }) => reasons(data));
    return h(
      "div",
      { key: "why", id: "why", class: "stack", mount },
      grows(row) && card("Why does it grow?", tell(this.growing)),
      card(row.ackedPerMinute > 0 ? "Why is no more delivered?" : "Why is nothing delivered?", tell(this.why)),
    );
  }

  #tiles(row) {
    const seen = this.#rates.rates;
    const [when, span] = ahead(row);
    return h(
      "div",
      { class: "tiles", key: "tiles" },
      tile("Messages", count(row.messageCount, true), { note: bytes(row.persistentSize) }),
      tile("In delivery", count(row.deliveringCount, true), { note: several(row.consumerCount, "consumer") }),
      tile("Oldest", duration(row[AGE]), { note: "the first message" }),
      tile("In", rate(seen.messagesAdded ?? row.addedPerMinute / 60), { unit: "/s", note: `${count(row.messagesAdded, true)} in total` }),
      tile("Out", rate(seen.messagesAcked ?? row.ackedPerMinute / 60), { unit: "/s", note: `${count(row.messagesAcked, true)} in total` }),
      tile(span ? when : "Trend", span || when.toLowerCase(), { note: "at current rates" }),
    );
  }

  #flow() {
    const history = this.past.with(this.#rates.history);
    const isRates = this.#shows === "rates";
    const series = isRates ? SERIES : DEPTH;
    const show = (what) => ((this.#shows = what), this.app.draw());
    const choice = h(
      "div",
      { class: "chips", role: "group", "aria-label": "What the chart shows" },
      toggle("Rates", isRates, () => show("rates")),
      toggle("Depth", !isRates, () => show("depth")),
      Object.keys(SPANS).map((span) => toggle(span, this.#span === span, () => ((this.#span = span), this.app.draw()))),
    );
    return card("Flow", chart(history, series, isRates ? "Messages per second" : "Messages on the queue", this.#span), { right: [isRates && legend(SERIES), choice] });
  }

  #consumersCard(row) {
    const answer = this.app.feed.value(this.consumers);
    const advice = row.messageCount > 0 ? "Its messages wait until a client subscribes." : "New messages will wait here.";
    const body = told(this.app.feed, this.consumers, ({ data }) => (data.length === 0 ? empty("No consumers", advice) : shortTable("Consumers", this.columns, data, { key: (one) => one.id })));
    const more = (answer?.count ?? 0) > CONSUMERS_MAX ? link(`/consumers?where=${encodeURIComponent(`queue=${this.name}`)}`, `All ${count(answer.count)}`) : null;
    return card("Consumers", body, { bare: true, note: String(answer?.count ?? ""), right: more });
  }

  close() {
    this.past.close();
  }
}
