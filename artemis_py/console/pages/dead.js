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
  max_deliveries: "Deliveries failed too often",
  max_cancels: "Consumers gave it back too often",
  time_limit: "It has expired",
  forced_expire: "A client or an operator let it expire",
  no_route: "No queue took it",
  sent_by_operator: "An operator sent it here",
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
      { name: "origin", title: "From", width: "minmax(80px, 1.3fr)", cell: (row) => (row.originalQueue ? link(to("queues", row.originalQueue), row.originalQueue) : (row.originalAddress ?? "a client")) },
      { name: "cause", title: "Why", width: "minmax(80px, 1.6fr)", cell: (row) => h("span", { class: "wraps", title: row.cause }, CAUSES[row.cause] ?? row.cause ?? "A client sent it here") },
      { name: "queue", title: "Now on", width: "minmax(80px, 0.8fr)", from: 700, cell: (row) => link(to("queues", row.queue), row.queue) },
      { name: "count", title: "Messages", width: "80px", isNumber: true, sentence: "Leads to these messages, and from there to the life of each", cell: (row) => link(`${to("queues", row.queue)}?filter=${encodeURIComponent(these(row))}`, count(row.count, true)) },
      { name: "retried", title: "Sent back before", width: "118px", from: 1080, isNumber: true, cell: (row) => count(row.retried, true) },
      { name: "size", title: "Size", width: "80px", from: 1000, isNumber: true, cell: (row) => bytes(row.size) },
      { name: "last", title: "Last one", width: "180px", from: 860, isNumber: true, cell: (row) => date(row.last) },
      { name: "retry", title: "", width: "78px", cell: (row) => button("Retry", () => this.#retry(row, row.count), "tiny", { "aria-label": `Retry those of ${row.originalQueue ?? row.originalAddress ?? "clients"}` }) },
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
      notes.rate = rate > RATE_MIN ? "Proposed: as many as its consumers acknowledge now." : "Proposed: see how consumers bear it, then give more.";
    }
    this.app.act(operation("retryDeadLetters"), { preset, notes });
  }

  view() {
    const answer = this.app.feed.value(LIST);
    const rows = answer?.data ?? [];
    const total = rows.reduce((sum, row) => sum + row.count, 0);
    const sentence = answer === undefined ? null : total === 0 ? "No message has died." : `${several(total, "message")} of ${several(answer.count, "kind")}. Mend the cause first, try with a dry run, then send them back at a rate that the consumers can bear.`;
    const body = rows.length === 0 ? empty("There are no dead letters", "Messages come here when their deliveries failed too often, or when they expired.") : shortTable("Dead letters", this.columns, rows, { key: (row) => `${row.queue} ${row.originalQueue} ${row.originalAddress} ${row.cause}` });
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
      { name: "what", title: "What", width: "minmax(140px, 1.6fr)", cell: (row) => `${row.what}, ${row.queue}` },
      { name: "state", title: "State", width: "96px", cell: (row) => chip(row.state, row.state === "running" ? "accent" : row.state === "done" ? "good" : "warn") },
      { name: "done", title: "Done", width: "150px", isNumber: true, cell: (row) => `${count(row.done)} of ${count(row.planned)}` },
      { name: "rate", title: "Per second", width: "90px", from: 700, isNumber: true, cell: (row) => count(row.rate) },
      { name: "remark", title: "Remark", width: "minmax(100px, 1.4fr)", from: 1000, cell: (row) => row.remark ?? "–" },
      { name: "stop", title: "", width: "70px", cell: (row) => row.state === "running" && button("Stop", () => stop(row), "tiny danger") },
    ];
    return card("Under way, and lately", shortTable("Jobs", columns, rows, { key: (row) => row.id }), { bare: true });
  }
}
