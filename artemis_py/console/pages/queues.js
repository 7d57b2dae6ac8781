// All queues.

import { to } from "../js/parts.js";
import { ListPage } from "./list_page.js";
import { baseFields, madeColumns } from "./queue_columns.js";

export class QueuesPage extends ListPage {
  constructor(app, route) {
    super(app, route, {
      path: "queues",
      one: "queue",
      filterBy: "name",
      example: "messageCount>10",
      columns: madeColumns(),
      fields: baseFields,
      sort: "messageCount:desc",
      quick: [
        ["Need a look", ["severity>0"]],
        ["With messages", ["messageCount>0"]],
        ["No consumer", ["messageCount>0", "consumerCount=0"]],
        ["Paused", ["paused=true"]],
        ["In delivery", ["deliveringCount>0"]],
        ["Paging", ["pagedCount>0"]],
        ["Dead letters", ["holdsDeadLetters=true"]],
      ],
      open: (row) => app.go(to("queues", row.name)),
      nothing: ["There is no queue yet", "Queues are declared in broker.xml, or made when a client subscribes or sends.", "artemis-py send orders hello"],
    });
  }
}
