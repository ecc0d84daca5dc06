// Many tool calls in a row: one line that says how many and how they stand, and opens to the calls themselves.

import { h, setChildren, setText } from "./dom.js";
import { fold } from "./part_views.js";
import { isSettled } from "../app/store/fold.ts";
import { runSummary } from "../app/store/runs.ts";

export class ToolRunView {
  constructor() {
    this.fold = fold("tool", "tool-run", () => {});
    this.element = this.fold.details;
    this.list = h("div", { class: "tool-run-calls" });
    this.fold.body.append(this.list);
  }

  /** `views`: of the calls, which live on inside. A call that is being read stays in sight. */
  update(parts, views, isLive) {
    const elements = views.map((view) => view.element);
    if (!this.list.childElementCount && views.some((view) => view.fold.details.open)) this.element.open = true;
    setChildren(this.list, elements);
    const { label, note, hasFailed } = runSummary(parts, isLive);
    setText(this.fold.label, label);
    setText(this.fold.note, note);
    this.element.classList.toggle("has-failed", hasFailed);
    this.element.classList.toggle("is-live", isLive && !parts.every(isSettled));
  }
}
