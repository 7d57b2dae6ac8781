// The clients that are connected, and one of them.

import { url } from "../js/api.js";
import { operation } from "../js/description.js";
import { bytes, count } from "../js/format.js";
import { card, chip, empty, facts, head, link, to, told } from "../js/parts.js";
import { fieldsOf, shortTable } from "../js/table.js";
import { consumerColumns } from "./consumers.js";
import { ListPage } from "./list_page.js";
import { actionButtons, reportsCard } from "./thing_page.js";

const STATES = {
  open: ["good", "Connected."],
  blocked: ["bad", "Its sends wait: an address or queue is full."],
  stalled: ["warn", "It does not read from its socket."],
  new: ["", "Not logged in yet."],
  closing: ["", "It ends soon."],
};

const connectionState = (row) => chip(row.state, ...(STATES[row.state] ?? []));

/** The acceptors that have an end. */
export const ROOM = url("acceptors", { where: ["started=true", "connectionsLeft>=0"], fields: "name,connectionCount,connectionsLeft" });

function room(app) {
  const rows = app.feed.value(ROOM)?.data ?? [];
  return rows.length > 0 ? rows.map((row) => `${row.name}: ${count(row.connectionCount)} of ${count(row.connectionCount + row.connectionsLeft)} connections`).join(", ") + "." : null;
}

const columns = [
  { name: "connectionID", title: "No.", width: 56, isNumber: true, cell: (row) => link(to("connections", row.connectionID), String(row.connectionID)) },
  { name: "clientID", title: "Client", width: [100, 1.4], cell: (row) => row.clientID ?? row.user ?? "–" },
  { name: "state", width: 90, cell: connectionState },
  { name: "remoteAddress", title: "From", width: [120, 1.1], from: 700 },
  { name: "user", width: [80, 0.8], from: 860 },
  { name: "protocol", width: 92, from: 1080 },
  { name: "subscriptionCount", title: "Subscriptions", width: 104, isNumber: true, from: 700 },
  { name: "heldBytes", title: "Memory", width: 86, isNumber: true, from: 560, cell: (row) => bytes(row.heldBytes) },
];

export class ConnectionsPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "connections",
      one: "connection",
      wants: [ROOM],
      sentence: () => room(app),
      filterBy: "clientID",
      example: "state=blocked",
      columns,
      sort: "connectionID:desc",
      quick: [
        ["Blocked", ["state=blocked"]],
        ["Stalled", ["state=stalled"]],
        ["No subscription", ["subscriptionCount=0"]],
      ],
      open: (row) => app.go(to("connections", row.connectionID)),
      nothing: ["No connections", "Clients connect to the acceptors in broker.xml.", "artemis-py perf"],
    });
  }
}

export class ConnectionPage {
  constructor(app, { names: [number] }) {
    this.app = app;
    this.number = number;
    this.title = `Connection ${number}`;
    this.request = url("connections", { where: `connectionID=${number}` });
    this.consumers = url("consumers", { where: `connection=${number}`, size: 50, fields: fieldsOf(consumerColumns) });
    this.columns = consumerColumns.filter((column) => column.name !== "clientID");
  }

  wants() {
    return [this.request, this.consumers];
  }

  up = "/connections";

  view() {
    const { app } = this;
    const crumb = link("/connections", "Connections");
    const answer = app.feed.value(this.request);
    const row = answer?.data[0];
    if (row === undefined) {
      return [head(this.title, { crumb }), told(app.feed, this.request, () => empty("Disconnected", "Its number is not used again until a restart."))];
    }
    const options = () => ({ given: { connection: this.number }, name: this.number });
    return [
      head(row.clientID ?? row.user ?? this.title, { crumb: [crumb, ` no. ${this.number}`], chips: connectionState(row), actions: actionButtons(app, ["connection"], options, { name: `connection ${this.number}` }) }),
      card("Attributes", facts(row, operation("listConnections")?.fields ?? [])),
      card(
        "Subscriptions",
        told(app.feed, this.consumers, ({ data }) => (data.length === 0 ? empty("No subscriptions", "It may still send.") : shortTable("Consumers", this.columns, data, { key: (one) => one.id, open: (one) => app.go(to("queues", one.queue)) }))),
        { bare: true },
      ),
      reportsCard(app, ["connection"], { connection: this.number }),
    ];
  }
}
