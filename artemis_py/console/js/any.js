// Answers without a page of their own: rows, fields and reasons.

import { h } from "./dom.js";
import { value } from "./format.js";
import { facts, pretty } from "./parts.js";
import { reasons } from "./reasons.js";
import { shortTable } from "./table.js";

const shown = (name, given, unit) => (typeof given === "object" && given !== null ? JSON.stringify(given) : value(given, unit, name));

export function anyTable(label, rows, fields = []) {
  const units = new Map(fields.map((field) => [field.name, field.unit]));
  const names = Object.keys(rows[0] ?? {});
  const columns = names.map((name) => ({ name, isNumber: typeof rows[0][name] === "number", width: [units.get(name) === "epoch ms" ? 190 : 90, 1], cell: (row) => shown(name, row[name], units.get(name)) }));
  return shortTable(label, columns, rows, { key: (row) => row[names[0]], narrowest: `${names.length * 190}px` });
}

/** What an operation answered. */
export function answerView(operation, answer) {
  const rows = answer?.data;
  if (operation.isList && Array.isArray(rows)) {
    if (rows.length === 0) return h("p", { class: "soft" }, "Nothing found.");
    if ("remedy" in rows[0]) return reasons(rows);
    return [anyTable(operation.id, rows, operation.fields), answer.count > rows.length && h("p", { class: "soft small" }, `${rows.length} of ${answer.count}`)];
  }
  const isFlat = Object.values(answer ?? {}).every((one) => typeof one !== "object" || one === null);
  return isFlat ? facts(answer, operation.fields) : h("pre", { class: "code", tabindex: "0" }, pretty(answer));
}
