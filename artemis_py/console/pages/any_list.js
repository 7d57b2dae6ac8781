// A list without a page of its own, with the columns that the broker calls important, and one row of it.

import { url } from "../js/api.js";
import { lists, operations } from "../js/description.js";
import { h } from "../js/dom.js";
import { title } from "../js/format.js";
import { card, empty, facts, head, link, to, told } from "../js/parts.js";
import { fieldColumn } from "../js/table.js";
import { ListPage } from "./list_page.js";
import { actionButtons, reportsCard } from "./thing_page.js";

/** What the page of a list is called: listTransactions → Transactions. */
export const listTitle = (operation) => title(operation.name.replace(/^list/, "").replace(/AsJSON$/, ""));

/** So many columns are shown on a small screen. */
const FIRST = 3;

export class AnyListPage extends ListPage {
  constructor(app, route) {
    const [collection] = route.names;
    const operation = lists().find((one) => one.collection === collection);
    const fields = operation?.fields ?? [];
    const [first] = fields;
    const brief = fields.filter((field) => field.isBrief);
    const chosen = brief.length > 0 ? brief : fields.slice(0, 6);
    const stateAt = chosen.findIndex((field) => field.name === "state");
    const columns = chosen.map((field, place) => ({ ...fieldColumn(field), from: place === stateAt || place < FIRST - (stateAt >= FIRST) ? 0 : 700 }));
    if (columns.length > 0) columns[0].cell = (row) => h("span", { class: "wraps" }, link(to("list", collection, row[first.name]), String(row[columns[0].name])));
    const name = operation ? listTitle(operation) : title(collection);
    super(app, route, {
      list: operation?.id ?? "",
      path: collection,
      title: name,
      one: name.toLowerCase().replace(/s$/, ""),
      several: name.toLowerCase(),
      sentence: () => operation?.sentence,
      filterBy: fields.find((field) => field.type === "string")?.name ?? first?.name ?? "name",
      example: "a condition",
      columns,
      needsAll: true,
      open: (row) => app.go(to("list", collection, row[first.name])),
      nothing: [`No ${name.toLowerCase()}`, operation?.sentence ?? "This broker has no such list."],
    });
  }
}

export class AnyThingPage {
  constructor(app, { names: [collection, key] }) {
    this.app = app;
    this.collection = collection;
    this.key = key;
    this.list = lists().find((one) => one.collection === collection);
    const name = this.list?.fields[0]?.name ?? "id";
    this.title = `${this.list ? listTitle(this.list) : collection} ${key}`;
    this.request = url(collection, { where: `${name}=${key}` });
    this.on = operations.find((one) => one.collection === collection && one.on.length === 1)?.on ?? [];
  }

  wants() {
    return [this.request];
  }

  view() {
    const crumb = link(to("list", this.collection), this.list ? listTitle(this.list) : this.collection);
    const answer = this.app.feed.value(this.request);
    const row = answer?.data[0];
    const given = { [this.on[0]]: this.key };
    if (row === undefined) {
      return [head(this.key, { crumb }), told(this.app.feed, this.request, () => empty("Not found", "It may have been deleted."))];
    }
    const actions = this.on.length > 0 ? actionButtons(this.app, this.on, () => ({ given, name: this.key })) : [];
    return [head(this.key, { crumb, actions }), card("Attributes", facts(row, this.list.fields)), this.on.length > 0 && reportsCard(this.app, this.on, given)];
  }
}
