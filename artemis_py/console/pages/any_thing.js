// One row of a list that no page was made for.

import { url } from "../js/api.js";
import { lists, operations } from "../js/description.js";
import { card, empty, facts, head, link, to, told } from "../js/parts.js";
import { listTitle } from "./any_list.js";
import { actionButtons, reportsCard } from "./thing_page.js";

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
      return [head(this.key, { crumb }), told(this.app.feed, this.request, () => empty("It is not there any more", "Look at the whole list."))];
    }
    const actions = this.on.length > 0 ? actionButtons(this.app, this.on, () => ({ given, name: this.key })) : [];
    return [head(this.key, { crumb, actions }), card("All about it", facts(row, this.list.fields)), this.on.length > 0 && reportsCard(this.app, this.on, given)];
  }
}
