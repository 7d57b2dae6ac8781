// Which page a path means, and the navigation.

import { at, has, lists } from "./description.js";
import { AddressPage } from "../pages/address.js";
import { AddressesPage } from "../pages/addresses.js";
import { AnyListPage, listTitle } from "../pages/any_list.js";
import { AnyThingPage } from "../pages/any_thing.js";
import { ConfigurationPage } from "../pages/configuration.js";
import { ConnectionPage } from "../pages/connection.js";
import { ConnectionsPage } from "../pages/connections.js";
import { ConsumersPage } from "../pages/consumers.js";
import { DeadPage } from "../pages/dead.js";
import { EventsPage } from "../pages/events.js";
import { LIFE, LifePage } from "../pages/life.js";
import { LogPage } from "../pages/log.js";
import { MessagePage } from "../pages/message.js";
import { NotFoundPage } from "../pages/not_found.js";
import { OperationsPage } from "../pages/operations.js";
import { OverviewPage } from "../pages/overview.js";
import { QueuePage } from "../pages/queue.js";
import { QueuesPage } from "../pages/queues.js";
import { SettingsPage } from "../pages/settings.js";
import { UserPage, UsersPage } from "../pages/users.js";
import { streams } from "./feed.js";

const always = () => true;

const MADE = new Set(["queues", "addresses", "connections", "consumers", "dead-letters", "users", "cursors"]);

/** Pages by group; `key` is the second key after g, `badge(app)` a number beside the title. */
const NAVIGATION = [
  {
    title: "",
    pages: [
      { path: "/", title: "Overview", icon: "overview", key: "o", isThere: always },
      { path: "/queues", title: "Queues", icon: "queues", key: "q", isThere: always, badge: (app) => app.broker?.queueCount ?? null },
      { path: "/addresses", title: "Addresses", icon: "addresses", key: "a", isThere: always, badge: (app) => app.broker?.addressCount ?? null },
      { path: "/dead", title: "Dead letters", icon: "dead", key: "d", isThere: () => has("listDeadLetters") },
      { path: "/life", title: "Life of a message", icon: "trace", key: "m", isThere: () => at("GET", LIFE) !== undefined },
    ],
  },
  {
    title: "Clients",
    pages: [
      { path: "/connections", title: "Connections", icon: "connections", key: "c", isThere: always, badge: (app) => app.broker?.connectionCount ?? null },
      { path: "/consumers", title: "Consumers", icon: "consumers", key: "n", isThere: always, badge: (app) => app.broker?.consumerCount ?? null },
      { path: "/users", title: "Users", icon: "users", key: "u", isThere: () => has("listUsers") },
    ],
  },
  {
    title: "Broker",
    pages: [
      { path: "/events", title: "Events", icon: "events", key: "e", isThere: streams },
      { path: "/settings", title: "Settings", icon: "settings", key: "s", isThere: () => at("GET", "/api/settings/{address}") !== undefined },
      { path: "/configuration", title: "Configuration", icon: "reload", key: "r", isThere: () => at("GET", "/api/broker/configuration") !== undefined },
      { path: "/log", title: "Log", icon: "log", key: "l", isThere: always },
      { path: "/operations", title: "Operations", icon: "operations", key: "p", isThere: always },
    ],
  },
];

/** All groups, with the lists for which no page was made. */
export function navigation() {
  const more = lists()
    .filter((one) => !MADE.has(one.collection))
    .map((one) => ({ path: `/list/${one.collection}`, title: listTitle(one), icon: ICONS[one.collection] ?? "queues", key: "", isThere: always }));
  return [...NAVIGATION, { title: "More", pages: more }];
}

const ICONS = { sessions: "connections", producers: "consumers", jobs: "reload" };

const PAGES = {
  "": OverviewPage,
  queues: QueuesPage,
  "queues/*": QueuePage,
  "queues/*/*/*": MessagePage,
  addresses: AddressesPage,
  "addresses/*": AddressPage,
  connections: ConnectionsPage,
  "connections/*": ConnectionPage,
  consumers: ConsumersPage,
  dead: DeadPage,
  life: LifePage,
  "life/*": LifePage,
  users: UsersPage,
  "users/*": UserPage,
  events: EventsPage,
  settings: SettingsPage,
  "settings/*": SettingsPage,
  configuration: ConfigurationPage,
  "list/*": AnyListPage,
  "list/*/*": AnyThingPage,
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

