// What of two things about one history is older: a page of the API takes its time, and the line tells meanwhile.

const MOST_MISSED = 4;

export class Freshness {
  #movedAt = 0;
  #missed = 0; // pages in a row that were older than what is known

  constructor() {
    this.version = 0; // changes of the history that are in the list for certain
  }

  /** The server reported an end, a clear or an accepted message: an earlier request's answer may not include it. */
  moved() {
    this.#movedAt = performance.now();
  }

  /** Whether a transcript, or a page, lacks changes that are in the list. One without a number may hold them all. */
  isOlder(version = Infinity) {
    return version < this.version;
  }

  note(version = 0) {
    this.version = Math.max(this.version, version);
  }

  /** Whether a page is to be read again. Where one change follows another it is taken all the same. */
  isTooOld(version, askedAt) {
    this.#missed = askedAt < this.#movedAt || this.isOlder(version) ? this.#missed + 1 : 0;
    return this.#missed > 0 && this.#missed < MOST_MISSED;
  }
}
