// The keyboard: one key, or g and another one for a page.

const TYPING = "input, textarea, select, [contenteditable]";
const PATIENCE_MS = 1200;

/** `find(key)` returns what a key does, or undefined; keys after g are asked for as `g o`. */
export function listen(find) {
  let begun = 0;
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      find("Ctrl+k")?.();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (event.target.closest?.(TYPING)) {
      if (event.key === "Escape" && !document.querySelector("dialog[open]")) event.target.blur();
      return;
    }
    if (document.querySelector("dialog[open]")) return;
    if (event.key === "Enter" && event.target.closest?.("a, button, summary")) return;
    const isSecond = begun > 0 && event.timeStamp - begun < PATIENCE_MS;
    begun = 0;
    if (!isSecond && event.key === "g") {
      begun = event.timeStamp;
      return;
    }
    const work = find(isSecond ? `g ${event.key}` : event.key);
    if (work === undefined) return;
    event.preventDefault();
    work();
  });
}
