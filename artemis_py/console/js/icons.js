// Small drawings of lines, on a grid of 16.

import { h } from "./dom.js";

const PATHS = {
  overview: "M2.5 9.5 8 3l5.5 6.5M4.5 8v5.5h7V8",
  queues: "M2.5 4h11M2.5 8h11M2.5 12h7",
  dead: "M8 2.5 14 13H2L8 2.5ZM8 6.5v3M8 11.4v.1",
  connections: "M5.5 8h5M6.5 5.5h-1a2.5 2.5 0 0 0 0 5h1M9.5 5.5h1a2.5 2.5 0 0 1 0 5h-1",
  consumers: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3 13.5c.6-2.6 2.4-4 5-4s4.400 1.4 5 4",
  addresses: "M3 8a5 5 0 1 0 10 0A5 5 0 0 0 3 8ZM8 3v10M3.200 7h9.600",
  trace: "M3 3.500h3v3H3zM10 9.500h3v3h-3zM4.500 6.500V11H10",
  log: "M4 2.500h6l2.500 2.500v8.500H4zM6 7h4.500M6 9.500h4.500",
  reload: "M13 8a5 5 0 1 1-1.600-3.600M13 2.500v3h-3",
  users: "M6 8a2.300 2.300 0 1 0 0-4.600A2.300 2.300 0 0 0 6 8ZM2 13c.4-2.200 1.800-3.300 4-3.300s3.600 1.100 4 3.300M10.500 3.700a2.200 2.200 0 0 1 0 4.100M12 9.900c1.200.5 1.900 1.500 2.200 3.100",
  operations: "M5.500 4 2 8l3.500 4M10.500 4 14 8l-3.500 4",
  events: "M2 8.500h3l1.500-5 3 9 1.500-4h3",
  settings: "M3 4.500h7M13 4.500h0M3 11.500h1M7 11.500h6M11.500 3v3M5.500 10v3",
  search: "M7 11.500a4.500 4.500 0 1 0 0-9 4.500 4.500 0 0 0 0 9ZM10.500 10.500l3 3",
  sun: "M8 10.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5ZM8 1.500v1.500M8 13v1.500M1.500 8H3M13 8h1.500M3.400 3.400l1 1M11.600 11.600l1 1M12.600 3.400l-1 1M4.400 11.600l-1 1",
  moon: "M13.500 9.500A5.800 5.800 0 0 1 6.500 2.500a5.800 5.800 0 1 0 7 7Z",
  auto: "M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11",
  menu: "M2.500 4.500h11M2.500 8h11M2.500 11.500h11",
  copy: "M5.500 5.500h7v8h-7zM3.500 10.500v-8h7",
  close: "m4 4 8 8M12 4l-8 8",
  more: "M3.500 8h.1M8 8h.1M12.500 8h.1",
  check: "m3 8.500 3.500 3.500L13 4.500",
};

export function icon(name) {
  const look = { fill: "none", stroke: "currentColor", "stroke-width": name === "more" ? 2.4 : 1.5 };
  return h(
    "svg",
    { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", ...look, "stroke-linecap": "round", "stroke-linejoin": "round" },
    h("path", { d: PATHS[name] ?? PATHS.operations }),
  );
}
