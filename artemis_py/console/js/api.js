// The broker's public JSON API. Who is logged in is known to this page alone: no cookie, and nothing is kept unless the
// user asks for it, and then only until the tab is closed.

const KEPT = "artemis-login";

/** What the broker answered instead of what was asked for. `status` is 0 if it did not answer at all; `line` is what to
 * paste into broker.xml. */
export class Problem extends Error {
  constructor(status, message, advice = "", line = "") {
    super(message);
    Object.assign(this, { status, advice, line });
  }
}

const ADVICE = {
  0: "The console tries again by itself. Is the broker running, and can this machine reach it?",
  403: "Ask for the permission, or log in as somebody who has it.",
  404: "It may have been deleted meanwhile.",
  409: "Look at how things are now, and try again.",
  500: "The broker's log has the details.",
  503: "Wait a little, and try again.",
};

export const login = {
  user: null,
  header: null,
  /** Of a login at a provider: see weblogin.js. */
  session: null,
  /** Called when the broker wants a login; it returns a promise that holds when there is one. */
  ask: null,

  restore() {
    const kept = sessionStorage.getItem(KEPT);
    if (kept !== null) [this.user, this.header, this.session] = JSON.parse(kept);
  },

  set(user, header, keep, session = null) {
    Object.assign(this, { user, header, session });
    if (keep) sessionStorage.setItem(KEPT, JSON.stringify([user, header, session]));
  },

  forget() {
    this.user = this.header = this.session = null;
    sessionStorage.removeItem(KEPT);
  },
};

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

/** The response of the broker. Throws a Problem. Asks for a login as often as the broker wants one. */
export async function open(method, path, { query, body, text, signal, more = {}, header = login.header } = {}) {
  const headers = header === null ? { ...more } : { ...more, Authorization: header };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  let response;
  try {
    response = await fetch(url(path, query), {
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
    said = JSON.parse(text).error ?? text;
  } catch {
    // a line of plain text
  }
  const [, what = said, where, line] = /^(.*); to grant it, (.*?): (<.*>)$/s.exec(said) ?? [];
  return new Problem(response.status, what || response.statusText, line ? `To grant it, ${where}:` : (ADVICE[response.status] ?? ""), line);
}

/** The JSON of an answer. */
export async function ask(method, path, options = {}) {
  for (;;) {
    const header = login.header;
    try {
      const response = await open(method, path, { ...options, header });
      return await response.json();
    } catch (error) {
      if (!(error instanceof Problem) || error.status !== 401) throw error;
      if (login.header === header) await login.ask(error.message);
    }
  }
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
