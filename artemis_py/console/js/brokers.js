// The brokers of this console, by the URLs of their HTTP acceptors: its own, those of its acceptor's consoleBrokers, and
// those that the user has added, which this browser keeps.

import { login, open } from "./api.js";

const KEPT = "artemis-brokers"; // theme.js reads it, too: the page may ask only these
const PARAMETER = "broker";
const LOOK_MS = 5000;
const WORST = { where: "severity>0", sort: "messageCount:desc", size: 3, fields: "name,state,severity,messageCount,timeUntilEmpty,timeUntilLimit" };

export const OWN = location.origin;
const words = (text) => (text ?? "").split(" ").filter(Boolean);
const kept = () => words(localStorage.getItem(KEPT));
const names = new Map([[OWN, document.documentElement.dataset.broker]]);

const added = kept(); // what other tabs add later, this page may not ask
export const brokers = [...new Set([OWN, ...words(document.documentElement.dataset.brokers), ...added])];

/** The one whose pages are shown, by the URL of the page. It may be none of the list. */
export const current = () => new URLSearchParams(location.search).get(PARAMETER) ?? OWN;

/** Where the pages of a broker are. */
export const placeOf = (broker, path = "/") => `${broker === OWN ? location.pathname : `?${PARAMETER}=${encodeURIComponent(broker)}`}#${path}`;

/** What it is called: by its name, as soon as it has told that. */
export const called = (broker = current()) => names.get(broker) ?? broker.replace(/^https?:\/\//, "");
export const noteName = (broker, name) => names.set(broker, name);

/** Was it added here? */
export const isAdded = (broker) => added.includes(broker);

/** Adds a broker by what the user wrote, and loads the page again, since it may ask only those that it knew then. Throws an
 * Error. */
export function add(text) {
  const url = URL.parse(text.includes("://") ? text : `${location.protocol}//${text}`);
  if (url === null || !/^https?:$/.test(url.protocol)) throw new Error("This is no URL of an HTTP acceptor, such as http://127.0.0.1:8162");
  keep([...kept(), url.origin]);
}

export const remove = (broker) => keep(kept().filter((one) => one !== broker));

function keep(list) {
  localStorage.setItem(KEPT, [...new Set(list)].join(" "));
  location.assign(placeOf(OWN, "/brokers"));
  location.reload();
}

/** How each broker is, every few seconds. */
export class Watch {
  states = new Map();
  #stop = new AbortController();

  constructor(draw) {
    this.draw = draw;
    this.timer = setInterval(() => document.hidden || this.#look(), LOOK_MS);
    this.#look();
  }

  #look() {
    for (const broker of brokers) {
      const known = this.states.get(broker);
      if (known?.refused !== undefined && known.refused === login.of(broker)) continue; // it would refuse that again
      stateOf(broker, this.#stop.signal).then((state) => (this.states.set(broker, state), this.draw()), () => {});
    }
  }

  close() {
    clearInterval(this.timer);
    this.#stop.abort();
  }
}

/** `{word, look}`, and what is known: `reason`, or `about` and the `worst` queues. */
async function stateOf(broker, signal) {
  const refused = login.of(broker);
  const ask = async (path, query) => (await open("GET", path, { query, signal, broker })).json();
  try {
    const [about, worst] = await Promise.all([ask("/api/broker"), ask("/api/queues", WORST)]);
    names.set(broker, about.name);
    return { word: "active", look: worst.data.some((row) => row.severity > 1) ? "bad" : worst.count > 0 ? "warn" : "good", about, worst };
  } catch (error) {
    if (signal.aborted) throw error;
    if (error.status === 503) return { word: "stand-by", look: "", reason: error.message };
    if (error.status === 401) return { word: "not logged in", look: "warn", reason: refused ? error.message : "It requires a login.", refused };
    if (error.status === 0) return { word: "unreachable", look: "bad", reason: await whyUnreachable(broker) };
    return { word: "problem", look: "bad", reason: error.message };
  }
}

/** A page may not read an answer without CORS, but an opaque one says that there is one. */
export async function whyUnreachable(broker) {
  if (location.protocol === "https:" && broker.startsWith("http:")) return "Browsers do not let a page with TLS ask a broker without.";
  try {
    await fetch(`${broker}/api/broker`, { mode: "no-cors", credentials: "omit", cache: "no-store" });
  } catch {
    return `It does not answer${broker.startsWith("https:") ? ", or the browser does not trust its certificate" : ""}.`;
  }
  return broker === OWN ? "It answers again." : `It answers, but refuses this page. Its HTTP acceptor needs allowedOrigins=${OWN}`;
}
