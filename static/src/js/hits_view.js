// Messages that a search found, as a list of links: each opens its conversation at the message.

import { h, setText } from "./dom.js";
import { timeLabel } from "./format.js";
import { fromSearch, hitAddress } from "../app/store/hits.ts";

const NEWEST = "5,000"; // of the server's search

export class HitsView {
  #query = "";
  #abort = null;
  #cursor = "";
  count = null; // of the hits that are shown; null before an answer

  /**
   * `elements`: {list, note, more, heading}. `on`: {base, open(hit), found(), isQuiet: nothing is said where nothing is
   * found, isInside: all hits are of the open conversation}. `within` narrows the search.
   */
  constructor(elements, api, on, within = () => ({})) {
    this.elements = elements;
    this.api = api;
    this.on = on;
    this.within = within;
    elements.more.addEventListener("click", () => this.#more());
  }

  /** Show what matches; an empty query shows nothing. The former hits stay until the new ones are there. */
  async search(query) {
    this.#query = query;
    this.#abort?.abort();
    this.count = null;
    if (!query) return this.#clear();
    this.#abort = new AbortController();
    try {
      const page = fromSearch(
        await this.api.search({ q: query, limit: 20, ...this.within() }, { signal: this.#abort.signal }),
      );
      this.#draw(page);
    } catch (error) {
      if (error.name !== "AbortError") this.#draw({ hits: [], cursor: "", isPartial: false, problem: error.message });
    }
  }

  #clear() {
    this.elements.list.replaceChildren();
    this.#say("");
    this.elements.more.hidden = true;
    this.elements.heading.hidden = true;
    this.on.found?.();
  }

  #draw(page) {
    const { list, heading } = this.elements;
    this.count = page.problem ? null : page.hits.length;
    list.replaceChildren(...page.hits.map((hit) => this.#row(hit)));
    heading.hidden = !page.hits.length && !page.problem;
    this.#finish(page);
    const none = page.problem || (page.hits.length || this.on.isQuiet ? "" : "No message matches.");
    this.#say(none || (page.isPartial ? `Very many messages match: these are from the newest ${NEWEST}.` : ""));
    this.on.found?.();
  }

  #finish(page) {
    this.#cursor = page.cursor;
    this.elements.more.hidden = !page.cursor;
  }

  async #more() {
    const query = this.#query;
    let page;
    try {
      page = fromSearch(await this.api.search({ q: query, limit: 20, cursor: this.#cursor, ...this.within() }));
    } catch (error) {
      return this.#say(error.message);
    }
    if (query !== this.#query) return; // another search by now
    const rows = page.hits.map((hit) => this.#row(hit));
    this.elements.list.append(...rows);
    this.count += rows.length;
    this.#finish(page);
    rows[0]?.querySelector("a").focus(); // the button may be gone
  }

  #say(text) {
    setText(this.elements.note, text);
    this.elements.note.hidden = !text;
  }

  #row(hit) {
    const facts = [hit.role === "user" ? "You" : "Answer", timeLabel(hit.at)];
    if (hit.isElsewhere) facts.push("in another history");
    else if (hit.isOtherVersion) facts.push("in another version");
    const snippet = hit.segments.map(({ text, isHit }) => (isHit ? h("mark", { text }) : text));
    const title = this.on.isInside
      ? null
      : h("span", { class: "hit-title", dir: "auto", text: hit.title || "New conversation" });
    const open = (event) => {
      if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
      event.preventDefault();
      this.on.open(hit);
    };
    const link = h(
      "a",
      { href: hitAddress(this.on.base, hit), onclick: open },
      title,
      h("span", { class: "hit-text", dir: "auto" }, snippet),
      h("span", { class: "hit-facts", text: facts.join(" · ") }),
    );
    return h("li", { class: "hit", dataset: { message: hit.messageId } }, link);
  }
}
