// Numbers, sizes and times as text, with narrow spaces between groups of digits.

export const THIN = "\u202f";
export const NONE = "–";

/** 1234567 → 1 234 567, or 12.3 M from ten millions on if `short`. */
export function count(value, short = false) {
  if (value === null || value === undefined) return NONE;
  if (short && Math.abs(value) >= 1e7) {
    const [unit, by] = Math.abs(value) >= 1e9 ? ["G", 1e9] : ["M", 1e6];
    return `${(value / by).toFixed(1)}${THIN}${unit}`;
  }
  return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, THIN);
}

/** Messages per second; null if it is not known yet. */
export function rate(value) {
  if (value === null || value === undefined) return NONE;
  if (value === 0) return "0";
  if (value < 0.05) return "<0.1";
  return value < 10 ? value.toFixed(1) : count(value, true);
}

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];

export function bytes(value) {
  if (value === null || value === undefined) return NONE;
  let unit = 0;
  while (Math.abs(value) >= 1024 && unit < SIZES.length - 1) {
    value /= 1024;
    unit += 1;
  }
  return `${unit === 0 || value >= 100 ? count(value) : value.toFixed(1)}${THIN}${SIZES[unit]}`;
}

/** A length of time in ms, in its two largest units at most. */
export function duration(ms) {
  if (ms === null || ms === undefined || ms < 0) return NONE;
  if (!Number.isFinite(ms)) return "never";
  if (ms < 1000) return `${Math.round(ms)}${THIN}ms`;
  const s = Math.floor(ms / 1000);
  if (s < 60) return `${s}${THIN}s`;
  if (s < 3600) return two(Math.floor(s / 60), "min", s % 60, "s");
  if (s < 86400) return two(Math.floor(s / 3600), "h", Math.floor((s % 3600) / 60), "min");
  const days = Math.floor(s / 86400);
  return days > 730 ? `${count(days / 365)}${THIN}years` : two(days, "d", Math.floor((s % 86400) / 3600), "h");
}

function two(first, firstUnit, second, secondUnit) {
  const large = `${first}${THIN}${firstUnit}`;
  return first >= 10 || second === 0 ? large : `${large} ${second}${THIN}${secondUnit}`;
}

/** How long ago something was, by this machine's clock. */
export const ago = (ms) => duration(Math.max(0, Date.now() - ms));

export function percent(share) {
  if (share === null || share === undefined) return NONE;
  return `${share > 0 && share < 0.01 ? "<1" : Math.round(share * 100)}${THIN}%`;
}

export function clock(ms) {
  return new Date(ms).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false });
}

export function date(ms) {
  const at = new Date(ms);
  const pad = (n, to = 2) => String(n).padStart(to, "0");
  const day = `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  return `${day} ${pad(at.getHours())}:${pad(at.getMinutes())}:${pad(at.getSeconds())}.${pad(at.getMilliseconds(), 3)}`;
}

export const upper = (words) => words.charAt(0).toUpperCase() + words.slice(1);

/** 1 queue, 2 queues. */
export function several(n, one, more = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : more}`;
}

/** A value of any field, by its unit in the description. */
export function value(given, unit, name = "") {
  if (given === null || given === undefined || given === "") return NONE;
  if (typeof given === "boolean") return given ? "yes" : "no";
  if (typeof given !== "number") return String(given);
  if (unit === "bytes" && given >= 0) return bytes(given);
  if (unit === "ms") return duration(given);
  if (unit === "epoch ms") return given > 0 ? date(given) : NONE;
  if (unit === "percent") return `${count(given)}${THIN}%`;
  return /ID$|^id$|[Nn]umber$|lsn$/.test(name) ? String(given) : count(given);
}

/** dead-letter-address, deliveringCount → Dead letter address, Delivering count. */
export function title(name) {
  const words = name
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .replace(/[-_.]/g, " ")
    .split(" ")
    .map((word) => (/^[A-Z]{2,}s?$/.test(word) ? word : word.toLowerCase()))
    .join(" ");
  return upper(words);
}
