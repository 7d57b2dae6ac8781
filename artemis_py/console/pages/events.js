// What happens in the broker, as it tells it.

import { h } from "../js/dom.js";
import { clock, count, title } from "../js/format.js";
import { card, chip, empty, filterBox, head, link, to } from "../js/parts.js";

const LEFT_OUT = new Set(["type", "at", "id", "times", "since", "count"]);
const TROUBLE = /DEAD|EXPIRED|DROPPED|KILLED|DENIED|SLOW|FULL|BLOCK|FAIL|ALERT|PROBLEM|REFUSED|VIOLATION/;
const PLACES = { queue: "queues", queueName: "queues", routingName: "queues", address: "addresses", connection: "connections", connectionID: "connections" };

/** A line about an event, with links to what it is about. */
export function eventWords(event) {
  const fields = Object.entries(event).filter(([name, value]) => !LEFT_OUT.has(name) && value !== null && value !== "");
  const parts = fields.map(([name, value]) => [h("span", { class: "soft" }, ` ${title(name).toLowerCase()} `), PLACES[name] ? link(to(PLACES[name], String(value)), String(value)) : String(value)]);
  const times = event.count ?? event.times;
  return h("span", null, chip(title(String(event.type).toLowerCase()), TROUBLE.test(event.type) ? "warn" : ""), times > 1 && h("strong", null, ` ${count(times)} times${event.since ? ` since ${clock(event.since)}` : ""}`), parts);
}

export class EventsPage {
  title = "Events";
  search = "filter";
  filter = "";

  constructor(app) {
    this.app = app;
  }

  view() {
    const all = this.app.feed.notifications;
    const shown = all.filter((event) => JSON.stringify(event).toLowerCase().includes(this.filter.toLowerCase()));
    const rows = h("ol", { class: "stops" }, shown.map((one) => h("li", { class: "stop", key: one.id ?? `${one.at} ${one.type}` }, h("span", { class: "soft" }, clock(one.at)), eventWords(one))));
    return [
      head("Events", { sentence: "Since this page was opened: queues created and deleted, clients connected and disconnected, alerts. Repeated events are one line." }),
      h("div", { class: "filters" }, filterBox(this, "Filter events")),
      card("Newest first", shown.length > 0 ? rows : empty("No events yet", "They appear here as they happen.", "artemis-py events --follow"), { note: `${shown.length} of ${all.length}` }),
    ];
  }
}
