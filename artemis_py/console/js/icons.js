// Small drawings of lines, on a grid of 16.

import { h } from "./dom.js";

const PATHS = {
  overview: "M2.5 9.5 8 3l5.5 6.5M4.5 8v5.5h7V8",
  queues: "M2.5 4h11M2.5 8h11M2.5 12h7",
  dead: "M8 2.5 14 13H2L8 2.5ZM8 6.5v3M8 11.4v.1",
  connections: "M5.5 8h5M6.5 5.5h-1a2.5 2.5 0 0 0 0 5h1M9.5 5.5h1a2.5 2.5 0 0 1 0 5h-1",
  consumers: "M8 8a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM3 13.5c.6-2.6 2.4-4 5-4s4.4 1.4 5 4",
  addresses: "M3 8a5 5 0 1 0 10 0A5 5 0 0 0 3 8ZM8 3v10M3.2 7h9.6",
  trace: "M3 3.5h3v3H3zM10 9.5h3v3h-3zM4.5 6.5V11H10",
  log: "M4 2.5h6l2.5 2.5v8.5H4zM6 7h4.5M6 9.5h4.5",
  reload: "M13 8a5 5 0 1 1-1.6-3.6M13 2.5v3h-3",
  users: "M6 8a2.3 2.3 0 1 0 0-4.6A2.3 2.3 0 0 0 6 8ZM2 13c.4-2.2 1.8-3.3 4-3.3s3.6 1.1 4 3.3M10.5 3.7a2.2 2.2 0 0 1 0 4.1M12 9.9c1.2.5 1.9 1.5 2.2 3.1",
  operations: "M5.5 4 2 8l3.5 4M10.5 4 14 8l-3.5 4",
  events: "M2 8.5h3l1.5-5 3 9 1.5-4h3",
  settings: "M3 4.5h7M13 4.5h0M3 11.5h1M7 11.5h6M11.5 3v3M5.5 10v3",
  search: "M7 11.5a4.5 4.5 0 1 0 0-9 4.5 4.5 0 0 0 0 9ZM10.5 10.5l3 3",
  sun: "M8 10.5a2.5 2.5 0 1 0 0-5 2.5 2.5 0 0 0 0 5ZM8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.4 3.4l1 1M11.6 11.6l1 1M12.6 3.4l-1 1M4.4 11.6l-1 1",
  moon: "M13.5 9.5A5.8 5.8 0 0 1 6.5 2.5a5.8 5.8 0 1 0 7 7Z",
  auto: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  close: "m4 4 8 8M12 4l-8 8",
};

export function icon(name) {
  return h(
    "svg",
    { viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-linecap": "round", "stroke-linejoin": "round" },
    h("path", { d: PATHS[name] ?? PATHS.operations }),
  );
}
