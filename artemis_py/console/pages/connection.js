// One client: who it is, what it consumes, and how to end it.

import { url } from "../js/api.js";
import { operation } from "../js/description.js";
import { card, empty, facts, head, link, to, told } from "../js/parts.js";
import { shortTable } from "../js/table.js";
import { connectionState } from "./connections.js";
import { consumerColumns, consumerFields } from "./consumers.js";
import { actionButtons, reportsCard } from "./thing_page.js";

export class ConnectionPage {
  constructor(app, { names: [number] }) {
    this.app = app;
    this.number = number;
    this.title = `Connection ${number}`;
    this.request = url("connections", { where: `connectionID=${number}` });
    this.consumers = url("consumers", { where: `connection=${number}`, size: 50, fields: consumerFields().join(",") });
    this.columns = consumerColumns().filter((column) => column.name !== "clientID");
  }

  wants() {
    return [this.request, this.consumers];
  }

  keys() {
    return { u: [() => this.app.go("/connections"), "Up to all connections"] };
  }

  view() {
    const { app } = this;
    const crumb = link("/connections", "Connections");
    const answer = app.feed.value(this.request);
    const row = answer?.data[0];
    if (row === undefined) {
      return [head(this.title, { crumb }), told(app.feed, this.request, () => empty("This client has left", "Its number is not used again while the broker runs."))];
    }
    const options = () => ({ given: { connection: this.number }, name: this.number });
    return [
      head(row.clientID ?? row.user ?? this.title, { crumb: [crumb, ` no. ${this.number}`], chips: connectionState(row), actions: actionButtons(app, ["connection"], options, { name: `connection ${this.number}` }) }),
      card("Who it is", facts(row, operation("listConnections")?.fields ?? [])),
      card(
        "What it consumes",
        told(app.feed, this.consumers, ({ data }) => (data.length === 0 ? empty("It has no subscription", "It may send, or wait for something to do.") : shortTable("Consumers", this.columns, data, { key: (one) => one.id, open: (one) => app.go(to("queues", one.queue)) }))),
        { bare: true },
      ),
      reportsCard(app, ["connection"], { connection: this.number }),
    ];
  }
}
