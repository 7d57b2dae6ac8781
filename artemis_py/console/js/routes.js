// Which page a path means, and the navigation.

import { AddressPage } from "../pages/address.js";
import { AddressesPage } from "../pages/addresses.js";
import { ConnectionPage } from "../pages/connection.js";
import { ConnectionsPage } from "../pages/connections.js";
import { ConsumersPage } from "../pages/consumers.js";
import { EventsPage } from "../pages/events.js";
import { LogPage } from "../pages/log.js";
import { NotFoundPage } from "../pages/not_found.js";
import { OperationsPage } from "../pages/operations.js";
import { OverviewPage } from "../pages/overview.js";
import { QueuePage } from "../pages/queue.js";
import { QueuesPage } from "../pages/queues.js";
import { streams } from "./feed.js";

const always = () => true;

/** Pages by group; `key` is the second key after g, `badge(app)` a number beside the title. */
export const NAVIGATION = [
  {
    title: "",
    pages: [
      { path: "/", title: "Overview", icon: "overview", key: "o", isThere: always },
      { path: "/queues", title: "Queues", icon: "queues", key: "q", isThere: always, badge: (app) => app.broker?.queueCount ?? null },
      { path: "/addresses", title: "Addresses", icon: "addresses", key: "a", isThere: always, badge: (app) => app.broker?.addressCount ?? null },
    ],
  },
  {
    title: "Clients",
    pages: [
      { path: "/connections", title: "Connections", icon: "connections", key: "c", isThere: always, badge: (app) => app.broker?.connectionCount ?? null },
      { path: "/consumers", title: "Consumers", icon: "consumers", key: "n", isThere: always, badge: (app) => app.broker?.consumerCount ?? null },
    ],
  },
  {
    title: "Broker",
    pages: [
      { path: "/events", title: "Events", icon: "events", key: "e", isThere: streams },
      { path: "/log", title: "Log", icon: "log", key: "l", isThere: always },
      { path: "/operations", title: "Operations", icon: "operations", key: "p", isThere: always },
    ],
  },
];

const PAGES = {
  "": OverviewPage,
  queues: QueuesPage,
  "queues/*": QueuePage,
  addresses: AddressesPage,
  "addresses/*": AddressPage,
  connections: ConnectionsPage,
  "connections/*": ConnectionPage,
  consumers: ConsumersPage,
  events: EventsPage,
  log: LogPage,
  operations: OperationsPage,
};

/** The page of a path. */
export function found(app, path, query) {
  const [first, ...names] = path.split("/").filter(Boolean).map(decoded);
  const Page = PAGES[[first ?? "", ...names.map(() => "*")].join("/")] ?? NotFoundPage;
  return new Page(app, { names, query, path });
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

