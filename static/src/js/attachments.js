// Files that go with the next message: uploaded at once, with progress, kept in the draft as references.

import { h, icon, iconButton } from "./dom.js";
import { fileSize } from "../app/lib/format.ts";

const MOST = 10;

export class Attachments {
  #api;
  #element;
  #onChange;
  items = [];

  constructor(api, element, onChange) {
    this.#api = api;
    this.#element = element;
    this.#onChange = onChange;
  }

  get isBusy() {
    return this.items.some((item) => item.state === "uploading");
  }

  get isEmpty() {
    return this.items.every((item) => item.state === "failed");
  }

  /** File parts of what has arrived, in order. */
  parts() {
    return this.items
      .filter((item) => item.state === "ready")
      .map(({ stored }) => ({ type: "file", mediaType: stored.media_type, url: stored.url, filename: stored.name }));
  }

  /** References for the draft. */
  saved() {
    return this.items.filter((item) => item.state === "ready").map((item) => item.stored);
  }

  restore(stored) {
    this.clear();
    this.items = (stored ?? []).map((file) => ({
      name: file.name,
      size: file.byte_size,
      state: "ready",
      stored: file,
    }));
    this.#draw();
  }

  add(files) {
    for (const file of files) {
      if (this.items.length >= MOST) return `At most ${MOST} files go with one message.`;
      this.#upload(file);
    }
    this.#draw();
    return "";
  }

  clear() {
    for (const item of this.items) item.abort?.abort();
    this.items = [];
    this.#draw();
  }

  async #upload(file) {
    const item = {
      name: file.name || "pasted image",
      size: file.size,
      state: "uploading",
      progress: 0,
      abort: new AbortController(),
    };
    this.items.push(item);
    try {
      item.stored = await this.#api.upload(file, {
        signal: item.abort.signal,
        onProgress: (fraction) => {
          item.progress = fraction;
          if (item.meter) item.meter.value = fraction;
        },
      });
      item.state = "ready";
    } catch (error) {
      if (error.name === "AbortError") return;
      item.state = "failed";
      item.error = error.message;
    }
    this.#draw();
    this.#onChange();
  }

  #remove(item) {
    item.abort?.abort();
    this.items = this.items.filter((other) => other !== item);
    this.#draw();
    this.#onChange();
  }

  #draw() {
    this.#element.hidden = this.items.length === 0;
    this.#element.replaceChildren(...this.items.map((item) => this.#chip(item)));
  }

  #chip(item) {
    const meter = item.state === "uploading" ? h("progress", { max: 1, "aria-label": `Uploading ${item.name}` }) : null;
    if (meter) {
      meter.value = item.progress;
      item.meter = meter;
    }
    const note = item.state === "failed"
      ? h("span", { class: "is-error", text: item.error })
      : h("span", { class: "muted", text: fileSize(item.size ?? 0) });
    return h(
      "li",
      { class: `file-chip is-${item.state}` },
      icon("file"),
      h("span", { class: "file-name", text: item.name }),
      meter ?? note,
      iconButton("close", `Remove ${item.name}`, () => this.#remove(item)),
    );
  }
}
