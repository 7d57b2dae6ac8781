// Charts over time by uPlot, and sparklines of our own.

import { h } from "./dom.js";
import { THIN, clock, count, rate } from "./format.js";

const SPAN_MIN_MS = 60_000;

/** The colour of a variable as the theme has it now. */
function colour(name, element) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  element.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

const NUMERIC = (values) => values.map((one) => (one >= 1000 ? `${count(one / 1000)}${THIN}k` : String(one)));

/** How much of it a chart shows. */
export const SPANS = { "5 min": 300_000, "1 h": 3_600_000 };

/** What the colours of a chart mean. */
export const legend = (series) => h("div", { class: "legend soft small" }, series.map(([name, label, look]) => h("span", { class: look, key: name }, h("i"), label)));

/** A chart of `history` (objects with `at` and a number for each series); `series` are `[name, label, colour]`. */
export function chart(history, series, label, span = "5 min") {
  return h("div", {
    class: "chart",
    role: "img",
    "aria-label": label,
    opaque: true,
    mount: (element) => mounted(element, series, SPANS[span]),
    key: `chart ${label} ${span}`,
    points: history,
  });
}

function mounted(element, series, window_ms) {
  let plot = null;
  let theme = "";
  const draw = () => {
    const history = element.points ?? [];
    const now = history.length ? history[history.length - 1].at : Date.now();
    const data = [history.map((one) => one.at / 1000), ...series.map(([name]) => history.map((one) => one[name] ?? null))];
    const wanted = colour("text", element);
    if (plot !== null && theme !== wanted) {
      plot.destroy();
      plot = null;
    }
    theme = wanted;
    if (plot === null && window.uPlot) plot = made(element, series, data);
    plot?.setData(data, false);
    const top = Math.max(1, ...data.slice(1).flat().filter((one) => one !== null));
    plot?.batch(() => {
      const span_ms = Math.min(window_ms, Math.max(SPAN_MIN_MS, now - (history[0]?.at ?? now)));
      plot.setScale("x", { min: (now - span_ms) / 1000, max: now / 1000 });
      plot.setScale("y", { min: 0, max: top * 1.15 });
    });
  };
  const sized = new ResizeObserver(() => plot?.setSize({ width: element.clientWidth, height: element.clientHeight }));
  sized.observe(element);
  const timer = setInterval(draw, 1000);
  draw();
  return () => {
    clearInterval(timer);
    sized.disconnect();
    plot?.destroy();
  };
}

function made(element, series, data) {
  const axis = {
    stroke: colour("soft", element),
    grid: { stroke: colour("line", element), width: 1 },
    ticks: { show: false },
    font: "11px Inter, system-ui, sans-serif",
  };
  return new window.uPlot(
    {
      width: element.clientWidth || 300,
      height: element.clientHeight || 200,
      padding: [8, 26, 0, 0],
      cursor: { y: false, drag: { x: false, y: false } },
      legend: { show: false },
      scales: { x: { time: true }, y: { auto: false } },
      axes: [
        { ...axis, space: 80, size: 24, gap: 6, values: (_, at) => at.map((s) => clock(s * 1000).slice(0, 8)) },
        { ...axis, size: 48, space: 34, gap: 6, values: (_, values) => NUMERIC(values) },
      ],
      series: [
        {},
        ...series.map(([, label, name]) => ({
          label,
          stroke: colour(name, element),
          width: 2,
          points: { show: false },
          value: (_, value) => rate(value),
        })),
      ],
    },
    data,
    element,
  );
}

/** A line of what a number was, without axes. */
export function spark(values, label) {
  const shown = values.length > 1 ? values : [0, 0];
  const top = Math.max(1, ...shown);
  const points = shown.map((one, at) => [((at * 100) / (shown.length - 1)).toFixed(1), (20 - (one / top) * 18).toFixed(1)]);
  const line = points.map(([x, y], at) => `${at ? "L" : "M"}${x} ${y}`).join("");
  return h(
    "svg",
    { class: "spark", viewBox: "0 0 100 22", preserveAspectRatio: "none", role: "img", "aria-label": label },
    h("path", { class: "fill", d: `${line}L100 22L0 22Z` }),
    h("path", { d: line }),
  );
}
