// The clients that are connected.

import { url } from "../js/api.js";
import { bytes, count } from "../js/format.js";
import { chip, link, to } from "../js/parts.js";
import { ListPage } from "./list_page.js";

const LOOKS = { open: "good", blocked: "bad", stalled: "warn", new: "", closing: "" };
const SENTENCES = {
  open: "It is connected, and nothing is in its way.",
  blocked: "It waits for room: a full address or queue stops it.",
  stalled: "It does not read what the broker sends.",
  new: "It has not said who it is yet.",
  closing: "It is about to end.",
};

export const connectionState = (row) => chip(row.state, LOOKS[row.state] ?? "", SENTENCES[row.state] ?? null);

/** The acceptors that have an end. */
export const ROOM = url("acceptors", { where: ["started=true", "connectionsLeft>=0"], fields: "name,connectionCount,connectionsLeft" });

function room(app) {
  const rows = app.feed.value(ROOM)?.data ?? [];
  return rows.length > 0 ? rows.map((row) => `${row.name}: ${count(row.connectionCount)} of ${count(row.connectionCount + row.connectionsLeft)} connections`).join(", ") + "." : null;
}

const columns = () => [
  { name: "connectionID", title: "No.", sort: true, width: "56px", isNumber: true, cell: (row) => link(to("connections", row.connectionID), String(row.connectionID)) },
  { name: "clientID", title: "Client", sort: true, width: "minmax(100px, 1.4fr)", cell: (row) => row.clientID ?? row.user ?? "–" },
  { name: "state", title: "State", sort: true, width: "90px", cell: connectionState },
  { name: "remoteAddress", title: "From", sort: true, width: "minmax(120px, 1.1fr)", from: 700, cell: (row) => row.remoteAddress ?? "–" },
  { name: "user", title: "User", sort: true, width: "minmax(80px, 0.8fr)", from: 860, cell: (row) => row.user ?? "–" },
  { name: "protocol", title: "Protocol", sort: true, width: "92px", from: 1080, cell: (row) => row.protocol },
  { name: "subscriptionCount", title: "Subscriptions", sort: true, width: "104px", isNumber: true, from: 700, cell: (row) => count(row.subscriptionCount) },
  { name: "heldBytes", title: "Memory", sort: true, width: "86px", isNumber: true, from: 560, cell: (row) => bytes(row.heldBytes) },
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
      columns: columns(),
      fields: () => ["connectionID", "clientID", "state", "remoteAddress", "user", "protocol", "subscriptionCount", "heldBytes"],
      sort: "connectionID:desc",
      quick: [
        ["Blocked", ["state=blocked"]],
        ["Stalled", ["state=stalled"]],
        ["No subscription", ["subscriptionCount=0"]],
      ],
      open: (row) => app.go(to("connections", row.connectionID)),
      nothing: ["Nobody is connected", "Clients connect to the acceptors in broker.xml.", "artemis-py perf"],
    });
  }
}
