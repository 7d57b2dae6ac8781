// Dead letters by where they came from and why, and how they go back.

import { get, url } from "../js/api.js";
import { operation } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count, date, several } from "../js/format.js";
import { button, card, chip, empty, head, link, to, told } from "../js/parts.js";
import { shortTable } from "../js/table.js";

const LIST = url("dead-letters", { sort: "count:desc", size: 200 });
const JOBS = url("jobs", { sort: "id:desc", size: 10 });
const RATE_MIN = 10;
const CAUSES = {
  max_deliveries: "Too many deliveries",
  max_cancels: "Refused too often",
  time_limit: "Expired",
  forced_expire: "Expired on request",
  no_route: "No queue matched",
  sent_by_operator: "By an operator",
  bridge_loop: "Came back to its bridge",
};

const text = (value) => `'${value.replaceAll("'", "''")}'`;

/** The selector that finds the messages of a row. */
function these(row) {
  const conditions = [["_AMQ_ORIG_QUEUE", row.originalQueue], ["_AMQ_ORIG_ADDRESS", row.originalAddress], ["reason", row.cause]];
  return conditions.map(([name, value]) => (value === null ? `${name} IS NULL` : `${name} = ${text(value)}`)).join(" AND ");
}

export class DeadPage {
  title = "Dead letters";

  constructor(app) {
    this.app = app;
    this.columns = [
      { name: "origin", title: "From", width: [80, 1.3], cell: (row) => (row.originalQueue ? link(to("queues", row.originalQueue), row.originalQueue) : (row.originalAddress ?? "a client")) },
      { name: "cause", title: "Why", width: [80, 1.6], cell: (row) => h("span", { class: "wraps", title: row.cause }, CAUSES[row.cause] ?? row.cause ?? "By a client") },
      { name: "queue", width: [80, 1.3], from: 700, cell: (row) => link(to("queues", row.queue), row.queue) },
      { name: "count", title: "Messages", width: 66, isNumber: true, sentence: "Lists these messages", cell: (row) => link(`${to("queues", row.queue)}?filter=${encodeURIComponent(these(row))}`, count(row.count, true)) },
      { name: "retried", title: "Retried before", width: 118, from: 1080, isNumber: true },
      { name: "size", width: 80, from: 1000, isNumber: true, cell: (row) => bytes(row.size) },
      { name: "last", width: 140, from: 860, isNumber: true, cell: (row) => date(row.last).slice(0, 19) },
      { name: "retry", title: "", width: 78, cell: (row) => button("Retry", () => this.#retry(row, row.count), "tiny", { "aria-label": `Retry those of ${row.originalQueue ?? row.originalAddress ?? "clients"}` }) },
    ];
  }

  wants() {
    return operation("listJobs") ? [LIST, JOBS] : [LIST];
  }

  async #retry(row, count) {
    const preset = row === null ? {} : { queue: row.queue, origin: row.originalQueue ?? row.originalAddress ?? "", cause: row.cause ?? "" };
    const origin = row?.originalQueue && (await get(`/api${to("queues", row.originalQueue)}`).catch(() => null));
    const rate = Math.max(RATE_MIN, Math.round((origin?.ackedPerMinute ?? 0) / 60));
    const notes = {};
    if (count > rate) {
      preset.rate = String(rate);
      notes.rate = rate > RATE_MIN ? "Proposed: what its consumers acknowledge now." : "Proposed: start slowly, then raise it.";
    }
    this.app.act(operation("retryDeadLetters"), { preset, notes });
  }

  view() {
    const answer = this.app.feed.value(LIST);
    const rows = answer?.data ?? [];
    const total = rows.reduce((sum, row) => sum + row.count, 0);
    const sentence = answer === undefined ? null : total === 0 ? "No dead letters." : `${several(total, "message")} of ${several(answer.count, "kind")}. Fix the cause, try a dry run, then retry at a rate that consumers can handle.`;
    const body = rows.length === 0 ? empty("No dead letters", "Messages come here after too many failed deliveries, or when they expire.") : shortTable("Dead letters", this.columns, rows, { key: (row) => `${row.queue} ${row.originalQueue} ${row.originalAddress} ${row.cause}` });
    return [
      head("Dead letters", { sentence, actions: rows.length > 0 ? [button("Retry all", () => this.#retry(null, total), "primary")] : [] }),
      told(this.app.feed, LIST, () => card("By origin and cause", body, { bare: true })),
      this.#jobs(),
    ];
  }

  #jobs() {
    const rows = this.app.feed.value(JOBS)?.data ?? [];
    if (rows.length === 0) return null;
    const stop = (row) => this.app.act(operation("stopJob"), { given: { job: String(row.id) } });
    const columns = [
      { name: "what", width: [140, 1.6], cell: (row) => `${row.what}, ${row.queue}` },
      { name: "state", width: 96, cell: (row) => chip(row.state, row.state === "running" ? "accent" : row.state === "done" ? "good" : "warn") },
      { name: "done", width: 150, isNumber: true, cell: (row) => `${count(row.done)} of ${count(row.planned)}` },
      { name: "rate", title: "Per second", width: 90, from: 700, isNumber: true },
      { name: "remark", width: [100, 1.4], from: 1000 },
      { name: "stop", title: "", width: 70, cell: (row) => row.state === "running" && button("Stop", () => stop(row), "tiny danger") },
    ];
    return card("Jobs", shortTable("Jobs", columns, rows, { key: (row) => row.id }), { bare: true });
  }
}
