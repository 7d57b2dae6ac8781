// The broker's health: a sentence, numbers, usage, and the worst and largest queues.

import { url } from "../js/api.js";
import { Watch, brokers } from "../js/brokers.js";
import { SPANS, chart, legend } from "../js/chart.js";
import { h } from "../js/dom.js";
import { bytes, clock, count, rate, upper } from "../js/format.js";
import { ASKED, readiness, sentence } from "../js/health.js";
import { card, empty, link, meter, problemBox, tile, to, toggle, told } from "../js/parts.js";
import { Past, SERIES } from "../js/rates.js";
import { fieldsOf, shortTable } from "../js/table.js";
import { brokerCards } from "./brokers.js";
import { ROOM } from "./connections.js";
import { eventWords } from "./events.js";
import { AGE, madeColumns } from "./queues.js";

const HEALTH_MS = 5000;
const FULLEST = url("addresses", { where: "addressLimitPercent>0", sort: "addressLimitPercent:desc", size: 3, fields: "name,addressLimitPercent,fullPolicy" });
const SHOWN = new Set(["name", "state", "messageCount", AGE, "in", "out", "drain", "spark"]);
const ALWAYS = new Set(["name", "state", "messageCount"]);
const WORST_MAX = 20;
const WORST_SHOWN = 8;

export class OverviewPage {
  title = "Overview";
  #stop = new AbortController();
  #ready = null;
  #span = "5 min";

  constructor(app) {
    this.app = app;
    const of = (query) => url("queues", { ...query, fields: `severity,${fieldsOf(madeColumns)}` });
    this.largest = of({ sort: "messageCount:desc", size: 8 });
    this.worst = of({ where: "severity>0", sort: "messageCount:desc", size: WORST_MAX });
    this.columns = madeColumns.filter(({ name }) => SHOWN.has(name)).map((column) => ({ ...column, from: ALWAYS.has(column.name) ? 0 : Math.max(column.from ?? 0, 620) }));
    this.past = new Past("broker/history", () => app.draw());
    this.watch = brokers.length > 1 ? new Watch(() => app.draw()) : null;
    this.#look();
    this.timer = setInterval(() => document.hidden || this.#look(), HEALTH_MS);
  }

  async #look() {
    if (this.app.feed.status === "lost") return;
    this.#ready = await readiness(this.#stop.signal);
    this.app.draw();
  }

  wants() {
    return [this.worst, this.largest, FULLEST, ROOM, ...Object.values(ASKED)];
  }

  view() {
    const { app } = this;
    const { broker } = app;
    const answers = Object.fromEntries(Object.entries(ASKED).map(([name, text]) => [name, app.feed.value(text)]));
    const { totals } = app;
    const problem = app.feed.problem("broker");
    const worst = app.feed.value(this.worst);
    const sorted = worst && { ...worst, data: [...worst.data].sort((a, b) => b.severity - a.severity || b.messageCount - a.messageCount) };
    return [
      h("header", { key: "health", class: "stack" }, h("h1", { class: "hidden" }, "Overview"), sentence(answers, sorted, this.#ready, app.feed.status !== "lost"), this.#warnings()),
      this.watch && brokerCards(app, this.watch),
      problem && problemBox(problem),
      this.#tiles(broker, totals),
      h("div", { class: "columns wide-first", key: "middle" }, this.#flow(totals), this.#room(broker)),
      sorted?.count > 0 && card("Need attention", this.#table("Need attention", sorted.data.slice(0, WORST_SHOWN)), { bare: true, right: link("/queues?show=Need%20attention", `All ${count(sorted.count)}`) }),
      this.#queues(),
      app.feed.notifications.length > 0 && this.#events(),
    ];
  }

  #warnings() {
    return (this.#ready?.warnings ?? []).map((text) => h("p", { class: "warning", key: text }, /^the config/.test(text) ? link("/configuration", upper(text)) : upper(text)));
  }

  #tiles(broker, totals) {
    const now = (name) => totals.rates[name] ?? this.past.with().at(-1)?.[name];
    const dash = (of) => (broker === null ? "–" : of(broker));
    return h(
      "div",
      { class: "tiles", key: "tiles" },
      tile("Messages", dash((b) => count(b.messageCount, true)), { href: "/queues?show=With%20messages", note: dash((b) => `on ${count(b.queueCount)} queues`) }),
      tile("In", rate(now("messagesAdded")), { unit: "/s", note: dash((b) => `${count(b.totalMessagesAdded, true)} in total`) }),
      tile("Out", rate(now("messagesAcked")), { unit: "/s", note: dash((b) => `${count(b.totalMessagesAcknowledged, true)} in total`) }),
      tile("Consumers", dash((b) => count(b.consumerCount)), { href: "/consumers", note: "on all queues" }),
      tile("Connections", dash((b) => count(b.connectionCount)), { href: "/connections", note: "open now" }),
    );
  }

  #flow(totals) {
    const choice = Object.keys(SPANS).map((span) => toggle(span, this.#span === span, () => ((this.#span = span), this.app.draw())));
    return card("Messages per second", chart(this.past.with(totals.history), SERIES, "Messages per second, in and out", this.#span), { right: [legend(SERIES), choice] });
  }

  #room(broker) {
    const fullest = this.app.feed.value(FULLEST)?.data ?? [];
    return card("Usage", [
      broker && meter("Memory", broker.addressMemoryUsage, broker.globalMaxSize, bytes),
      broker?.diskStoreUsage !== undefined && meter("Disk", broker.diskStoreUsage, 100, null),
      (this.app.feed.value(ROOM)?.data ?? []).map((row) => meter(link("/connections", `Connections to ${row.name}`), row.connectionCount, row.connectionCount + row.connectionsLeft, count, null, `Connections to ${row.name}`)),
      fullest.map((row) => meter(link(to("addresses", row.name), row.name), row.addressLimitPercent, 100, null, `then: ${row.fullPolicy?.toLowerCase() ?? "nothing"}`, row.name)),
    ]);
  }

  #table(label, rows) {
    return shortTable(label, this.columns, rows, { open: (row) => this.app.go(to("queues", row.name)) });
  }

  #queues() {
    const body = told(this.app.feed, this.largest, ({ data }) => (data.length === 0 ? empty("No queues", "Declare them in broker.xml, or let clients create them.") : this.#table("Largest queues", data)));
    return card("Largest queues", body, { bare: true, right: link("/queues", "All queues") });
  }

  #events() {
    const rows = this.app.feed.notifications.slice(0, 6);
    const body = h("ol", { class: "stops" }, rows.map((one) => h("li", { class: "stop", key: one.id ?? one.at }, h("span", { class: "soft" }, clock(one.at)), eventWords(one))));
    return card("Recent events", body, { right: link("/events", "All events") });
  }

  close() {
    clearInterval(this.timer);
    this.past.close();
    this.watch?.close();
    this.#stop.abort();
  }
}
