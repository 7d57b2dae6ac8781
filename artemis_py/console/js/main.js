// The console: frame, pages and dialogs.

import { Action } from "./action.js";
import { Problem, login } from "./api.js";
import { brokers, called, current, noteName, placeOf, whyUnreachable } from "./brokers.js";
import * as description from "./description.js";
import { h, render } from "./dom.js";
import { Feed } from "./feed.js";
import { brokerChoice, frame } from "./frame.js";
import { Help, keysOf } from "./help.js";
import { listen } from "./keys.js";
import { Menu } from "./menu.js";
import { Palette } from "./palette.js";
import { Rates } from "./rates.js";
import { Send } from "./send.js";
import { SignIn } from "./signin.js";
import { found, navigation } from "./routes.js";
import { nextTheme } from "./theming.js";
import { asking, button, problemBox } from "./parts.js";
import { arrive, logOut, recover } from "./weblogin.js";

const root = document.getElementById("app");
const TOAST_MS = 6000;
const KEPT_PAGES = 50;

class App {
  toasts = [];
  menuIsOpen = false;
  #isDue = false;
  logOut = logOut;
  signIn = null;
  #uptime;
  #places = new Map();
  #broker;

  get broker() {
    return this.feed.value("broker") ?? null;
  }

  get pages() {
    return navigation().flatMap((group) => group.pages);
  }

  async start() {
    login.restore();
    login.ask = async (reason) => {
      const broker = current();
      if (!(await recover()) && broker === current()) await this.#askLogin(reason);
    };
    login.changed = (broker) => broker === this.signIn?.broker && this.#leaveLogin();
    listen((key) => this.#key(key));
    addEventListener("hashchange", () => this.page !== null && this.#arrive());
    addEventListener("popstate", () => this.#broker !== current() && this.#enter());
    addEventListener("resize", () => this.draw());
    document.querySelector(".skip").onclick = (event) => {
      event.preventDefault();
      document.getElementById("content")?.focus();
    };
    let problem = null;
    await arrive().catch((error) => (problem = error));
    await this.#enter(problem);
  }

  /** Shows another broker, and a page of it. */
  choose(broker, path = "/") {
    history.pushState(null, "", placeOf(broker, path));
    return this.#enter();
  }

  /** Begins with the broker that the URL names. */
  async #enter(problem = null) {
    this.feed?.close();
    this.page?.close?.();
    this.feed = new Feed({ drawn: () => this.draw(), tick: (now) => this.#tick(now), recovered: () => this.#again() });
    this.#broker = current();
    this.#uptime = -1;
    this.totals = new Rates();
    this.#leaveLogin();
    this.info = this.page = this.overlay = this.fatal = null;
    this.draw();
    if (problem !== null) await this.#askLogin("", problem);
    if (await this.#describe()) this.#arrive();
  }

  /** Reads what the broker can do; false if another one was chosen meanwhile. */
  async #describe() {
    const broker = current();
    if (!brokers.includes(broker)) {
      this.fatal = new Problem(0, `${broker} is not in the list of this console.`, "The page Brokers adds it.");
      this.draw();
      return false;
    }
    while (broker === current()) {
      try {
        const info = await description.load();
        if (broker !== current()) break;
        this.info = info;
        this.fatal = null;
        return true;
      } catch (error) {
        if (!(error instanceof Problem)) throw error;
        if (broker !== current()) break;
        if (error.status === 0) Object.assign(error, { message: await whyUnreachable(broker), advice: "The console keeps trying." });
        this.fatal = error;
        this.draw();
        await new Promise((resolve) => setTimeout(resolve, 2000));
      }
    }
    return false;
  }

  /** The broker is back, with new counters and perhaps another version. */
  async #again() {
    const before = this.info?.version;
    this.totals = new Rates();
    if (!(await this.#describe())) return;
    if (before !== undefined && before !== this.info.version) {
      this.toast(`The broker is version ${this.info.version} now: reload this page.`, "bad");
    } else {
      this.toast("The broker answers again.");
    }
    this.feed.touch();
  }

  #tick(now) {
    const { broker } = this;
    if (broker) {
      noteName(current(), broker.name);
      if (broker.uptimeMillis < this.#uptime) {
        this.totals = new Rates();
      }
      this.#uptime = broker.uptimeMillis;
      const counters = { messagesAdded: broker.totalMessagesAdded, messagesAcked: broker.totalMessagesAcknowledged };
      this.totals.note(this.feed.time("broker", now), counters, broker.messageCount);
    }
    this.page?.tick?.(now);
  }

  #askLogin(reason, problem = null) {
    if (this.signIn === null) {
      this.signIn = new SignIn(reason, () => this.draw());
      this.signIn.problem = problem;
      this.draw();
    }
    return this.signIn.wait();
  }

  #leaveLogin() {
    const form = this.signIn;
    this.signIn = null;
    form?.leave();
    this.draw();
  }

  go(path) {
    location.hash = `#${path}`;
  }

  #arrive() {
    const [path, query = ""] = location.hash.replace(/^#/, "").split("?");
    const scroll = document.getElementById("content");
    if (this.page !== null && scroll) this.#keep(this.page.place, scroll.scrollTop);
    this.page?.close?.();
    this.overlay = null;
    this.menuIsOpen = false;
    this.page = found(this, path || "/", new URLSearchParams(query));
    this.page.place = location.hash;
    this.draw();
    const top = this.#places.get(location.hash) ?? 0;
    requestAnimationFrame(() => {
      const content = document.getElementById("content");
      if (content) content.scrollTop = top;
    });
  }

  #keep(place, top) {
    this.#places.delete(place);
    this.#places.set(place, top);
    if (this.#places.size > KEPT_PAGES) this.#places.delete(this.#places.keys().next().value);
  }

  /** Draws soon, once for all that asks for it. */
  draw() {
    if (this.#isDue) return;
    this.#isDue = true;
    requestAnimationFrame(() => {
      this.#isDue = false;
      this.#draw();
    });
  }

  #draw() {
    if (this.signIn !== null) {
      document.title = `Log in – ${called()}`;
      render(root, this.signIn.view(), brokerChoice(this));
      return;
    }
    if (this.page === null) {
      const said = this.fatal ? [problemBox(this.fatal), login.header && button("Log out", logOut)] : asking();
      render(root, h("main", { class: "login" }, h("div", { class: "stack" }, h("h1", null, called()), said)), brokerChoice(this));
      return;
    }
    const state = { lost: "✕ ", connecting: "", live: "" }[this.feed.status];
    document.title = `${state}${this.page.title} – ${this.broker?.name ?? "Artemis console"}`;
    this.feed.want(["broker", ...(this.page.wants?.() ?? [])]);
    render(root, frame(this, this.page.view()), this.overlay?.view());
  }

  /** Opens the dialog of an operation. */
  act(operation, options = {}) {
    this.overlay = new Action(operation, {
      ...options,
      draw: () => this.draw(),
      close: () => this.shut(),
      done: (result) => {
        if (operation.isChange) {
          this.toast(`${description.label(operation)}${options.name ? ` ${options.name}` : ""}: done.`);
          this.feed.touch();
        }
        options.done?.(result);
      },
    });
    if (!operation.isChange && !operation.isDownload) this.overlay.show();
    this.draw();
  }

  /** Opens the form of a message to an address. */
  send(address) {
    this.overlay = new Send(address, { draw: () => this.draw(), close: () => this.shut(), done: () => (this.page.sent ? this.page.sent() : this.feed.touch()) });
    this.draw();
  }

  /** Opens a list of operations, of which one is chosen. */
  offer(title, operations, choose) {
    this.overlay = new Menu(title, operations, choose, () => this.shut());
    this.draw();
  }

  shut() {
    this.overlay = null;
    this.draw();
  }

  openPalette() {
    const extras = [
      { text: "Switch between light and dark", kind: "theme", run: () => this.switchTheme() },
      { text: "Keys", kind: "help", run: () => this.openHelp() },
    ];
    for (const broker of brokers) if (broker !== current()) extras.push({ text: `Switch to ${called(broker)}`, kind: "broker", run: () => this.choose(broker) });
    if (login.header !== null) extras.push({ text: "Log out", kind: "login", run: () => this.logOut() });
    this.overlay = new Palette({
      pages: this.pages,
      extras,
      act: (operation) => this.act(operation),
      go: (path) => this.go(path),
      draw: () => this.draw(),
      close: () => this.shut(),
    });
    this.draw();
  }

  openHelp() {
    this.overlay = new Help(this.page, this.pages, () => this.shut());
    this.draw();
  }

  switchTheme() {
    nextTheme();
    this.draw();
  }

  toast(text, look = "") {
    const toast = { text, look, key: crypto.getRandomValues(new Uint32Array(1))[0] };
    this.toasts = [...this.toasts.slice(-3), toast];
    setTimeout(() => this.untoast(toast), TOAST_MS);
    this.draw();
  }

  untoast(toast) {
    this.toasts = this.toasts.filter((one) => one !== toast);
    this.draw();
  }

  #key(key) {
    if (this.signIn !== null || this.page === null) return undefined;
    const own = keysOf(this.page);
    if (key in own) return own[key][0];
    if (key === "Ctrl+k" || key === ":" || (key === "/" && !this.page.search)) return () => this.openPalette();
    if (key === "/") return () => document.getElementById(this.page.search)?.select();
    if (key === "?") return () => this.openHelp();
    if (key === "t") return () => this.switchTheme();
    const page = this.pages.find((one) => one.key !== "" && key === `g ${one.key}`);
    return page && (() => this.go(page.path));
  }
}

new App().start();
