// What the page knows to be pending, counted: requests, a line that opens, an answer that is written, parts that load, looks that
// are due. A test that waits for a page at rest waits for one thing. No DOM in here.

/** 1: work; 0: what comes of an answer that is being written. */
type Kind = 0 | 1;

export const ANSWER: Kind = 0;
const WORK: Kind = 1;

/** "answering": an answer is being written, and nothing else is pending. */
export type PageState = "rest" | "answering" | "busy";

const counts = [0, 0];
let last: PageState = "rest";
let hear = (_state: PageState): void => {};

/** Call `listener` now, and whenever that changes. */
export function watchState(listener: (state: PageState) => void): void {
  hear = listener;
  hear(last);
}

function count(kind: Kind, step: number): void {
  counts[kind] += step;
  const state = counts[WORK] ? "busy" : counts[ANSWER] ? "answering" : "rest";
  if (state !== last) hear(last = state);
}

/** Something begins. Returns the function that ends it, once. */
export function begin(kind = WORK): () => void {
  let weight = 1;
  count(kind, 1);
  return () => {
    count(kind, -weight);
    weight = 0;
  };
}

/** Count this until it has settled. */
export function pending<T>(work: Promise<T>): Promise<T> {
  const end = begin();
  work.then(end, end);
  return work;
}

/** A timer for something that is due: it counts while it is set. Setting it again moves it. */
export class Due {
  readonly #kind: Kind;
  #timer = 0;
  #end = () => {};

  constructor(kind = WORK) {
    this.#kind = kind;
  }

  get isSet(): boolean {
    return this.#timer > 0;
  }

  set(act: () => unknown, pause: number): void {
    const end = begin(this.#kind);
    this.clear();
    this.#end = end;
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      act(); // what follows from it begins before this ends
      end();
    }, pause);
  }

  clear(): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#end();
  }
}
