// All queues, and the columns of their tables.

import { spark } from "../js/chart.js";
import { duration, rate } from "../js/format.js";
import { link, to } from "../js/parts.js";
import { ahead, grows, STATE_FIELDS, states } from "../js/states.js";
import { ListPage } from "./list_page.js";

export const AGE = "firstMessageAge";

/** Columns that are made of several fields. */
export const madeColumns = [
  { name: "name", width: "minmax(min(130px, 28vw), 2.2fr)", cell: (row) => link(to("queues", row.name), row.name) },
  { name: "state", sort: "severity", fields: STATE_FIELDS, width: "minmax(min(150px, 33vw), 1.9fr)", first: "desc", sentence: "Its state; sorted by severity", cell: (row) => states(row, true) },
  { name: "messageCount", title: "Messages", width: [76, 0.8], isNumber: true },
  { name: AGE, title: "Oldest", width: [70, 0.7], from: 1000, isNumber: true, sentence: "Age of its first message", cell: (row) => duration(row[AGE]) },
  { name: "in", fields: ["addedPerMinute"], title: "In/s", width: 60, from: 700, isNumber: true, sort: "addedPerMinute", sentence: "Messages received per second, over the last minute", cell: (row) => rate(row.addedPerMinute / 60) },
  { name: "out", fields: ["ackedPerMinute"], title: "Out/s", width: 60, from: 700, isNumber: true, sort: "ackedPerMinute", sentence: "Messages acknowledged per second, over the last minute", cell: (row) => rate(row.ackedPerMinute / 60) },
  { name: "drain", sort: false, fields: [], title: "At this rate", width: 130, from: 1000, isNumber: true, sentence: "When it will be empty, full or paging while rates stay the same", cell: (row) => (grows(row) && row.timeUntilLimit < 0 ? "never drained" : ahead(row).join(" ").toLowerCase()) },
  { name: "deliveringCount", title: "In delivery", width: 88, from: 1400, isNumber: true },
  { name: "consumerCount", title: "Consumers", width: 86, from: 860, isNumber: true },
  { name: "spark", sort: false, fields: ["recentDepths"], title: "Depth", width: 98, from: 1100, sentence: "Its messages in the last five minutes", cell: (row) => spark(row.recentDepths.split(",").map(Number), `Depth of ${row.name}`) },
];

export class QueuesPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "queues",
      one: "queue",
      filterBy: "name",
      example: "messageCount>10",
      columns: madeColumns,
      sort: "messageCount:desc",
      quick: [
        ["Need attention", ["severity>0"]],
        ["With messages", ["messageCount>0"]],
        ["No consumer", ["messageCount>0", "consumerCount=0"]],
        ["Paused", ["paused=true"]],
        ["In delivery", ["deliveringCount>0"]],
        ["Paging", ["pagedCount>0"]],
        ["Dead letters", ["holdsDeadLetters=true"]],
      ],
      open: (row) => app.go(to("queues", row.name)),
      nothing: ["No queues", "Declare them in broker.xml, or let clients create them.", "artemis-py send orders hello"],
    });
  }
}
