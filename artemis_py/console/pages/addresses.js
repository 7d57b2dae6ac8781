// All addresses, and one of them.

import { url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count } from "../js/format.js";
import { asking, card, chip, empty, facts, head, link, tile, to, told } from "../js/parts.js";
import { fieldsOf, shortTable } from "../js/table.js";
import { ListPage } from "./list_page.js";
import { madeColumns } from "./queues.js";
import { actionButtons, missing, reportsCard, sendButton } from "./thing_page.js";

const columns = [
  { name: "name", width: [130, 2], cell: (row) => link(to("addresses", row.name), row.name) },
  { name: "state", sort: false, width: [106, 1.2], fields: ["paging", "fullPolicy", "droppedMessageCount", "autoCreated", "paused", "blocked"], cell: (row) => addressStates(row) },
  { name: "routingTypes", title: "Routing", width: [90, 0.8], from: 860, cell: (row) => row.routingTypes.toLowerCase().replace(",", ", ") },
  { name: "queueCount", title: "Queues", width: 64, isNumber: true, from: 560 },
  { name: "messageCount", title: "Messages", width: 80, isNumber: true },
  { name: "addressSize", title: "Memory", width: 90, isNumber: true, from: 700, cell: (row) => bytes(row.addressSize) },
  { name: "addressLimitPercent", title: "Full", width: 96, from: 860, sentence: "Share of its limit", cell: (row) => fullness(row) },
  { name: "unroutedMessageCount", title: "Unrouted", width: 84, isNumber: true, from: 1080, sentence: "Messages that no queue matched" },
];

function addressStates(row) {
  const found = [];
  if (row.blocked) found.push(chip("address-blocked", "bad", "Senders wait until it is unblocked."));
  if (row.paused) found.push(chip("paused", "warn", "Its queues deliver nothing until it is resumed."));
  if (row.paging) found.push(chip("paging", "warn", "New messages go to pages on disk."));
  if (row.addressLimitPercent >= 100 && !row.paging) found.push(chip(`full: ${(row.fullPolicy ?? "").toLowerCase()}`, "bad", "Its limit is reached."));
  else if (row.addressLimitPercent >= 80 && !row.paging) found.push(chip("nearly full", "warn", "More than 80 % of its limit is used."));
  if (row.droppedMessageCount > 0) found.push(chip("has dropped", "warn", "Messages were dropped because it was full."));
  return h("span", { class: "chips" }, found.length > 0 ? found : chip(row.autoCreated ? "auto-created" : "open"));
}

function fullness(row) {
  const share = Math.min(100, row.addressLimitPercent);
  const look = share >= 90 ? "bad" : share >= 70 ? "warn" : "";
  return h("div", { class: "bar", role: "meter", "aria-label": "Used of its limit", "aria-valuemin": 0, "aria-valuemax": 100, "aria-valuenow": share, title: `${row.addressLimitPercent} %` }, share > 0 && h("div", { class: look, style: { width: `${share}%` } }));
}

export class AddressesPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "addresses",
      one: "address",
      filterBy: "name",
      example: "paging=true",
      columns,
      sort: "name",
      quick: [
        ["With messages", ["messageCount>0"]],
        ["Paging", ["paging=true"]],
        ["Blocked", ["blocked=true"]],
        ["Nearly full", ["addressLimitPercent>=80"]],
        ["Has dropped", ["droppedMessageCount>0"]],
        ["No queue", ["queueCount=0"]],
      ],
      open: (row) => app.go(to("addresses", row.name)),
      nothing: ["No addresses", "Declare them in broker.xml, or let clients create them."],
    });
  }
}

const QUEUES_MAX = 50;

export class AddressPage {
  constructor(app, { names: [name] }) {
    this.app = app;
    this.name = name;
    this.title = name;
    this.request = to("addresses", name).slice(1);
    this.queues = url("queues", { where: `address=${name}`, sort: "messageCount:desc", size: QUEUES_MAX, fields: fieldsOf(madeColumns) });
  }

  wants() {
    return [this.request, this.queues];
  }

  up = "/addresses";

  view() {
    const row = this.app.feed.value(this.request) ?? null;
    const crumb = link("/addresses", "Addresses");
    if (row === null) {
      const problem = this.app.feed.problem(this.request);
      return [head(this.name, { crumb }), problem ? missing(problem, "See all addresses.") : asking()];
    }
    const options = () => ({ given: { address: this.name }, name: this.name, lost: row.messageCount });
    return [
      head(this.name, { crumb, chips: [addressStates(row), row.routingTypes.split(",").map((one) => chip(one.toLowerCase()))], actions: sendButton(this.app, this.name).concat(actionButtons(this.app, ["address"], options, { name: this.name, first: ["pause", "resume", "updateAddress", "purge"], leftOut: new Set([row.paused ? "pause" : "resume", row.blocked ? "block" : "unblock"]) })) }),
      h(
        "div",
        { class: "tiles", key: "tiles" },
        tile("Messages in memory", count(row.messageCount, true), { note: "each counted once" }),
        tile("Memory", bytes(row.addressSize), { note: row.fullPolicy ? `then ${row.fullPolicy.toLowerCase()}` : "no limit of its own" }),
        tile("Routed", count(row.routedMessageCount, true), { note: "since the start" }),
        tile("Unrouted", count(row.unroutedMessageCount, true), { note: "no queue matched" }),
        tile("Dropped", count(row.droppedMessageCount, true), { note: "while it was full" }),
      ),
      row.addressLimitPercent > 0 && card(`${row.addressLimitPercent} % of its limit`, fullness(row)),
      this.#queuesCard(),
      reportsCard(this.app, ["address"], { address: this.name }),
      card("Attributes", facts(row, operation("address.getAttributes")?.fields ?? [])),
    ];
  }

  #queuesCard() {
    const answer = this.app.feed.value(this.queues);
    const body = told(this.app.feed, this.queues, ({ data }) => (data.length === 0 ? empty("No queues", "Messages sent here reach no queue. Create one, or subscribe.") : shortTable("Queues", madeColumns, data, { open: (one) => this.app.go(to("queues", one.name)) })));
    const more = (answer?.count ?? 0) > QUEUES_MAX ? link(`/queues?where=${encodeURIComponent(`address=${this.name}`)}`, `All ${count(answer.count)}`) : null;
    return card("Queues", body, { bare: true, note: String(answer?.count ?? ""), right: more });
  }
}
