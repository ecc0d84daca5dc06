// Where one is among the files of a conversation: in the list, in a file, or in what an answer has changed; and texts of files
// that were changed here and are not stored yet. They outlive the view: another tab of the panel, another conversation.

import { Store } from "../lib/store.ts";
import type { BlockPlace } from "./previews.ts";

/** A text that is not stored. The rest: of the file that it was made from; `version` is "" of a new one. */
export interface Draft {
  text: string;
  version: string;
  /** "" for UTF-8. */
  encoding: string;
  isCrLf: boolean;
}

const askFirst = (event: BeforeUnloadEvent) => event.preventDefault();

export class FilesPlace extends Store {
  /** Of which conversation; "" until the address that the page began with was shown. */
  instanceId = "";
  /** The file that is shown; "" where the list is. */
  path: string;
  /** The turns whose changes are reviewed, empty for all of the conversation; null where none are. */
  turnIds: readonly string[] | null = null;
  /** Whether the review is that of the repository that the files are in, if they are in one. */
  isRepository = false;
  /** The piece of code of a message that is shown as what it describes; null where none is. */
  block: BlockPlace | null = null;
  /** What is looked for among the files. */
  query = "";
  readonly #drafts = new Map<string, Draft>();

  constructor() {
    super();
    this.path = new URLSearchParams(location.search).get("file") ?? "";
  }

  /** Show a file, or the list with "". */
  open(instanceId: string, path: string): void {
    Object.assign(this, { instanceId, path, block: null });
    this.#tell();
  }

  /** Show a piece of code of a message. */
  preview(instanceId: string, block: BlockPlace): void {
    this.open(instanceId, "");
    this.block = block;
    this.changed();
  }

  /** Show what turns have changed, all of them for none; the list for null. */
  review(instanceId: string, turnIds: readonly string[] | null): void {
    this.turnIds = turnIds;
    this.isRepository = false;
    this.open(instanceId, "");
  }

  setRepository(isRepository: boolean): void {
    this.isRepository = isRepository;
    this.changed();
  }

  /** The place in a conversation: another one begins at its list. */
  enter(instanceId: string): void {
    if (!this.instanceId) this.instanceId = instanceId;
    if (this.instanceId === instanceId) return;
    this.query = "";
    this.review(instanceId, null);
  }

  draft = (instanceId: string, path: string): Draft | null => this.#drafts.get(`${instanceId} ${path}`) ?? null;

  /** Null: stored or given up. */
  setDraft(instanceId: string, path: string, draft: Draft | null): void {
    if (draft) this.#drafts.set(`${instanceId} ${path}`, draft);
    else this.#drafts.delete(`${instanceId} ${path}`);
    // Only then: a page that might ask is not kept for going back to it at once.
    if (this.#drafts.size) addEventListener("beforeunload", askFirst);
    else removeEventListener("beforeunload", askFirst);
  }

  /** The address leads to what is shown. */
  #tell(): void {
    const url = new URL(location.href);
    url.searchParams.delete("file");
    if (this.path) {
      url.searchParams.set("panel", "files");
      url.searchParams.set("file", this.path);
    }
    if (url.href !== location.href) history.replaceState(history.state, "", url);
    this.changed();
  }
}
