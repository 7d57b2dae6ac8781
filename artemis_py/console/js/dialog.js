// Dialogs over the page.

import { h } from "./dom.js";
import { button } from "./parts.js";

/** A dialog; Escape closes it, and a button and a click beside it if it `isLight`: nothing written is lost. */
export function dialog(close, title, props, ...children) {
  const { isLight = false, ...more } = props;
  const beside = isLight ? { onclick: (event) => event.target.tagName === "DIALOG" && close() } : {};
  const head = title && h("div", { class: "dialog-head" }, h("h2", { class: "grow" }, title), isLight && button("Close", close, "tiny"));
  return h("dialog", { mount: modal, "aria-label": title, oncancel: (event) => (event.preventDefault(), close()), ...beside, ...more }, head, children);
}

/** Opens a dialog over the page; the focus goes back to where it was. */
function modal(element) {
  const before = document.activeElement;
  element.showModal();
  (element.querySelector("[autofocus]") ?? element.querySelector("#action-name, #action-run:enabled"))?.focus();
  return () => {
    element.close();
    before?.focus?.();
  };
}
