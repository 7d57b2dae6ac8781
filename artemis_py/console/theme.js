// Runs before anything is drawn, so a chosen theme never flashes; and before anything is asked, so the page may ask only
// the brokers that it knows now.
(() => {
  const { dataset } = document.documentElement;
  dataset.theme = localStorage.getItem("artemis-theme") ?? "auto";
  const policy = document.createElement("meta");
  policy.httpEquiv = "Content-Security-Policy";
  policy.content = `connect-src 'self' ${dataset.brokers} ${localStorage.getItem("artemis-brokers") ?? ""}`;
  document.head.append(policy);
})();
