// How the line of the shown conversation stands, for the bar that is shown when it is not simply there.

import type { AgentSocket } from "../net/socket.ts";
import { Store } from "../lib/store.ts";

export const SIGNED_OUT = 4401; // close code of the server
const GRACE_MS = 1_200; // a blink of the line is not worth a word

export class Connection extends Store {
  /** The line is not there and that has lasted long enough to be said. */
  isShown = false;
  #socket: AgentSocket | null = null;
  #timer = 0;
  #isSignedOut = false; // a request was refused: the line itself may stay

  constructor() {
    super();
    for (const name of ["offline", "online", "signed-out"]) {
      addEventListener(name, () => {
        this.#isSignedOut ||= name === "signed-out";
        this.#look();
      });
    }
  }

  get state(): "open" | "connecting" | "waiting" | "refused" {
    return (this.#isSignedOut ? "refused" : this.#socket?.state ?? "open") as
      | "open"
      | "connecting"
      | "waiting"
      | "refused";
  }

  get isOffline(): boolean {
    return !navigator.onLine;
  }

  /** When the next attempt begins, in milliseconds since the epoch. */
  get retryAt(): number {
    return this.#socket?.retryAt ?? 0;
  }

  /** Why the server has closed it for good: {code, reason}. */
  get refusal(): { code: number; reason: string } {
    return { code: this.#isSignedOut ? SIGNED_OUT : this.#socket?.code ?? 0, reason: this.#socket?.reason ?? "" };
  }

  watch(socket: AgentSocket | null): void {
    this.#socket = socket;
    socket?.on("state", () => socket === this.#socket && this.#look());
    this.#look();
  }

  retry(): void {
    this.#socket?.retry();
  }

  probe(): void {
    this.#socket?.probe();
  }

  #look(): void {
    clearTimeout(this.#timer);
    const isThere = this.state === "open" && !this.isOffline;
    if (isThere) this.isShown = false;
    else if (this.isOffline || this.state === "refused") this.isShown = true;
    else if (!this.isShown) {
      this.#timer = setTimeout(() => {
        this.isShown = true;
        this.changed();
      }, GRACE_MS);
    }
    this.changed();
  }
}
