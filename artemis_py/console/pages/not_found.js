// For a path that means nothing.

import { empty, head, link } from "../js/parts.js";

export class NotFoundPage {
  title = "No such page";

  constructor(_app, { path }) {
    this.path = path;
  }

  view() {
    return [head("No such page"), empty(`There is no page ${this.path}`, link("/", "Go to the overview"))];
  }
}
