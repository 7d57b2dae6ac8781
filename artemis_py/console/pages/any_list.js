// A list that no page was made for: its columns are those that the broker calls the important ones.

import { lists } from "../js/description.js";
import { title } from "../js/format.js";
import { link, to } from "../js/parts.js";
import { ListPage } from "./list_page.js";
import { fieldColumn } from "./queue_columns.js";

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
    const columns = (brief.length > 0 ? brief : fields.slice(0, 6)).map((field, place) => ({ ...fieldColumn(field), from: place < FIRST ? 0 : 700 }));
    if (columns.length > 0) columns[0].cell = (row) => link(to("list", collection, row[first.name]), String(row[first.name]));
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
      fields: null,
      open: (row) => app.go(to("list", collection, row[first.name])),
      nothing: [`There are no ${name.toLowerCase()}`, operation?.sentence ?? "The broker has no such list."],
    });
  }
}
