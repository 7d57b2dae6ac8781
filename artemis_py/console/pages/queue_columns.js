// The columns of tables of queues: those that are made of several fields, and all fields that the broker describes.

import { spark } from "../js/chart.js";
import { count, duration, rate, title, value } from "../js/format.js";
import { link, to } from "../js/parts.js";
import { STATE_FIELDS, ahead, grows, states } from "../js/states.js";

export const AGE = "firstMessageAge";

/** The fields that the made columns need. */
export function baseFields() {
  return ["name", "messageCount", "consumerCount", "deliveringCount", "addedPerMinute", "ackedPerMinute", "recentDepths", ...STATE_FIELDS, AGE];
}

/** Made columns by name. */
export function madeColumns() {
  return [
    { name: "name", title: "Name", sort: true, width: "minmax(min(130px, 28vw), 2.2fr)", cell: (row) => link(to("queues", row.name), row.name) },
    { name: "state", title: "State", sort: "severity", width: "minmax(min(150px, 33vw), 1.9fr)", first: "desc", sentence: "How it is, and why; sorted by how bad that is", cell: (row) => states(row, true) },
    { name: "messageCount", title: "Messages", sort: true, width: "minmax(76px, 0.8fr)", isNumber: true, cell: (row) => count(row.messageCount, true) },
    { name: AGE, title: "Oldest", sort: true, width: "minmax(70px, 0.7fr)", from: 1000, isNumber: true, sentence: "How long its first message waits", cell: (row) => duration(row[AGE]) },
    { name: "in", title: "In/s", width: "60px", from: 700, isNumber: true, sort: "addedPerMinute", sentence: "Messages that came in a second, over the last minute", cell: (row) => rate(row.addedPerMinute / 60) },
    { name: "out", title: "Out/s", width: "60px", from: 700, isNumber: true, sort: "ackedPerMinute", sentence: "Messages acknowledged in a second, over the last minute", cell: (row) => rate(row.ackedPerMinute / 60) },
    { name: "drain", title: "At this rate", width: "130px", from: 1000, isNumber: true, sentence: "When it is empty or full, or pages, if it goes on like this", cell: (row) => (grows(row) && row.timeUntilLimit < 0 ? "never drained" : ahead(row).join(" ").toLowerCase()) },
    { name: "deliveringCount", title: "In delivery", sort: true, width: "88px", from: 1400, isNumber: true, cell: (row) => count(row.deliveringCount, true) },
    { name: "consumerCount", title: "Consumers", sort: true, width: "86px", from: 860, isNumber: true, cell: (row) => count(row.consumerCount) },
    { name: "spark", title: "Depth", width: "98px", from: 1100, sentence: "Its messages in the last five minutes", cell: (row) => spark(row.recentDepths.split(",").map(Number), `Depth of ${row.name}`) },
  ];
}

/** A column for a field of the description. */
export function fieldColumn(field) {
  return {
    name: field.name,
    title: title(field.name),
    sort: true,
    sentence: field.sentence,
    width: field.type === "string" ? "minmax(90px, 1fr)" : "minmax(90px, 0.8fr)",
    isNumber: field.type === "integer",
    cell: (row) => value(row[field.name], field.unit, field.name),
  };
}
