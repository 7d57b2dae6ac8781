// The navigation, the top bar and the notices around a page.

import { login } from "./api.js";
import { brokers, called, current } from "./brokers.js";
import { h } from "./dom.js";
import { count, duration } from "./format.js";
import { icon } from "./icons.js";
import { button } from "./parts.js";
import { navigation } from "./routes.js";
import { theme } from "./theming.js";

const STATES = { live: ["good", "Live"], connecting: ["", "Connecting…"], lost: ["bad", "No answer, retrying"] };
const THEMES = { auto: ["auto", "System"], light: ["sun", "Light"], dark: ["moon", "Dark"] };
const ICON = document.querySelector("link[rel=icon]").href;

/** The whole window with the page in it. */
export function frame(app, page) {
  document.getElementById("app").className = `app${app.menuIsOpen ? " menu-open" : ""}`;
  return [
    side(app),
    app.menuIsOpen && h("button", { type: "button", class: "shade", key: "shade", "aria-label": "Close the menu", onclick: () => menu(app, false) }),
    h("div", { class: "body", key: "body" }, top(app), h("main", { class: "content", id: "content", tabindex: "-1", key: app.page.place }, page)),
    h("div", { class: "toasts", key: "toasts", role: "status", "aria-live": "polite" }, app.toasts.map((toast) => notice(app, toast))),
  ];
}

function menu(app, isOpen) {
  app.menuIsOpen = isOpen;
  app.draw();
}

function side(app) {
  const { broker } = app;
  const choice = brokerChoice(app);
  return h(
    "aside",
    { class: "side", key: "side", "aria-label": "Navigation" },
    h("a", { class: "brand", href: "#/" }, h("img", { src: ICON, alt: "", width: 26, height: 26 }), h("div", { class: "cut" }, h("strong", { class: "cut" }, choice ? "Console" : called()), h("span", null, app.info ? `artemis_py ${app.info.version}` : " "))),
    choice,
    h(
      "nav",
      { class: "nav", "aria-label": "Pages" },
      navigation().map(({ title, pages }) => pages.length > 0 && [title && h("div", { class: "nav-head", key: title }, title), pages.map((one) => item(app, one))]),
    ),
    h(
      "div",
      { class: "side-foot soft small" },
      broker && h("span", null, "Up for ", duration(broker.uptimeMillis)),
      login.header !== null && h("span", { class: "chips" }, `${login.user}`, button("Log out", () => app.logOut(), "plain tiny")),
    ),
  );
}

/** Switches among several brokers. */
export function brokerChoice(app) {
  const all = [...new Set([...brokers, current()])];
  if (all.length < 2) return null;
  return h("select", { key: "brokers", class: "brokers", "aria-label": "Broker", value: current(), onchange: (event) => app.choose(event.target.value) }, all.map((one) => h("option", { key: one, value: one }, called(one))));
}

function item(app, page) {
  const path = decodeURIComponent(location.hash.replace(/^#/, "").split("?")[0] || "/");
  const isHere = page.path === "/" ? path === "/" : path === page.path || path.startsWith(`${page.path}/`);
  const badge = page.badge?.(app) ?? null;
  const more = badge !== null && h("span", { class: "badge" }, count(badge, true));
  return h("a", { href: `#${page.path}`, key: page.path, "aria-current": isHere ? "page" : null }, icon(page.icon), h("span", { class: "cut" }, page.title), more);
}

function top(app) {
  const [look, words] = STATES[app.feed.status];
  const [drawing, name] = THEMES[theme()];
  return h(
    "header",
    { class: "top" },
    button([icon("menu"), h("span", { class: "hidden" }, "Menu")], () => menu(app, true), "plain menu-button", { "aria-expanded": String(app.menuIsOpen) }),
    h("button", { type: "button", class: "search", onclick: () => app.openPalette() }, icon("search"), h("span", { class: "cut" }, "Search or run a command"), h("kbd", null, "Ctrl K")),
    h(
      "div",
      { class: "top-right" },
      h("span", { class: "state soft small", role: "status", "data-state": app.feed.status }, h("span", { class: `dot ${look}` }), h("span", { class: "words" }, words)),
      button([icon(drawing), h("span", { class: "hidden" }, `Theme: ${name}`)], () => app.switchTheme(), "plain", { title: `Theme: ${name}` }),
      button(["?", h("span", { class: "hidden" }, "Keys")], () => app.openHelp(), "plain", { title: "Keys" }),
    ),
  );
}

function notice(app, toast) {
  const close = button([icon("close"), h("span", { class: "hidden" }, "Close")], () => app.untoast(toast), "plain tiny");
  return h("div", { class: `toast ${toast.look}`, key: toast.key }, h("span", { class: "grow" }, toast.text), close);
}
