// All consumers.

import { ago, count } from "../js/format.js";
import { chip, link, to } from "../js/parts.js";
import { ListPage } from "./list_page.js";

const LOOKS = { "takes messages": "good", browses: "", "does not read": "bad", "window used up": "warn", "backlog used up": "warn" };

const consumerState = (row) => chip(row.status, LOOKS[row.status] ?? "");

export const consumerColumns = () => [
  { name: "id", title: "No.", sort: true, width: "56px", isNumber: true, from: 560, cell: (row) => String(row.id) },
  { name: "queue", title: "Queue", sort: true, width: "minmax(min(110px, 26vw), 1.4fr)", cell: (row) => link(to("queues", row.queue), row.queue) },
  { name: "status", title: "State", sort: true, width: "minmax(130px, 0.9fr)", cell: consumerState },
  { name: "clientID", title: "Client", sort: true, width: "minmax(90px, 1fr)", from: 700, cell: (row) => link(to("connections", row.connection), row.clientID ?? row.user ?? `connection ${row.connection}`) },
  { name: "filter", title: "Selector", sort: true, width: "minmax(100px, 1.2fr)", from: 1000, cell: (row) => row.filter ?? "–" },
  { name: "messagesInTransit", title: "In flight", sort: true, width: "76px", isNumber: true, sentence: "Messages that it has and has not settled", cell: (row) => count(row.messagesInTransit, true) },
  { name: "creationTime", title: "Since", sort: true, width: "84px", isNumber: true, from: 1180, sentence: "For how long it is there", cell: (row) => ago(row.creationTime) },
  { name: "lastAcknowledgedTime", title: "Last ack", sort: true, width: "84px", isNumber: true, from: 860, sentence: "How long ago it last acknowledged a message", cell: (row) => (row.lastAcknowledgedTime > 0 ? ago(row.lastAcknowledgedTime) : "never") },
];

const CONSUMER_FIELDS = ["id", "queue", "status", "clientID", "user", "connection", "filter", "messagesInTransit", "creationTime", "lastAcknowledgedTime"];

export const consumerFields = () => CONSUMER_FIELDS;

export class ConsumersPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "consumers",
      one: "consumer",
      filterBy: "queue",
      example: "messagesInTransit>100",
      columns: consumerColumns(),
      fields: consumerFields,
      sort: "messagesInTransit:desc",
      quick: [
        ["Full", ["status~used up"]],
        ["Does not read", ["status=does not read"]],
        ["Browsers", ["browseOnly=true"]],
      ],
      open: (row) => app.go(to("queues", row.queue)),
      nothing: ["Nobody consumes", "A client that subscribes to a queue is listed here."],
    });
  }
}
