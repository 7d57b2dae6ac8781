// The columns of tables of queues: those that are made of several fields, and all fields that the broker describes.

import { spark } from "../js/chart.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { count, duration, rate, title, value } from "../js/format.js";
import { chip, link, to } from "../js/parts.js";
import { STATE_FIELDS, drainMs, words } from "../js/states.js";

const AGES = ["firstMessageAge", "ageOfOldest", "oldestMessageAge"];

/** The fields that the made columns need. */
export function baseFields() {
  return ["name", ...STATE_FIELDS, ...(ageField() ? [ageField()] : [])];
}

/** The field with the age of the oldest message, if this broker tells it. */
export function ageField() {
  const fields = operation("listQueues")?.fields ?? [];
  return AGES.find((name) => fields.some((field) => field.name === name)) ?? null;
}

/** Notes the counters of rows, which the answer to a request has. */
export function noteQueues(app, request, rows, now) {
  const at = app.feed.time(request, now);
  for (const row of rows) {
    const { messagesAdded, messagesAcked } = row;
    app.rates.note(row.name, at, { messagesAdded, messagesAcked }, row.messageCount);
  }
}

/** Made columns by name. */
export function madeColumns(app) {
  const seen = (row) => app.rates.of(row.name);
  const age = ageField();
  return [
    { name: "name", title: "Name", sort: "name", width: "minmax(130px, 2.2fr)", cell: (row) => link(to("queues", row.name), row.name) },
    { name: "state", title: "State", width: "minmax(96px, 1.5fr)", sentence: "Why it is as it is", cell: (row) => states(app, row) },
    { name: "messageCount", title: "Messages", sort: "messageCount", width: "minmax(76px, 0.8fr)", isNumber: true, cell: (row) => count(row.messageCount, true) },
    age && { name: age, title: "Oldest", sort: age, width: "minmax(70px, 0.7fr)", from: 1000, isNumber: true, sentence: "How long its first message waits", cell: (row) => duration(row[age]) },
    { name: "in", title: "In/s", width: "60px", from: 700, isNumber: true, sort: "messagesAdded", sentence: "Messages that come in a second; sorted by all that came", cell: (row) => rate(seen(row)?.rates.messagesAdded) },
    { name: "out", title: "Out/s", width: "60px", from: 700, isNumber: true, sort: "messagesAcked", sentence: "Messages acknowledged in a second; sorted by all that were", cell: (row) => rate(seen(row)?.rates.messagesAcked) },
    { name: "drain", title: "Drained in", width: "88px", from: 1000, isNumber: true, sentence: "When it will be empty if it goes on like this", cell: (row) => duration(drainMs(row, seen(row))) },
    { name: "deliveringCount", title: "In delivery", sort: "deliveringCount", width: "88px", from: 1180, isNumber: true, cell: (row) => count(row.deliveringCount, true) },
    { name: "consumerCount", title: "Consumers", sort: "consumerCount", width: "86px", from: 860, isNumber: true, cell: (row) => count(row.consumerCount) },
    { name: "spark", title: "Depth", width: "84px", from: 1100, sentence: "Its messages since this page looks", cell: (row) => spark((seen(row)?.history ?? []).slice(-60).map((one) => one.depth), `Depth of ${row.name}`) },
  ].filter(Boolean);
}

export const states = (app, row) => {
  const found = words(row, app.rates.of(row.name), Date.now());
  return h("span", { class: "chips" }, found.map(({ word, look, sentence }) => chip(word, look, sentence)));
};

/** A column for a field of the description. */
export function fieldColumn(field) {
  return {
    name: field.name,
    title: title(field.name),
    sort: field.name,
    sentence: field.sentence,
    width: field.type === "string" ? "minmax(90px, 1fr)" : "minmax(90px, 0.8fr)",
    isNumber: field.type === "integer",
    cell: (row) => value(row[field.name], field.unit, field.name),
  };
}
