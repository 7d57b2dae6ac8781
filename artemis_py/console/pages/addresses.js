// All addresses.

import { h } from "../js/dom.js";
import { bytes, count } from "../js/format.js";
import { chip, link, to } from "../js/parts.js";
import { ListPage } from "./list_page.js";

const columns = () => [
  { name: "name", title: "Name", sort: true, width: "minmax(130px, 2fr)", cell: (row) => link(to("addresses", row.name), row.name) },
  { name: "state", title: "State", width: "minmax(106px, 1.2fr)", cell: (row) => addressStates(row) },
  { name: "routingTypes", title: "Routing", sort: true, width: "minmax(90px, 0.8fr)", from: 860, cell: (row) => row.routingTypes.toLowerCase().replace(",", ", ") },
  { name: "queueCount", title: "Queues", sort: true, width: "64px", isNumber: true, from: 560, cell: (row) => count(row.queueCount) },
  { name: "messageCount", title: "Messages", sort: true, width: "80px", isNumber: true, cell: (row) => count(row.messageCount, true) },
  { name: "addressSize", title: "Memory", sort: true, width: "90px", isNumber: true, from: 700, cell: (row) => bytes(row.addressSize) },
  { name: "addressLimitPercent", title: "Full", sort: true, width: "96px", from: 860, sentence: "How much of its limit is used", cell: (row) => fullness(row) },
  { name: "unroutedMessageCount", title: "Unrouted", sort: true, width: "84px", isNumber: true, from: 1080, sentence: "Messages that no queue took", cell: (row) => count(row.unroutedMessageCount, true) },
];

const ADDRESS_FIELDS = ["name", "routingTypes", "queueCount", "messageCount", "addressSize", "addressLimitPercent", "unroutedMessageCount", "paging", "fullPolicy", "droppedMessageCount", "autoCreated", "paused", "blocked"];

export function addressStates(row) {
  const found = [];
  if (row.blocked) found.push(chip("address-blocked", "bad", "Senders must wait until it is unblocked."));
  if (row.paused) found.push(chip("paused", "warn", "None of its queues delivers until it is resumed."));
  if (row.paging) found.push(chip("paging", "warn", "Arrivals go to pages on the disk."));
  if (row.addressLimitPercent >= 100 && !row.paging) found.push(chip(`full: ${(row.fullPolicy ?? "").toLowerCase()}`, "bad", "Its limit is reached."));
  else if (row.addressLimitPercent >= 80 && !row.paging) found.push(chip("nearly full", "warn", "More than 80 % of its limit is used."));
  if (row.droppedMessageCount > 0) found.push(chip("has dropped", "warn", "Messages were dropped because it was full."));
  return h("span", { class: "chips" }, found.length > 0 ? found : chip(row.autoCreated ? "auto-created" : "open"));
}

export function fullness(row) {
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
      columns: columns(),
      fields: () => ADDRESS_FIELDS,
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
      nothing: ["There is no address yet", "Addresses are declared in broker.xml, or made when a client uses one."],
    });
  }
}
