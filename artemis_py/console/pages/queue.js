// One queue: its numbers, its flow, what stands in the way, its consumers, its messages, and what can be done.

import { url } from "../js/api.js";
import { chart } from "../js/chart.js";
import { at, has, operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count, duration, rate, several } from "../js/format.js";
import { card, chip, empty, facts, head, link, tile, to, toggle } from "../js/parts.js";
import { drainMs } from "../js/states.js";
import { reasons } from "../js/reasons.js";
import { shortTable } from "../js/table.js";
import { consumerColumns, consumerFields } from "./consumers.js";
import { gates } from "./gates.js";
import { Messages } from "./messages.js";
import { ageField, noteQueues, states } from "./queue_columns.js";
import { actionButtons, missing, sendButton, reportsCard } from "./thing_page.js";

const CONSUMERS_MAX = 20;
const RATES = [
  ["messagesAdded", "In", "in"],
  ["messagesAcked", "Out", "out"],
];
const DEPTH = [["depth", "Messages", "warn"]];
const SHOWN = new Set(["browse", "whyNotDelivered"]);
const FIRST = ["sendMessage", "pause", "resume", "updateQueue", "removeAllMessages"];

export class QueuePage {
  #shows = "rates";

  constructor(app, { names: [name], query }) {
    this.app = app;
    this.name = name;
    this.title = name;
    this.request = to("queues", name).slice(1);
    this.consumers = url("consumers", { where: `queue=${name}`, sort: "messagesInTransit:desc", size: CONSUMERS_MAX, fields: consumerFields().join(",") });
    this.why = has("queue.whyNotDelivered") ? `${this.request}/why/not-delivered` : null;
    this.wantsWhy = query.has("why");
    this.messages = at("GET", "/api/queues/{queue}/messages") ? new Messages(app, name, query.get("filter") ?? "") : null;
    this.columns = consumerColumns().filter((column) => column.name !== "queue");
  }

  wants() {
    return [this.request, this.consumers, ...(this.why ? [this.why] : [])];
  }

  get row() {
    return this.app.feed.value(this.request) ?? null;
  }

  tick(now) {
    if (this.row !== null) noteQueues(this.app, this.request, [this.row], now);
  }

  keys() {
    return { u: [() => this.app.go("/queues"), "Up to all queues"] };
  }

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
      return [head(this.name, { crumb }), problem && missing(problem, "Look at all queues, or make it.")];
    }
    const isPaused = row.paused;
    const leftOut = new Set([isPaused ? "pause" : "resume", row.enabled === false ? "disable" : "enable"]);
    return [
      head(this.name, {
        crumb,
        chips: [states(this.app, row), chip(row.routingType.toLowerCase()), row.durable ? null : chip("not durable")],
        actions: sendButton(this.app, row.address === this.name ? this.name : `${row.address}::${this.name}`).concat(actionButtons(this.app, ["queue"], () => this.#options(), { name: this.name, leftOut, first: row.holdsDeadLetters ? ["retryMessages", ...FIRST] : FIRST })),
      }),
      this.#tiles(row),
      h("div", { class: "columns wide-first", key: "middle" }, this.#flow(), this.#whyCard(row)),
      this.#consumersCard(row),
      this.messages?.view(),
      reportsCard(this.app, ["queue"], { queue: this.name }, SHOWN),
      card("All about it", facts(row, operation("queue.getAttributes")?.fields ?? [])),
    ];
  }

  #whyCard(row) {
    const answer = this.why && this.app.feed.value(this.why);
    const body = answer ? reasons(answer.data) : gates(row, this.app.rates.of(this.name));
    const flows = this.app.rates.of(this.name)?.rates.messagesAcked > 0;
    const mount = (element) => void (this.wantsWhy && element.scrollIntoView());
    return h("div", { key: "why", id: "why", mount }, card(flows ? "Why is no more delivered?" : "Why is nothing delivered?", body));
  }

  #tiles(row) {
    const seen = this.app.rates.of(this.name);
    const age = ageField();
    return h(
      "div",
      { class: "tiles", key: "tiles" },
      tile("Messages", count(row.messageCount, true), { note: bytes(row.persistentSize) }),
      tile("In delivery", count(row.deliveringCount, true), { note: several(row.consumerCount, "consumer") }),
      age && tile("Oldest", duration(row[age]), { note: "how long the first one waits" }),
      tile("In", rate(seen?.rates.messagesAdded), { unit: "/s", note: `${count(row.messagesAdded, true)} in all` }),
      tile("Out", rate(seen?.rates.messagesAcked), { unit: "/s", note: `${count(row.messagesAcked, true)} in all` }),
      tile("Drained in", duration(drainMs(row, seen)), { note: "if it goes on like this" }),
    );
  }

  #flow() {
    const history = this.app.rates.of(this.name)?.history ?? [];
    const isRates = this.#shows === "rates";
    const series = isRates ? RATES : DEPTH;
    const show = (what) => ((this.#shows = what), this.app.draw());
    const choice = h(
      "div",
      { class: "chips", role: "group", "aria-label": "What the chart shows" },
      toggle("Rates", isRates, () => show("rates")),
      toggle("Depth", !isRates, () => show("depth")),
    );
    return card("Flow", chart(history, series, isRates ? "Messages in a second" : "Messages on the queue"), { right: choice });
  }

  #consumersCard(row) {
    const answer = this.app.feed.value(this.consumers);
    const rows = answer?.data ?? [];
    const advice = row.messageCount > 0 ? "Its messages wait for somebody who subscribes." : "It fills up if somebody sends.";
    const body = answer !== undefined && rows.length === 0 ? empty("Nobody consumes this queue", advice) : shortTable("Consumers", this.columns, rows, { key: (one) => one.id });
    const more = (answer?.count ?? 0) > CONSUMERS_MAX ? link(`/consumers?where=${encodeURIComponent(`queue=${this.name}`)}`, `All ${count(answer.count)}`) : null;
    return card("Consumers", body, { bare: true, note: String(answer?.count ?? ""), right: more });
  }
}
