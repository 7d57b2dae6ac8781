// Parts that many pages have.

import { h } from "./dom.js";
import { NONE, percent, value } from "./format.js";
import { icon } from "./icons.js";

export const button = (text, onclick, look = "", more = {}) => h("button", { type: "button", class: `button ${look}`, onclick, ...more }, text);

export const toggle = (words, isOn, onclick, more = {}) => h("button", { type: "button", class: "chip", key: words, "aria-pressed": String(isOn), onclick, ...more }, words);

export const searchBox = (words, more) => h("input", { type: "search", "aria-label": words, placeholder: words, autocomplete: "off", spellcheck: "false", ...more });

/** The field that filters what a page shows; the page has the text. */
export const filterBox = (page, words) => searchBox(words, { id: "filter", key: "filter", value: page.filter, oninput: (event) => ((page.filter = event.target.value), page.app.draw()) });

export const link = (to, text, look = null) => h("a", { href: `#${to}`, class: look }, text);

export const chip = (text, look = "", sentence = null) => h("span", { class: `chip ${look}`, title: sentence }, text);

export const to = (...parts) => `/${parts.map(encodeURIComponent).join("/")}`;

export function head(title, { crumb = null, chips = [], actions = [], sentence = null } = {}) {
  const where = crumb && h("nav", { class: "soft small", "aria-label": "Where this is" }, crumb);
  const named = h("div", { class: "chips" }, h("h1", { tabindex: "-1" }, title), chips);
  const more = sentence && h("p", { class: "soft small" }, sentence);
  return h("header", { class: "head" }, h("div", { class: "title" }, where, named, more), actions.length > 0 && h("div", { class: "actions" }, actions));
}

export function card(title, body, { right = null, note = null, bare = false } = {}) {
  const top = h("div", { class: "card-head" }, h("h2", { class: "grow" }, title), note && h("span", { class: "soft small" }, note), right);
  return h("section", { class: "card", key: `card ${title}` }, top, bare ? body : h("div", { class: "card-body" }, body));
}

export function tile(label, figure, { note = null, unit = null, href = null, key = label } = {}) {
  return h(
    href ? "a" : "div",
    { class: "tile", key, href: href && `#${href}` },
    h("span", { class: "soft small" }, label),
    h("span", { class: "figure" }, figure, unit && h("small", null, ` ${unit}`)),
    note && h("span", { class: "note" }, note),
  );
}

export function meter(label, used, of, shown, note = null, name = label) {
  const share = of > 0 ? Math.min(1, used / of) : 0;
  const look = share >= 0.9 ? "bad" : share >= 0.7 ? "warn" : "";
  const words = shown === null ? `${percent(used / of)} used` : `${shown(used)} of ${of > 0 ? shown(of) : "no limit"}`;
  const bar = { class: "bar", role: "meter", "aria-label": name, "aria-valuemin": 0, "aria-valuemax": of > 0 ? of : used || 1, "aria-valuenow": used };
  return h(
    "div",
    { class: "meter", key: name },
    h("div", { class: "line" }, h("span", null, label), h("span", { class: "soft number" }, words)),
    h("div", bar, share > 0 && h("div", { class: look, style: { width: `${(share * 100).toFixed(1)}%` } })),
    note && h("span", { class: "faint small" }, note),
  );
}

/** What to say where there is nothing, and what to do next. */
export const empty = (title, advice, command = null) =>
  h("div", { class: "empty" }, h("strong", null, title), h("span", null, advice), command && h("code", null, command));

/** Until the broker has answered. */
export const asking = () => h("p", { class: "soft asking", role: "status", key: "asking" }, "Loading…");

/** What the answer to a request shows; why there is none; or that it was asked for. */
export function told(feed, request, show) {
  const problem = feed.problem(request);
  if (problem !== null) return problemBox(problem);
  const answer = feed.value(request);
  return answer === undefined ? asking() : show(answer);
}

export function problemBox(problem) {
  return h("div", { class: "problem", role: "alert", key: "problem" }, h("strong", null, problem.message), problem.advice && h("span", null, problem.advice), problem.line && h("div", { class: "lines" }, copyLine("line of broker.xml", problem.line)));
}

export function facts(row, fields, leftOut = new Set()) {
  const known = new Map(fields.map((field) => [field.name, field]));
  const rows = Object.entries(row).filter(([name]) => !leftOut.has(name));
  return h("dl", { class: "facts" }, rows.map(([name, given]) => {
    const { sentence, unit } = known.get(name) ?? { sentence: "", unit: "" };
    const none = given === +given && RegExp(`; ${given}: ([^;,.]+)`).exec(sentence)?.[1]; // "-1: no limit"
    const text = none || (typeof given === "object" && given !== null ? JSON.stringify(given) : value(given, unit, name));
    return h("div", { class: `fact${text.length > 40 ? " long" : ""}`, key: name, title: sentence || null }, h("dt", null, name), h("dd", { class: none || text === NONE ? "faint" : null }, text));
  }));
}

/** A file and its line; the tooltip has the whole path. */
export const placeOf = (text) => h("code", { title: text }, text.replace(/^\S*\/(?=[^/\s]+:\d)/, ""));

/** JSON with its parts coloured, as text nodes. */
export function pretty(given, depth = 0) {
  const pad = "  ".repeat(depth + 1);
  if (Array.isArray(given) || (given !== null && typeof given === "object")) {
    const isList = Array.isArray(given);
    const entries = Object.entries(given);
    if (entries.length === 0) return isList ? "[]" : "{}";
    return [
      isList ? "[\n" : "{\n",
      entries.map(([name, one], at) => [
        pad,
        isList ? null : [h("span", { class: "key" }, JSON.stringify(name)), ": "],
        pretty(one, depth + 1),
        at < entries.length - 1 ? ",\n" : "\n",
      ]),
      "  ".repeat(depth),
      isList ? "]" : "}",
    ];
  }
  return h("span", { class: typeof given === "string" ? "text" : "num" }, JSON.stringify(given));
}

/** A line of code with a button that copies it. */
export function copyLine(label, text) {
  return h(
    "div",
    { class: "line", key: label },
    h("code", { tabindex: "0", "aria-label": label }, text),
    button([icon("copy"), h("span", { class: "hidden" }, `Copy the ${label}`)], (event) => copy(text, event.currentTarget), "plain tiny", { title: `Copy the ${label}` }),
  );
}

/** What does the same in a shell. */
export const shell = (command, curl) => h("div", { class: "lines" }, h("span", { class: "soft small" }, "From a shell"), command && copyLine("command", command), copyLine("curl line", curl));

async function copy(text, element) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyOldWay(text, element);
  }
  element.classList.add("done");
  element.title = "Copied";
}

/** For pages of other machines without TLS, which may not use the clipboard's API. */
function copyOldWay(text, element) {
  const area = document.createElement("textarea");
  area.value = text;
  element.parentElement.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}
