// A WebSocket that reconnects: it backs off, notices when the network returns, and stops for good when the server asks it to.

import { Emitter } from "./events.js";

const FIRST_DELAY = 500;
const LONGEST_DELAY = 15_000;
const OPEN_TIMEOUT = 8_000;
const STEADY_AFTER = 5_000;

const isFinal = (code) => code === 1008 || (code >= 4000 && code < 5000 && code !== 4429);

/** Events: "state" ("connecting" | "open" | "waiting" | "refused"), "open", "frame". */
export class AgentSocket extends Emitter {
  #url;
  #socket = null;
  #attempt = 0;
  #timer = 0;
  #closed = false;
  #wake = () => this.#hurry();

  constructor(url) {
    super();
    this.#url = url;
    this.state = "connecting";
    this.retryAt = 0;
    this.reason = "";
    addEventListener("online", this.#wake);
    addEventListener("focus", this.#wake);
  }

  connect() {
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
      this.emit("open");
    });
    socket.addEventListener("message", (event) => this.#hear(event));
    socket.addEventListener("close", (event) => {
      clearTimeout(tooSlow);
      clearTimeout(steady);
      if (socket === this.#socket) this.#lost(event);
    });
  }

  /** Send a frame if the line is up; says whether it was. */
  send(frame) {
    if (this.#socket?.readyState !== WebSocket.OPEN) return false;
    this.#socket.send(JSON.stringify(frame));
    return true;
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#timer);
    removeEventListener("online", this.#wake);
    removeEventListener("focus", this.#wake);
    this.#socket?.close(1000);
    this.#socket = null;
  }

  /** Try now instead of at the end of the pause. */
  retry() {
    if (this.state === "waiting") this.connect();
  }

  #hear(event) {
    if (typeof event.data !== "string") return;
    let frame;
    try {
      frame = JSON.parse(event.data);
    } catch {
      return;
    }
    if (frame && typeof frame.type === "string") this.emit("frame", frame);
  }

  #lost(event) {
    this.#socket = null;
    if (this.#closed) return;
    this.reason = event.reason;
    this.code = event.code;
    if (isFinal(event.code)) return this.#become("refused");
    const delay = Math.min(LONGEST_DELAY, FIRST_DELAY * 1.7 ** this.#attempt) * (0.75 + Math.random() / 2);
    this.#attempt += 1;
    this.retryAt = Date.now() + delay;
    this.#become("waiting");
    this.#timer = setTimeout(() => this.connect(), delay);
  }

  #hurry() {
    if (this.state === "waiting" && navigator.onLine) {
      this.#attempt = 0;
      this.connect();
    }
  }

  #become(state) {
    if (this.state === state && state !== "waiting") return;
    this.state = state;
    this.emit("state", state);
  }
}
