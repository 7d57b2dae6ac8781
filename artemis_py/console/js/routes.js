// Which page a path means, and the navigation.

import { brokers } from "./brokers.js";
import { lists } from "./description.js";
import { empty, head, link } from "./parts.js";
import { AddressPage, AddressesPage } from "../pages/addresses.js";
import { AnyListPage, AnyThingPage, listTitle } from "../pages/any_list.js";
import { BrokersPage } from "../pages/brokers.js";
import { ConfigurationPage } from "../pages/configuration.js";
import { ConnectionPage, ConnectionsPage } from "../pages/connections.js";
import { ConsumersPage } from "../pages/consumers.js";
import { DeadPage } from "../pages/dead.js";
import { EventsPage } from "../pages/events.js";
import { LifePage } from "../pages/life.js";
import { LogPage } from "../pages/log.js";
import { MessagePage } from "../pages/message.js";
import { OperationsPage } from "../pages/operations.js";
import { OverviewPage } from "../pages/overview.js";
import { QueuePage } from "../pages/queue.js";
import { QueuesPage } from "../pages/queues.js";
import { SchedulesPage } from "../pages/schedules.js";
import { SettingsPage } from "../pages/settings.js";
import { UserPage, UsersPage } from "../pages/users.js";

const MADE = new Set(["queues", "addresses", "connections", "consumers", "dead-letters", "users", "cursors", "schedules"]);

/** Pages by group; `key` is the second key after g, `badge(app)` a number beside the title. */
const NAVIGATION = [
  {
    title: "",
    pages: [
      { path: "/", title: "Overview", icon: "overview", key: "o" },
      { path: "/queues", title: "Queues", icon: "queues", key: "q", badge: (app) => app.broker?.queueCount ?? null },
      { path: "/addresses", title: "Addresses", icon: "addresses", key: "a", badge: (app) => app.broker?.addressCount ?? null },
      { path: "/dead", title: "Dead letters", icon: "dead", key: "d" },
      { path: "/schedules", title: "Schedules", icon: "reload", key: "t" },
      { path: "/life", title: "Life of a message", icon: "trace", key: "m" },
    ],
  },
  {
    title: "Clients",
    pages: [
      { path: "/connections", title: "Connections", icon: "connections", key: "c", badge: (app) => app.broker?.connectionCount ?? null },
      { path: "/consumers", title: "Consumers", icon: "consumers", key: "n", badge: (app) => app.broker?.consumerCount ?? null },
      { path: "/users", title: "Users", icon: "users", key: "u" },
    ],
  },
  {
    title: "Broker",
    pages: [
      { path: "/events", title: "Events", icon: "events", key: "e" },
      { path: "/settings", title: "Settings", icon: "settings", key: "s" },
      { path: "/configuration", title: "Configuration", icon: "reload", key: "r" },
      { path: "/log", title: "Log", icon: "log", key: "l" },
      { path: "/brokers", title: "Brokers", icon: "connections", key: "b", badge: () => (brokers.length > 1 ? brokers.length : null) },
      { path: "/operations", title: "Operations", icon: "operations", key: "p" },
    ],
  },
];

/** All groups, with the lists for which no page was made. */
export function navigation() {
  const more = lists()
    .filter((one) => !MADE.has(one.collection))
    .map((one) => ({ path: `/list/${one.collection}`, title: listTitle(one), icon: ICONS[one.collection] ?? "queues", key: "" }));
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
  brokers: BrokersPage,
  schedules: SchedulesPage,
  settings: SettingsPage,
  "settings/*": SettingsPage,
  configuration: ConfigurationPage,
  "list/*": AnyListPage,
  "list/*/*": AnyThingPage,
  log: LogPage,
  operations: OperationsPage,
};

class NotFoundPage {
  title = "No such page";

  constructor(_app, { path }) {
    this.path = path;
  }

  view() {
    return [head(this.title), empty(`There is no page ${this.path}`, link("/", "Go to the overview"))];
  }
}

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
