// What of two things about one history is older: a page of the API takes its time, and the line tells meanwhile.

const MOST_MISSED = 4;

export class Freshness {
  #movedAt = 0;
  #missed = 0; // pages in a row that were older than what is known
  #version = 0;

  /** Changes of the history that are in the list for certain. */
  get version(): number {
    return this.#version;
  }

  /** Another history is shown: it has numbers of its own. */
  restart(): void {
    this.#movedAt = 0;
    this.#missed = 0;
    this.#version = 0;
  }

  /** The server reported an end, a clear or an accepted message: an earlier request's answer may not include it. */
  moved(): void {
    this.#movedAt = performance.now();
  }

  /** Whether a transcript, or a page, lacks changes that are in the list. One without a number may hold them all. */
  isOlder(version = Infinity): boolean {
    return version < this.#version;
  }

  note(version = 0): void {
    this.#version = Math.max(this.#version, version);
  }

  /** Whether a page is to be read again. Where one change follows another it is taken all the same. */
  isTooOld(version: number | undefined, askedAt: number): boolean {
    this.#missed = askedAt < this.#movedAt || this.isOlder(version) ? this.#missed + 1 : 0;
    return this.#missed > 0 && this.#missed < MOST_MISSED;
  }
}
