// Dialogs over the page.

import { h } from "./dom.js";

/** A dialog; Escape closes it, and a click beside it if it `isLight`: nothing written is lost. */
export function dialog(close, props, ...children) {
  const { isLight = false, ...more } = props;
  const beside = isLight ? { onclick: (event) => event.target.tagName === "DIALOG" && close() } : {};
  return h("dialog", { mount: modal, oncancel: (event) => (event.preventDefault(), close()), ...beside, ...more }, children);
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
