// Files on their way into a directory, one after the other, with progress. What is there already is replaced only when the
// person decides.

import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { Store } from "../lib/store.ts";
import type { FilesApi } from "../net/files_api.ts";
import { messageOf } from "../net/api.ts";
import { joined } from "./file_tree.ts";

export interface Upload {
  id: number;
  name: string;
  state: "waiting" | "sending" | "done" | "failed";
  /** Share that is sent, 0 to 1. */
  progress: number;
  error: string;
  abort: AbortController;
}

/** The answer to the question whether a file is to be replaced; null: stop asking and leave all that are there. */
export type AskReplace = (name: string, areMore: boolean) => Promise<{ replaces: boolean; isForAll: boolean }>;

export class FileUploads extends Store {
  items: readonly Upload[] = [];
  readonly #api: FilesApi;
  readonly #ask: AskReplace;
  readonly #limit: () => number | undefined;
  #made = 0;

  /** `limit`: how many bytes a file may have, as far as that is known. */
  constructor(api: FilesApi, ask: AskReplace, limit: () => number | undefined) {
    super();
    this.#api = api;
    this.#ask = ask;
    this.#limit = limit;
  }

  /** Upload them all. Returns how many arrived; those that failed stay in the list with the reason. */
  async add(files: readonly File[], directory: string): Promise<number> {
    const added = files.map((file): [File, Upload] => [file, this.#item(file.name)]);
    this.items = [...this.items, ...added.map(([, item]) => item)];
    this.changed();
    let forAll: boolean | null = null;
    let count = 0;
    for (const [at, [file, item]] of added.entries()) {
      try {
        const path = joined(directory, file.name);
        if (await this.#send(item, file, path, "")) {
          if (forAll === null) {
            const answer = await this.#ask(file.name, at < added.length - 1);
            if (answer.isForAll) forAll = answer.replaces;
            if (!answer.replaces) throw new DOMException("left as it is", "AbortError");
          } else if (!forAll) throw new DOMException("left as they are", "AbortError");
          await this.#send(item, file, path, null);
        }
        count += 1;
        this.remove(item.id);
      } catch (error) {
        if ((error as Error).name === "AbortError") this.remove(item.id);
        else this.#change(item.id, { state: "failed", error: messageOf(error) });
      }
    }
    return count;
  }

  /** Take one out; what is on its way is stopped. */
  remove(id: number): void {
    this.items.find((item) => item.id === id)?.abort.abort();
    this.items = this.items.filter((item) => item.id !== id);
    this.changed();
  }

  /** Returns whether there was a file already, which is left as it was. */
  async #send(item: Upload, file: File, path: string, expected: "" | null): Promise<boolean> {
    if (item.abort.signal.aborted) throw new DOMException("stopped", "AbortError");
    const limit = this.#limit();
    if (limit !== undefined && file.size > limit) {
      throw new Error(t("files.too-large", { size: fileSize(file.size), limit: fileSize(limit) }));
    }
    this.#change(item.id, { state: "sending", progress: 0 });
    try {
      const onProgress = (progress: number) => this.#change(item.id, { progress });
      await this.#api.write(path, file, expected, { signal: item.abort.signal, onProgress });
    } catch (error) {
      if ((error as { code?: string }).code === "file_conflict") return true;
      throw error;
    }
    return false;
  }

  #item(name: string): Upload {
    return { id: ++this.#made, name, state: "waiting", progress: 0, error: "", abort: new AbortController() };
  }

  #change(id: number, change: Partial<Upload>): void {
    this.items = this.items.map((item) => (item.id === id ? { ...item, ...change } : item));
    this.changed();
  }
}
