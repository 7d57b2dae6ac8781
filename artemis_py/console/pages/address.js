// One address: its numbers, its queues, and what can be done.

import { url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count } from "../js/format.js";
import { asking, card, chip, empty, facts, head, link, tile, to, told } from "../js/parts.js";
import { shortTable } from "../js/table.js";
import { addressStates, fullness } from "./addresses.js";
import { baseFields, madeColumns } from "./queue_columns.js";
import { actionButtons, missing, reportsCard, sendButton } from "./thing_page.js";

const QUEUES_MAX = 50;

export class AddressPage {
  constructor(app, { names: [name] }) {
    this.app = app;
    this.name = name;
    this.title = name;
    this.request = to("addresses", name).slice(1);
    this.queues = url("queues", { where: `address=${name}`, sort: "messageCount:desc", size: QUEUES_MAX, fields: baseFields().join(",") });
    this.columns = madeColumns();
  }

  wants() {
    return [this.request, this.queues];
  }

  keys() {
    return { u: [() => this.app.go("/addresses"), "Up to all addresses"] };
  }

  view() {
    const row = this.app.feed.value(this.request) ?? null;
    const crumb = link("/addresses", "Addresses");
    if (row === null) {
      const problem = this.app.feed.problem(this.request);
      return [head(this.name, { crumb }), problem ? missing(problem, "Look at all addresses.") : asking()];
    }
    const options = () => ({ given: { address: this.name }, name: this.name, lost: row.messageCount });
    return [
      head(this.name, { crumb, chips: [addressStates(row), row.routingTypes.split(",").map((one) => chip(one.toLowerCase()))], actions: sendButton(this.app, this.name).concat(actionButtons(this.app, ["address"], options, { name: this.name, first: ["pause", "resume", "updateAddress", "purge"], leftOut: new Set([row.paused ? "pause" : "resume", row.blocked ? "block" : "unblock"]) })) }),
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("Messages in memory", count(row.messageCount, true), { note: "each once" }),
        tile("Memory", bytes(row.addressSize), { note: row.fullPolicy ? `then ${row.fullPolicy.toLowerCase()}` : "no limit of its own" }),
        tile("Routed", count(row.routedMessageCount, true), { note: "since the start" }),
        tile("Unrouted", count(row.unroutedMessageCount, true), { note: "no queue took them" }),
        tile("Dropped", count(row.droppedMessageCount, true), { note: "when it was full" }),
      ),
      row.addressLimitPercent > 0 && card(`${row.addressLimitPercent} % of its limit`, fullness(row)),
      this.#queuesCard(),
      reportsCard(this.app, ["address"], { address: this.name }),
      card("All about it", facts(row, operation("address.getAttributes")?.fields ?? [])),
    ];
  }

  #queuesCard() {
    const answer = this.app.feed.value(this.queues);
    const body = told(this.app.feed, this.queues, ({ data }) => (data.length === 0 ? empty("It has no queue", "What is sent here goes nowhere. Make a queue, or subscribe to it.") : shortTable("Queues", this.columns, data, { open: (one) => this.app.go(to("queues", one.name)) })));
    const more = (answer?.count ?? 0) > QUEUES_MAX ? link(`/queues?where=${encodeURIComponent(`address=${this.name}`)}`, `All ${count(answer.count)}`) : null;
    return card("Queues", body, { bare: true, note: String(answer?.count ?? ""), right: more });
  }
}
