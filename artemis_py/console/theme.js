// Runs before anything is drawn, so a chosen theme never flashes.
(() => {
  const chosen = localStorage.getItem("artemis-theme");
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;
})();
