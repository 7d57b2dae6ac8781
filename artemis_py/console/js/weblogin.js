// Logins at an OpenID provider: the browser gets a code there, which the broker trades for tokens (PKCE).

import { Problem, login, open } from "./api.js";

const PENDING = "artemis-web-login";
const AGAIN_MS = 10_000;
const random = () => Array.from(crypto.getRandomValues(new Uint8Array(32)), (one) => one.toString(16).padStart(2, "0")).join("");
let timer = null;
let renewal = null;
let last_ms = 0;

const tell = async (name, body) => (await open("POST", `/ui/logins/${name}`, { body, header: null })).json();

export const providers = async () => (await open("GET", "/ui/logins", { header: null })).json();

/** Goes to a provider. */
export async function begin(name, keep) {
  const page = { redirectUri: location.origin + location.pathname, state: random(), nonce: random(), verifier: random() };
  const { url } = await tell(encodeURIComponent(name), page);
  sessionStorage.setItem(PENDING, JSON.stringify({ ...page, name, keep, place: location.hash }));
  location.assign(url);
}

/** Completes a login: the browser comes back. */
export async function arrive() {
  if (login.session) schedule();
  const given = new URLSearchParams(location.search || location.hash.slice(1));
  if (!given.has("state") || location.hash[1] === "/") return;
  const { name, keep, state, place = "", ...page } = JSON.parse(sessionStorage.getItem(PENDING) ?? "{}");
  sessionStorage.removeItem(PENDING);
  history.replaceState(null, "", location.pathname + place);
  if (given.get("state") !== state) throw new Problem(0, "This answers no login that began in this tab.");
  if (given.has("error")) throw new Problem(0, `${name} did not log you in: ${given.get("error_description") ?? given.get("error")}`);
  await take({ name, keep, redirectUri: page.redirectUri }, { ...page, code: given.get("code"), issuer: given.get("iss") ?? "" });
}

async function take(session, body) {
  const { user, token, lasts_ms, refreshToken, logout } = await tell(`${encodeURIComponent(session.name)}/tokens`, body);
  last_ms = Date.now();
  const more = { refreshToken: refreshToken ?? session.refreshToken, logout: logout ?? session.logout, ends_ms: last_ms + lasts_ms };
  login.set(user, `Bearer ${token}`, session.keep, { ...session, ...more });
  schedule();
}

/** Renews the token before it ends. */
function schedule(pause_ms = (login.session.ends_ms - Date.now()) * 0.75) {
  clearTimeout(timer);
  timer = setTimeout(renew, Math.min(Math.max(pause_ms, 1000), 2 ** 31 - 1));
}

const renew = () => (renewal ??= renewing().finally(() => (renewal = null)));

async function renewing() {
  const { session } = login;
  if (!session?.refreshToken) return false;
  const { refreshToken, redirectUri } = session;
  try {
    await take(session, { refreshToken, redirectUri });
    return true;
  } catch ({ status }) {
    if (status === 0 || status === 503) schedule(AGAIN_MS);
    else session.refreshToken = null; // it has ended at the provider, too
    return false;
  }
}

/** The broker refuses the token: is there another one now? */
export const recover = async () => Date.now() - last_ms > AGAIN_MS && renew();

/** Ends the login here and at the provider. */
export function logOut() {
  const { session } = login;
  login.forget();
  if (session?.logout) location.assign(session.logout);
  else location.reload();
}
