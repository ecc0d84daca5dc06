// Tells how the line stands, in words, and only when it is not simply there.

import { h, setText } from "./dom.js";

const GRACE = 1200; // a blink of the line is not worth a word

export class ConnectionBar {
  #timer = 0;
  #tick = 0;

  constructor(element) {
    this.element = element;
    this.text = h("span", {});
    this.button = h("button", { type: "button", class: "quiet", text: "Try now", onclick: () => this.socket?.retry() });
    element.replaceChildren(this.text, this.button);
    addEventListener("offline", () => this.draw());
    addEventListener("online", () => this.draw());
  }

  watch(socket) {
    this.socket = socket;
    socket?.on("state", () => this.draw());
    this.draw();
  }

  draw() {
    clearTimeout(this.#timer);
    clearInterval(this.#tick);
    const state = this.socket?.state ?? "open";
    if (state === "open" && navigator.onLine) return void (this.element.hidden = true);
    const show = () => {
      this.element.hidden = false;
      this.#say();
      this.#tick = setInterval(() => this.#say(), 1000);
    };
    if (!this.element.hidden || !navigator.onLine || state === "refused") show();
    else this.#timer = setTimeout(show, GRACE);
  }

  #say() {
    const state = this.socket?.state ?? "open";
    this.button.hidden = state !== "waiting";
    if (state === "refused") {
      const isSignedOut = this.socket.code === 4401;
      setText(
        this.text,
        isSignedOut
          ? "You are signed out. Reload the page to sign in again."
          : `The server closed this conversation: ${this.socket.reason || `code ${this.socket.code}`}`,
      );
    } else if (!navigator.onLine) {
      setText(this.text, "You are offline. What you write is kept and sent when the connection is back.");
    } else if (state === "waiting") {
      const seconds = Math.max(1, Math.ceil((this.socket.retryAt - Date.now()) / 1000));
      setText(this.text, `The connection is lost. Trying again in ${seconds} s.`);
    } else setText(this.text, state === "open" ? "Connected" : "Connecting again");
    if (state === "open" && navigator.onLine) this.element.hidden = true;
  }
}
