// The users that files of the configuration name, and one of them.

import { url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { count, date } from "../js/format.js";
import { card, chip, empty, facts, head, link, placeOf, to, told } from "../js/parts.js";
import { ListPage } from "./list_page.js";
import { actionButtons } from "./thing_page.js";

const LOOKS = { hash: "good", "plain text": "warn", masked: "warn", unreadable: "bad" };
const SENTENCES = {
  hash: "The file has a hash of the password, from which nobody gets the password.",
  "plain text": "Whoever reads the file knows the password: artemis-py mask makes a hash of it.",
  masked: "The password can be had back from the file: artemis-py mask makes a hash of it.",
  unreadable: "Nobody can log in with this password.",
};

const login = (row) => chip(row.login ?? "–", LOOKS[row.login] ?? "", SENTENCES[row.login] ?? null);
const roles = (row) => (row.roles ? row.roles.split(",").map((role) => chip(role, "", null)) : chip("no role", "warn", "It may do nothing."));

const columns = () => [
  { name: "name", title: "Name", sort: true, width: "minmax(110px, 1.2fr)", cell: (row) => link(to("users", row.name), row.name) },
  { name: "roles", title: "Roles", sort: true, width: "minmax(110px, 1.4fr)", cell: (row) => h("span", { class: "chips", title: row.roles }, roles(row)) },
  { name: "login", title: "Password", sort: true, width: "minmax(90px, 0.7fr)", cell: login },
  { name: "connectionCount", title: "Connected", sort: true, width: "84px", isNumber: true, from: 560, sentence: "Clients of STOMP with this login", cell: (row) => count(row.connectionCount) },
  { name: "lastLogin", title: "Last login", sort: true, width: "160px", isNumber: true, from: 860, sentence: "Since the start of the broker", cell: (row) => (row.lastLogin > 0 ? date(row.lastLogin).slice(0, 19) : "not yet") },
  { name: "declaredAt", title: "Declared at", sort: true, width: "minmax(120px, 1.2fr)", from: 1000, cell: (row) => placeOf(row.declaredAt) },
];

export class UsersPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "users",
      one: "user",
      sentence: () => "Those that the files of the configuration name; not those of a directory, nor who comes with a token.",
      filterBy: "name",
      example: "login=plain text",
      columns: columns(),
      fields: () => columns().map((column) => column.name),
      sort: "name",
      quick: [
        ["Connected", ["connectionCount>0"]],
        ["Never seen", ["lastLogin=0"]],
        ["Without a hash", ["login!=hash"]],
      ],
      open: (row) => app.go(to("users", row.name)),
      nothing: ["No file names a user", "Where security is on, users come from a file, a directory or tokens.", "artemis-py user create"],
    });
  }
}

export class UserPage {
  constructor(app, { names: [name] }) {
    this.app = app;
    this.name = name;
    this.title = `User ${name}`;
    this.request = url("users", { name });
  }

  wants() {
    return [this.request];
  }

  keys() {
    return { u: [() => this.app.go("/users"), "Up to all users"] };
  }

  view() {
    const crumb = link("/users", "Users");
    const rows = this.app.feed.value(this.request)?.data;
    if (rows === undefined || rows.length === 0) return [head(this.name, { crumb }), told(this.app.feed, this.request, () => empty("No file names this user", "It may come from a directory or a token, or be gone."))];
    const options = () => ({ given: { name: this.name }, name: this.name });
    const fields = operation("listUsers")?.fields ?? [];
    return [
      head(this.name, { crumb, chips: rows[0].roles ? roles(rows[0]) : [], actions: rows.some((row) => row.changeable) ? actionButtons(this.app, ["name"], options, { name: this.name }) : [] }),
      rows.map((row) => card(row.declaredAt, facts(row, fields, new Set(["name", "roles", "login", "declaredAt"])), { right: login(row) })),
      h("p", { key: "clients" }, link(`/connections?where=${encodeURIComponent(`user=${this.name}`)}`, "Its connections")),
    ];
  }
}
