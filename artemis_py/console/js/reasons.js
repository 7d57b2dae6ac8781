// Reasons: each with its word, its setting, the line of that, and a remedy.

import { h } from "./dom.js";
import { chip, empty, link, placeOf, to } from "./parts.js";

const CALM = new Set(["flows", "nothing-waits", "not-blocked", "nothing-dropped", "nothing-dead", "not-slow", "not-growing"]);

/** A list of reasons, the most important first. */
export function reasons(rows) {
  if (rows.length === 0) return empty("No reason found", "Nothing blocks it.");
  return h("ol", { class: "reasons" }, rows.map((row, at) => h("li", { class: "reason", key: `${row.reason} ${row.about} ${at}` }, reason(row))));
}

function reason(row) {
  const share = row.limit > 0 && row.used >= 0 ? `${row.used} of ${row.limit} ${row.unit}` : null;
  const setting = row.setting ? h("code", null, row.value ? `${row.setting} = ${row.value}` : row.setting) : null;
  return [
    h("div", { class: "chips" }, chip(row.reason, CALM.has(row.reason) ? "good" : "accent"), row.about && h("strong", null, row.connection > 0 ? link(to("connections", row.connection), row.about) : row.about)),
    h("p", null, row.sentence, share && h("span", { class: "soft" }, ` (${share})`)),
    (setting || row.place) && h("p", { class: "small soft" }, setting, row.place && [" at ", placeOf(row.place)]),
    row.remedy && h("p", { class: "small" }, h("span", { class: "soft" }, "Remedy: "), row.remedy),
  ];
}
