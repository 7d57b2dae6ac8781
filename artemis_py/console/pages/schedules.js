// Messages that are sent again and again.

import { operation } from "../js/description.js";
import { date, duration, several } from "../js/format.js";
import { button, link, to } from "../js/parts.js";
import { ListPage } from "./list_page.js";

/** 1 h, 3 more times; or the line of cron. */
function rhythm(row) {
  const often = row.repeat < 0 ? "" : `, ${several(row.repeat, "more time")}`;
  return [row.cron, row.period > 0 && `every ${duration(row.period)}${often}`].filter(Boolean).join(", then ") || "once more";
}

export class SchedulesPage extends ListPage {
  constructor(app, route) {
    const cancel = operation("cancelSchedule");
    super(app, route, {
      path: "schedules",
      one: "schedule",
      sentence: () => "Messages that are sent regularly.",
      filterBy: "destination",
      example: "cron~MON",
      columns: [
        { name: "next", title: "Next date", width: "min(130px, 36vw)", cell: (row) => date(row.next).slice(0, 16) },
        { name: "destination", title: "Address", width: [70, 1.4], cell: (row) => link(to("addresses", row.destination), row.destination) },
        { name: "rhythm", fields: ["cron", "period", "repeat"], title: "Cron or period", sort: "cron", width: [120, 1.4], from: 560, cell: rhythm },
        { name: "durable", width: 76, from: 860, sentence: "Does it survive a restart?", cell: (row) => (row.durable ? "yes" : "no") },
        { name: "schedule", title: "No.", width: 84, isNumber: true, from: 700, sentence: "The id of its first message", cell: (row) => String(row.schedule) },
        { name: "cancel", title: "", sort: false, fields: [], width: 84, cell: (row) => cancel && button("Cancel", () => app.act(cancel, { given: { schedule: row.schedule }, name: String(row.schedule) }), "tiny danger") },
      ],
      sort: "next",
      open: (row) => app.go(to("list", "schedules", row.schedule)),
      nothing: ["No schedules", "A message with the header AMQ_SCHEDULED_CRON or AMQ_SCHEDULED_PERIOD is sent repeatedly.", "artemis-py send --header 'AMQ_SCHEDULED_CRON=0 6 * * MON-FRI' reports start"],
    });
  }
}
