// Files that go with the next message: uploaded at once, with progress, kept in the draft as references.

import { type Api, ApiError } from "../net/api.ts";
import { pending } from "../lib/busy.ts";
import { forgetFile, isKept, keepFile } from "../lib/kept_files.ts";
import { Store } from "../lib/store.ts";
import { t } from "../lib/i18n.ts";
import type { FileLimits } from "./boot.ts";
import { fileProblem } from "./file_limits.ts";
import type { FilePart, StoredFile } from "./types.ts";

const MOST = 10;

export interface Attachment {
  id: number;
  name: string;
  size: number;
  /** "waiting": there is no line; it is kept in this browser and goes out with its message. */
  state: "uploading" | "ready" | "waiting" | "failed";
  /** Share of the upload, 0 to 1. */
  progress: number;
  error: string;
  stored: StoredFile | null;
  /** The text that was pasted, where it was too long for the field; "" for other files, and once the page was loaded again. */
  pasted: string;
  abort: AbortController;
}

export class Attachments extends Store {
  items: readonly Attachment[] = [];
  #made = 0;
  #api: Api;
  #limits: FileLimits;

  constructor(api: Api, limits: FileLimits) {
    super();
    this.#api = api;
    this.#limits = limits;
  }

  get isBusy(): boolean {
    return this.items.some((item) => item.state === "uploading");
  }

  get isEmpty(): boolean {
    return this.items.every((item) => item.state === "failed");
  }

  /** Parts for the message: what has arrived, in order. */
  parts(): FilePart[] {
    return this.saved().map((file) => ({
      type: "file",
      mediaType: file.media_type,
      url: file.url,
      filename: file.name,
    }));
  }

  /** References for the draft. */
  saved(): StoredFile[] {
    return this.items.flatMap((item) => (item.stored ? [item.stored] : []));
  }

  restore(files: StoredFile[] = []): void {
    this.#stop();
    this.items = files.map((stored) => ({
      ...this.#newItem(stored.name, stored.byte_size),
      state: isKept(stored.url) ? "waiting" : "ready",
      stored,
    }));
    this.changed();
  }

  /** Upload files. Returns why some were left out, in words; empty when all are on their way. `pasted`: the text that one is. */
  add(files: readonly File[], pasted = ""): string {
    const problems: string[] = [];
    for (const file of files) {
      if (this.items.length >= MOST) return [...problems, t("composer.too-many-files", { count: MOST })].join(" ");
      const problem = fileProblem(file, this.#limits);
      if (problem) problems.push(problem);
      else this.#upload(file, pasted);
    }
    return problems.join(" ");
  }

  remove(id: number): void {
    const removed = this.items.find((item) => item.id === id);
    removed?.abort.abort();
    if (removed?.state === "waiting") forgetFile(removed.stored!.url).catch(() => {}); // it is forgotten later
    this.items = this.items.filter((item) => item.id !== id);
    this.changed();
  }

  clear(): void {
    this.#stop();
    this.items = [];
    this.changed();
  }

  #stop(): void {
    for (const item of this.items) item.abort.abort();
  }

  #newItem(name: string, size: number, pasted = ""): Attachment {
    const abort = new AbortController();
    return { id: ++this.#made, name, size, state: "uploading", progress: 0, error: "", stored: null, pasted, abort };
  }

  async #upload(file: File, pasted: string): Promise<void> {
    const item = this.#newItem(file.name || t("composer.pasted-image"), file.size, pasted);
    this.items = [...this.items, item];
    this.changed();
    const change = (fields: Partial<Attachment>) => {
      this.items = this.items.map((other) => (other.id === item.id ? { ...other, ...fields } : other));
      this.changed();
    };
    try {
      const stored = await this.#api.upload(file, {
        signal: item.abort.signal,
        onProgress: (progress: number) => change({ progress }),
      }) as StoredFile;
      change({ state: "ready", stored });
    } catch (error) {
      if ((error as Error).name === "AbortError") return;
      const isLine = error instanceof ApiError && error.kind === "offline";
      const url = isLine ? await pending(keepFile(file)).catch(() => "") : "";
      if (!url) return change({ state: "failed", error: (error as Error).message });
      const stored = { url, name: item.name, media_type: file.type, byte_size: file.size };
      change({ state: "waiting", stored });
    }
  }
}
