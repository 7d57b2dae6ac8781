// The broker's public JSON API. Who is logged in is known to this page alone, for each broker: no cookie, and nothing is
// kept unless the user asks for it, and then only until the tab is closed.

import { OWN, current } from "./brokers.js";

const KEPT = "artemis-login";

/** What the broker answered instead. `status` is 0 if it did not answer at all; `line` is what to
 * paste into broker.xml. */
export class Problem extends Error {
  constructor(status, message, advice = "", line = "") {
    super(message);
    Object.assign(this, { status, advice, line });
  }
}

const ADVICE = {
  0: "The console keeps trying. Is the broker running and reachable?",
  403: "Ask for the permission, or log in as another user.",
  404: "It may have been deleted.",
  409: "Refresh, and try again.",
  500: "The broker's log has the details.",
  503: "Try again in a moment.",
};

const logins = new Map();
const kept = () => JSON.parse(sessionStorage.getItem(KEPT) ?? "{}");

export const login = {
  /** Asks the user; its promise holds once somebody has logged in. */
  ask: null,
  /** Called with a broker that has a login now. */
  changed: null,

  get user() {
    return logins.get(current())?.[0] ?? null;
  },

  get header() {
    return this.of(current());
  },

  /** That of any broker. */
  of: (broker) => logins.get(broker)?.[1] ?? null,

  /** The logins at providers, by broker: see weblogin.js. */
  session: (broker) => logins.get(broker)?.[2] ?? null,
  brokers: () => logins.keys(),

  restore() {
    for (const [broker, one] of Object.entries(kept())) logins.set(broker, one);
  },

  set(user, header, keep, session = null, broker = current()) {
    logins.set(broker, [user, header, session]);
    store(broker, keep ? [user, header, session] : null);
    this.changed?.(broker);
  },

  forget() {
    logins.delete(current());
    store(current(), null);
  },
};

/** Keeps the login of a broker until the tab is closed; null: keeps none. */
function store(broker, one) {
  const { [broker]: _, ...others } = kept();
  const all = one === null ? others : { ...others, [broker]: one };
  if (Object.keys(all).length) sessionStorage.setItem(KEPT, JSON.stringify(all));
  else sessionStorage.removeItem(KEPT);
}

/** The value of `Authorization` for a user and password. */
export function basic(user, password) {
  const octets = new TextEncoder().encode(`${user}:${password}`);
  return `Basic ${btoa(String.fromCharCode(...octets))}`;
}

/** The URL of a path with its query; lists are given several times. */
export function url(path, query = {}) {
  const parts = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== null && one !== undefined && one !== "") parts.append(name, String(one));
    }
  }
  const text = parts.toString();
  return text ? `${path}?${text}` : path;
}

/** The response of a broker. Throws a Problem. */
export async function open(method, path, { query, body, text, signal, more = {}, broker = current(), header = login.of(broker) } = {}) {
  const headers = header === null ? { ...more } : { ...more, Authorization: header };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url(broker === OWN ? path : broker + path, query), {
      method,
      headers,
      body: body === undefined ? text : JSON.stringify(body),
      signal,
      credentials: "omit", // else the browser's own login window would open
      cache: "no-store",
    });
  } catch (error) {
    if (signal?.aborted) throw error;
    throw new Problem(0, "The broker does not answer.", ADVICE[0]);
  }
  if (response.ok) return response;
  throw await problemOf(response);
}

async function problemOf(response) {
  const text = (await response.text()).trim();
  let said = text;
  try {
    const { error, reason } = JSON.parse(text);
    said = error ?? reason ?? text;
  } catch {
    // a line of plain text
  }
  const [, what = said, where, line] = /^(.*); to grant it, (.*?): (<.*>)$/s.exec(said) ?? [];
  return new Problem(response.status, what || response.statusText, line ? `To grant it, ${where}:` : (ADVICE[response.status] ?? ""), line);
}

/** The JSON of an answer. */
export async function ask(method, path, options = {}) {
  const broker = current();
  for (;;) {
    const header = login.of(broker);
    try {
      const response = await open(method, path, { ...options, broker, header });
      return await response.json();
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401 || broker !== current()) throw error;
      if (login.of(broker) === header) await login.ask(error.message);
      if (broker !== current()) throw error; // another one was chosen meanwhile, with a login of its own
    }
  }
}

/** Has a page ask for something, and draws it then; what fails is its `problem`. */
export async function attempt(page, work) {
  try {
    await work();
    page.problem = null;
  } catch (error) {
    page.problem = error;
  }
  page.app.draw();
}

/** Saves what the broker answers as a file, since a link could not log in. */
export async function download(path, query) {
  const response = await open("GET", path, { query });
  const name = /filename="?([^";]+)/.exec(response.headers.get("content-disposition") ?? "")?.[1] ?? path.split("/").pop();
  const content = await response.blob();
  const link = document.createElement("a");
  link.href = URL.createObjectURL(content);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  return { file: name, bytes: content.size };
}

export const get = (path, query, signal) => ask("GET", path, { query, signal });
