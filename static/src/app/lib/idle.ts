// Moments in which the page has nothing else to do.

const SLICE_MS = 8; // where the browser does not say how long it is idle
const LONGEST_MS = 16;
const LATEST_MS = 1_500; // a busy page gets on all the same

/** Resolves when the page is idle, to when that ends (as `performance.now`). */
export function idle(): Promise<number> {
  return new Promise((go) => {
    if (typeof requestIdleCallback === "undefined") setTimeout(() => go(performance.now() + SLICE_MS));
    else {
      const take = (deadline: IdleDeadline) =>
        go(performance.now() + (deadline.didTimeout ? SLICE_MS : Math.min(deadline.timeRemaining(), LONGEST_MS)));
      requestIdleCallback(take, { timeout: LATEST_MS });
    }
  });
}
