// The users that files of the configuration name, and one of them.

import { url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { date } from "../js/format.js";
import { card, chip, empty, facts, head, link, placeOf, to, told } from "../js/parts.js";
import { ListPage } from "./list_page.js";
import { actionButtons } from "./thing_page.js";

const LOGINS = {
  hash: ["good", "The file has only a hash."],
  "plain text": ["warn", "The file shows the password. Hash it with artemis-py mask."],
  masked: ["warn", "The file can reveal the password. Hash it with artemis-py mask."],
  unreadable: ["bad", "No login is possible with it."],
};

const login = (row) => chip(row.login ?? "–", ...(LOGINS[row.login] ?? []));
const roles = (row) => (row.roles ? row.roles.split(",").map((role) => chip(role, "", null)) : chip("no role", "warn", "No permissions."));

const columns = [
  { name: "name", width: [110, 1.2], cell: (row) => link(to("users", row.name), row.name) },
  { name: "roles", width: [110, 1.4], cell: (row) => h("span", { class: "chips", title: row.roles }, roles(row)) },
  { name: "login", title: "Password", width: [90, 0.7], cell: login },
  { name: "connectionCount", title: "Connected", width: 84, isNumber: true, from: 560, sentence: "STOMP clients with this login" },
  { name: "lastLogin", width: 160, isNumber: true, from: 860, sentence: "Since the start of the broker", cell: (row) => (row.lastLogin > 0 ? date(row.lastLogin).slice(0, 19) : "never") },
  { name: "declaredAt", width: [120, 1.2], from: 1000, cell: (row) => placeOf(row.declaredAt) },
];

export class UsersPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "users",
      one: "user",
      sentence: () => "Users in files; those of LDAP and tokens are not listed.",
      filterBy: "name",
      example: "login=plain text",
      columns,
      sort: "name",
      quick: [
        ["Connected", ["connectionCount>0"]],
        ["Never logged in", ["lastLogin=0"]],
        ["Without a hash", ["login!=hash"]],
      ],
      open: (row) => app.go(to("users", row.name)),
      nothing: ["No users in files", "With security-enabled, users come from files, LDAP or tokens.", "artemis-py user create"],
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

  up = "/users";

  view() {
    const crumb = link("/users", "Users");
    const rows = this.app.feed.value(this.request)?.data;
    if (rows === undefined || rows.length === 0) return [head(this.name, { crumb }), told(this.app.feed, this.request, () => empty("Not in a file", "The user may come from LDAP or a token, or be deleted."))];
    const options = () => ({ given: { name: this.name }, name: this.name });
    const fields = operation("listUsers")?.fields ?? [];
    return [
      head(this.name, { crumb, chips: rows[0].roles ? roles(rows[0]) : [], actions: rows.some((row) => row.changeable) ? actionButtons(this.app, ["name"], options, { name: this.name }) : [] }),
      rows.map((row) => card(row.declaredAt, facts(row, fields, new Set(["name", "roles", "login", "declaredAt"])), { right: login(row) })),
      h("p", { key: "clients" }, link(`/connections?where=${encodeURIComponent(`user=${this.name}`)}`, "Connections of this user")),
    ];
  }
}
