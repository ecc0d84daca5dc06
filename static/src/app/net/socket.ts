// A WebSocket that reconnects: it backs off, notices when the network returns, and stops for good when the server asks it to.

import { begin } from "../lib/busy.ts";
import { EventStore } from "../lib/event_store.ts";
import { type ClientFrame, readFrame, type ServerFrame } from "./frames.ts";

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
const OPEN_TIMEOUT = 8_000;
const STEADY_AFTER = 5_000;
const QUIET = 15_000; // a line that has brought nothing for so long is asked whether it still does
const LONGEST_SILENCE = 6_000;

const isFinal = (code: number) => code === 1008 || (code >= 4000 && code < 5000 && code !== 4429);

export type LineState = "connecting" | "open" | "waiting" | "refused";

export interface SocketEvents {
  state: LineState;
  open: undefined;
  frame: ServerFrame;
  /** The line took what was sent, and brought nothing: what went over others at that time may be lost as well. */
  dead: undefined;
}

/** The line of one conversation. How it stands is state that views follow; frames are events. */
export class AgentSocket extends EventStore<SocketEvents> {
  readonly #url: string;
  #socket: WebSocket | null = null;
  #attempt = 0;
  #timer = 0;
  #closed = false;
  #endOpening: (() => void) | null = null;
  #listening = 0; // until the line is asked, or given up
  readonly #wake = () => this.#hurry();

  readonly state: LineState = "connecting";
  /** When it is tried again, in milliseconds since the epoch: of the state "waiting". */
  readonly retryAt: number = 0;
  /** Why it was closed last, in the server's words, and the close code. */
  readonly reason: string = "";
  readonly code: number = 0;

  constructor(url: string) {
    super();
    this.#url = url;
    addEventListener("online", this.#wake);
    addEventListener("focus", this.#wake);
    addEventListener("visibilitychange", this.#wake);
  }

  connect(): void {
    if (this.#closed) return;
    clearTimeout(this.#timer);
    this.#become("connecting");
    const socket = new WebSocket(this.#url);
    this.#socket = socket;
    const tooSlow = setTimeout(() => socket.close(), OPEN_TIMEOUT);
    let steady = 0;
    socket.addEventListener("open", () => {
      clearTimeout(tooSlow);
      steady = setTimeout(() => (this.#attempt = 0), STEADY_AFTER);
      this.#become("open");
      this.#listen();
      this.emit("open");
    });
    socket.addEventListener("message", (event) => socket === this.#socket && this.#hear(event));
    socket.addEventListener("close", (event) => {
      clearTimeout(tooSlow);
      clearTimeout(steady);
      if (socket === this.#socket) this.#lost(event);
    });
  }

  /** Send a frame if the line is up; says whether it was. */
  send(frame: ClientFrame): boolean {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  close(): void {
    this.#closed = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#wake);
    removeEventListener("focus", this.#wake);
    removeEventListener("visibilitychange", this.#wake);
    clearTimeout(this.#listening);
    this.#socket?.close(1000);
    this.#socket = null;
    this.#opened();
  }

  /** Try now instead of at the end of the pause. */
  retry(): void {
    if (this.state === "waiting") this.connect();
  }

  /** Ask whether the line still carries anything, though it looks as if it did. What says nothing is given up. */
  probe(): void {
    const socket = this.#socket;
    if (!this.send({ type: "think_ping" })) return;
    clearTimeout(this.#listening);
    this.#listening = setTimeout(() => {
      if (socket !== this.#socket) return;
      this.#attempt = 0;
      this.#lost({ code: 1006, reason: "" });
      this.connect();
      socket?.close();
      this.emit("dead");
    }, LONGEST_SILENCE);
  }

  #listen(): void {
    clearTimeout(this.#listening);
    this.#listening = setTimeout(() => this.probe(), QUIET);
  }

  #hear(event: MessageEvent<unknown>): void {
    this.#listen();
    const frame = typeof event.data === "string" ? readFrame(event.data) : null;
    if (frame) this.emit("frame", frame);
    if (frame?.type === "cf_agent_mcp_servers") this.#opened(); // the last frame of each opening
  }

  /** The line has brought what it brings as it opens, or never will. */
  #opened(): void {
    this.#endOpening?.();
    this.#endOpening = null;
  }

  #lost({ code, reason }: { code: number; reason: string }): void {
    this.#socket = null;
    clearTimeout(this.#listening);
    if (this.#closed) return;
    if (isFinal(code)) return this.#become("refused", { code, reason });
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 1.7 ** this.#attempt) * (0.75 + Math.random() / 2);
    this.#attempt += 1;
    this.#become("waiting", { code, reason, retryAt: Date.now() + delay });
    this.#timer = setTimeout(() => this.connect(), delay);
  }

  #hurry(): void {
    if (this.state === "waiting" && navigator.onLine) {
      this.#attempt = 0;
      this.connect();
    } else if (!document.hidden) this.probe();
  }

  #become(state: LineState, more: { code?: number; reason?: string; retryAt?: number } = {}): void {
    if (this.state === state && state !== "waiting") return;
    if (state === "refused") this.#opened();
    else if (state !== "open") this.#endOpening ??= begin();
    Object.assign(this, { state, ...more });
    this.changed();
    this.emit("state", state);
  }
}
