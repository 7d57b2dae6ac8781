// Light, dark, or as the system has it.

const ORDER = ["auto", "light", "dark"];
const { dataset } = document.documentElement;

export const theme = () => dataset.theme ?? "auto";

/** Goes on to the next of the three; this browser keeps it. */
export function nextTheme() {
  dataset.theme = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length];
  localStorage.setItem("artemis-theme", dataset.theme);
}
