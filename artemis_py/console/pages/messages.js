// The messages of a queue: those that match a selector, as text.

import { attempt, get } from "../js/api.js";
import { changesOf } from "../js/description.js";
import { h } from "../js/dom.js";
import { bytes, count, date } from "../js/format.js";
import { asking, button, card, chip, empty, link, problemBox, searchBox, to, toggle } from "../js/parts.js";
import { shortTable } from "../js/table.js";

const SIZE = 20;
const FIELDS = "messageID,state,timestamp,priority,persistentSize,heldBy,contentType,BodyPreview,cause,originalQueue,originalMessageID";
const WHICH = [["all", "All"], ["ready", "Ready"], ["delivering", "In delivery"], ["scheduled", "Scheduled"], ["paged", "In pages"]];
const LOOKS = { ready: "good", delivering: "accent", scheduled: "", paged: "warn", behind: "" };

const from = (row) => [row.originalQueue, row.cause].filter(Boolean).join(": ");

/** The messages of one queue, asked for on demand: each time the broker goes through the queue. */
export class Messages {
  which = "all";
  page = 1;
  #answer = null;
  problem = null;
  #isAsking = false;

  constructor(app, queue, filter = "") {
    this.filter = filter;
    this.app = app;
    this.queue = queue;
    this.columns = [
      { name: "id", title: "Number", width: "min(92px, 18vw)", isNumber: true, cell: (row) => link(to("queues", queue, "messages", row.messageID), String(row.messageID)) },
      { name: "state", width: "min(106px, 28vw)", cell: (row) => chip(row.state, LOOKS[row.state] ?? "", row.heldBy) },
      { name: "preview", title: "Body", width: [100, 2], cell: (row) => h("span", { class: "mono" }, row.BodyPreview ?? "large body") },
      { name: "cause", title: "From", width: [90, 2], from: 1180, cell: (row) => h("span", { title: from(row) }, from(row)) },
      { name: "time", title: "Received", width: 178, from: 1000, isNumber: true, cell: (row) => date(row.timestamp) },
      { name: "life", width: 76, from: 700, sentence: "From the log; of a dead letter: that of its original", cell: (row) => link(to("life", row.originalMessageID || row.messageID), "Trace", "soft") },
      { name: "size", width: 76, from: 700, isNumber: true, cell: (row) => bytes(row.persistentSize) },
    ];
    this.look();
  }

  /** Asks for the page that is wanted. */
  async look(page = 1) {
    this.page = page;
    this.#isAsking = true;
    this.app.draw();
    const query = { filter: this.filter, which: this.which, page, size: SIZE, fields: FIELDS };
    await attempt(this, async () => (this.#answer = await get(`/api${to("queues", this.queue, "messages")}`, query)));
    this.#isAsking = false;
    this.app.draw();
  }

  /** What an operation on those that match is given. */
  get preset() {
    return this.filter.trim() === "" ? {} : { filter: this.filter };
  }

  #offer() {
    const all = changesOf("queue").filter((one) => one.parameters.some(({ name }) => name === "filter"));
    const act = (one) => this.app.act(one, { given: { queue: this.queue }, preset: this.preset, name: this.queue, lost: this.#answer.count, done: () => this.look() });
    this.app.offer("With all matches", all, act);
  }

  view() {
    const answer = this.#answer;
    const rows = answer?.data ?? [];
    const pages = Math.max(1, Math.ceil((answer?.count ?? 0) / SIZE));
    const more = answer && answer.isWhole === false ? " or more" : "";
    return card(
      "Messages",
      [
        h(
          "form",
          { class: "filters card-body", onsubmit: (event) => (event.preventDefault(), this.look()) },
          searchBox("Selector, such as amount > 100", { id: "selector", value: this.filter, oninput: (event) => (this.filter = event.target.value) }),
          h("div", { class: "chips" }, WHICH.map(([name, words]) => toggle(words, this.which === name, () => ((this.which = name), this.look())))),
          h("span", { class: "grow" }),
          h("button", { type: "submit", class: "button", disabled: this.#isAsking }, "Refresh"),
          answer?.count > 0 && button("Act on matches", () => this.#offer(), "", { id: "with-these" }),
        ),
        this.problem && problemBox(this.problem),
        !answer && !this.problem && asking(),
        answer && (rows.length > 0 ? shortTable("Messages", rows.some(from) ? this.columns : this.columns.filter((column) => column.name !== "cause"), rows, { key: (row) => row.messageID, open: (row) => this.app.go(to("queues", this.queue, "messages", row.messageID)) }) : empty(this.filter ? "No match" : "No messages", this.filter ? "Try another selector." : "The queue is empty.")),
        answer && h("div", { class: "table-foot soft small" }, h("span", { role: "status" }, `${count(answer.count)}${more} match`), h("span", { class: "chips" }, button("Previous", () => this.look(this.page - 1), "tiny", { disabled: this.page <= 1 }), `${this.page} of ${count(pages)}`, button("Next", () => this.look(this.page + 1), "tiny", { disabled: this.page >= pages }))),
      ],
      { bare: true, note: "a snapshot" },
    );
  }
}
