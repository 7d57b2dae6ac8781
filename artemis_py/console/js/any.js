// Answers without a page of their own: rows, fields and reasons.

import { h } from "./dom.js";
import { bytes, count, date, title, value } from "./format.js";
import { facts, pretty } from "./parts.js";
import { reasons } from "./reasons.js";
import { shortTable } from "./table.js";

const isTime = (name, value) => /(_ms|time|_at)$/i.test(name) && value > 1e12;

function shownValue(name, value) {
  if (typeof value === "number" && isTime(name, value)) return date(value);
  if (typeof value === "number" && /size|bytes/.test(name)) return bytes(value);
  if (typeof value === "number") return /lsn|number/.test(name) ? String(value) : count(value);
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

export function anyTable(label, rows, fields = []) {
  const units = new Map(fields.map((field) => [field.name, field.unit]));
  const names = Object.keys(rows[0] ?? {});
  const isNumber = (name) => typeof rows[0][name] === "number";
  const columns = names.map((name) => ({ name, title: title(name.replace(/_ms$/, "")), isNumber: isNumber(name), width: [isTime(name, rows[0][name]) ? 190 : 90, 1], cell: (row) => (units.get(name) ? value(row[name], units.get(name), name) : shownValue(name, row[name])) }));
  return shortTable(label, columns, rows, { key: (row) => row[names[0]], narrowest: `${names.length * 120}px` });
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
