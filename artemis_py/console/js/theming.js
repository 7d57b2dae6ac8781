// Light, dark, or as the system has it.

const NAME = "artemis-theme";
const ORDER = ["auto", "light", "dark"];

export function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}

/** Goes on to the next of the three, and remembers it. */
export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length];
  if (next === "auto") {
    delete document.documentElement.dataset.theme;
    localStorage.removeItem(NAME);
  } else {
    document.documentElement.dataset.theme = next;
    localStorage.setItem(NAME, next);
  }
}
