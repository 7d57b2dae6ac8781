// Logins at an OpenID provider: the browser gets a code there, which the broker trades for tokens (PKCE).

import { Problem, login, open } from "./api.js";
import { current } from "./brokers.js";

const PENDING = "artemis-web-login";
const AGAIN_MS = 10_000;
const random = () => Array.from(crypto.getRandomValues(new Uint8Array(32)), (one) => one.toString(16).padStart(2, "0")).join("");
const renewals = new Map(); // by broker: `timer`, `work`, `last_ms`

const tell = async (broker, name, body) => (await open("POST", `/ui/logins/${name}`, { body, broker, header: null })).json();

export const providers = async (broker) => (await open("GET", "/ui/logins", { broker, header: null })).json();

/** Goes to a provider. */
export async function begin(broker, name, keep) {
  const place = location.search + location.hash;
  const page = { redirectUri: location.origin + location.pathname, state: random(), nonce: random(), verifier: random() };
  const { url } = await tell(broker, encodeURIComponent(name), page);
  if (broker !== current()) return; // its code is for nobody else
  sessionStorage.setItem(PENDING, JSON.stringify({ ...page, name, keep, place }));
  location.assign(url);
}

/** Completes a login: the browser comes back. */
export async function arrive() {
  for (const broker of login.brokers()) if (login.session(broker)) schedule(broker);
  const given = new URLSearchParams(location.search || location.hash.slice(1));
  if (!given.has("state") || location.hash[1] === "/") return;
  const { name, keep, state, place = "", ...page } = JSON.parse(sessionStorage.getItem(PENDING) ?? "{}");
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", location.pathname + place);
  if (given.get("state") !== state) throw new Problem(0, "This answers no login that began in this tab.");
  if (given.has("error")) throw new Problem(0, `${name} did not log you in: ${given.get("error_description") ?? given.get("error")}`);
  await take(current(), { name, keep, redirectUri: page.redirectUri }, { ...page, code: given.get("code"), issuer: given.get("iss") ?? "" });
}

async function take(broker, session, body, isWanted = () => true) {
  const { user, token, lasts_ms, refreshToken, logout } = await tell(broker, `${encodeURIComponent(session.name)}/tokens`, body);
  if (!isWanted()) return;
  const last_ms = Date.now();
  const more = { refreshToken: refreshToken ?? session.refreshToken, logout: logout ?? session.logout, ends_ms: last_ms + lasts_ms };
  login.set(user, `Bearer ${token}`, session.keep, { ...session, ...more }, broker);
  schedule(broker).last_ms = last_ms;
}

/** Renews the token before it ends. */
function schedule(broker, pause_ms = (login.session(broker).ends_ms - Date.now()) * 0.75) {
  const known = renewals.get(broker) ?? { last_ms: 0 };
  clearTimeout(known.timer);
  known.timer = setTimeout(() => renew(broker), Math.min(Math.max(pause_ms, 1000), 2 ** 31 - 1));
  renewals.set(broker, known);
  return known;
}

function renew(broker) {
  const known = renewals.get(broker);
  return known !== undefined && (known.work ??= renewing(broker).finally(() => (known.work = null)));
}

async function renewing(broker) {
  const session = login.session(broker);
  if (!session?.refreshToken) return false;
  const { refreshToken, redirectUri } = session;
  try {
    await take(broker, session, { refreshToken, redirectUri }, () => login.session(broker) === session);
    return login.of(broker) !== null;
  } catch ({ status }) {
    if (status === 0 || status === 503) schedule(broker, AGAIN_MS);
    else session.refreshToken = null; // it has ended at the provider, too
    return false;
  }
}

/** The broker refuses the token: is there another one now? */
export async function recover() {
  const known = renewals.get(current());
  return known !== undefined && Date.now() - known.last_ms > AGAIN_MS && renew(current());
}

/** Ends the login here and at the provider. */
export function logOut() {
  const session = login.session(current());
  clearTimeout(renewals.get(current())?.timer);
  renewals.delete(current());
  login.forget();
  if (session?.logout) location.assign(session.logout);
  else location.reload();
}
