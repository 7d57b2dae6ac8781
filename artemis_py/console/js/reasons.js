// Reasons: each with its word, its setting, the line of that, and a remedy.

import { h } from "./dom.js";
import { chip, empty, link, placeOf, to } from "./parts.js";

const CALM = new Set(["nothing-waits", "not-blocked", "nothing-dropped", "no-dead-letters", "nothing-slow", "not-growing"]);

/** A list of reasons, the most important first. */
export function reasons(rows) {
  if (rows.length === 0) return empty("No reason found", "Nothing blocks it.");
  return h("ol", { class: "reasons" }, rows.map((row, at) => h("li", { class: "reason", key: `${row.reason} ${row.about} ${at}` }, reason(row))));
}

function reason(row) {
  const setting = row.setting ? h("code", null, row.value ? `${row.setting} = ${row.value}` : row.setting) : null;
  return [
    h("div", { class: "chips" }, chip(row.reason, CALM.has(row.reason) ? "good" : "accent"), row.about && h("strong", null, row.connection > 0 ? link(to("connections", row.connection), row.about) : row.about)),
    h("p", null, row.sentence),
    (setting || row.place) && h("p", { class: "small soft" }, setting, row.place && [" at ", placeOf(row.place)]),
    row.remedy && h("p", { class: "small" }, h("span", { class: "soft" }, "Remedy: "), row.remedy),
  ];
}
