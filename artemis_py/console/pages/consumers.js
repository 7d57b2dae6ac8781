// All consumers.

import { ago } from "../js/format.js";
import { chip, link, to } from "../js/parts.js";
import { ListPage } from "./list_page.js";

const LOOKS = { "takes messages": "good", browses: "", "does not read": "bad", "window used up": "warn", "backlog used up": "warn" };

const consumerState = (row) => chip(row.status, LOOKS[row.status] ?? "");

export const consumerColumns = [
  { name: "id", title: "No.", width: 56, isNumber: true, from: 560, cell: (row) => String(row.id) },
  { name: "queue", width: "minmax(min(110px, 26vw), 1.4fr)", cell: (row) => link(to("queues", row.queue), row.queue) },
  { name: "status", title: "State", width: [130, 0.9], cell: consumerState },
  { name: "clientID", title: "Client", fields: ["clientID", "user", "connection"], width: [90, 1], from: 700, cell: (row) => link(to("connections", row.connection), row.clientID ?? row.user ?? `connection ${row.connection}`) },
  { name: "filter", title: "Selector", width: [100, 1.2], from: 1000 },
  { name: "messagesInTransit", title: "In flight", width: 76, isNumber: true, sentence: "Messages that it has not acknowledged" },
  { name: "creationTime", title: "Since", width: 84, isNumber: true, from: 1180, sentence: "Time since it subscribed", cell: (row) => ago(row.creationTime) },
  { name: "lastAcknowledgedTime", title: "Last ack", width: 84, isNumber: true, from: 860, sentence: "How long ago it last acknowledged a message", cell: (row) => (row.lastAcknowledgedTime > 0 ? ago(row.lastAcknowledgedTime) : "never") },
];

export class ConsumersPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "consumers",
      one: "consumer",
      filterBy: "queue",
      example: "messagesInTransit>100",
      columns: consumerColumns,
      sort: "messagesInTransit:desc",
      quick: [
        ["Full", ["status~used up"]],
        ["Does not read", ["status=does not read"]],
        ["Browsers", ["browseOnly=true"]],
      ],
      open: (row) => app.go(to("queues", row.queue)),
      nothing: ["No consumers", "Clients that subscribe to a queue are listed here."],
    });
  }
}
