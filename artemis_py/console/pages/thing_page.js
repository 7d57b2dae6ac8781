// What pages of one thing share: its operations as buttons, and its reports.

import { changesOf, isDestructive, label, reportsOf } from "../js/description.js";
import { h } from "../js/dom.js";
import { button, card, empty, problemBox } from "../js/parts.js";

const BUTTONS_MAX = 4;

/** Buttons of its operations, harmless ones first; a menu has all if they are many. `options()` are those of the dialog. */
export function actionButtons(app, on, options, { name = "", leftOut = new Set(), first = [] } = {}) {
  const rank = (one) => (isDestructive(one) ? 100 : 0) + (one.method === "DELETE" ? 100 : 0) + (first.includes(one.name) ? first.indexOf(one.name) : 50);
  const all = changesOf(...on).filter((one) => !leftOut.has(one.name)).sort((a, b) => rank(a) - rank(b));
  const act = (one) => app.act(one, options(one));
  const few = all.length <= BUTTONS_MAX ? all : all.filter((one) => first.includes(one.name));
  const buttons = few.map((one) => button(label(one), () => act(one), isDestructive(one) ? "danger" : "", { key: one.id, "data-operation": one.id, title: one.sentence }));
  if (few.length === all.length) return buttons;
  return [...buttons, button("All actions", () => app.offer(`What to do with ${name}`, all, act), "", { key: "all", id: "all-actions" })];
}

export const sendButton = (app, address) => [button("Send", () => app.send(address), "primary", { key: "send" })];

/** A card with what else the broker can tell about a thing. */
export function reportsCard(app, on, given, leftOut = new Set()) {
  const reports = reportsOf(...on).filter((one) => !leftOut.has(one.name));
  if (reports.length === 0) return null;
  const rows = reports.map((one) => h("li", { class: "stop", key: one.id }, h("span", null, button(label(one), () => app.act(one, { given }), "tiny")), h("span", { class: "soft" }, one.sentence)));
  return card("Reports", h("ul", { class: "stops" }, rows));
}

export function missing(problem, what) {
  if (problem.status === 404) return empty(problem.message, `It may have been deleted. ${what}`);
  return problemBox(problem);
}
