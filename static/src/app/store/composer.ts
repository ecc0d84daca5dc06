// Where one writes: the text, its files, the message that is being edited, and a draft for each conversation. What was typed is
// never lost: it is in the browser's storage until it is sent.

import { Due } from "../lib/busy.ts";
import type { Api } from "../net/api.ts";
import { recall, remember } from "../lib/storage.ts";
import { Store } from "../lib/store.ts";
import { t } from "../lib/i18n.ts";
import { Attachments } from "./attachments.ts";
import type { FileLimits } from "./boot.ts";
import { type Command, commandOf } from "./commands.ts";
import type { Delivery, FilePart, Message, StoredFile } from "./types.ts";

const DRAFT_PAUSE_MS = 250;
const LONGEST_PASTE = 20_000; // characters; what is longer becomes a file, as a field that holds it is slow

interface Draft {
  text?: string;
  files?: StoredFile[];
}

/** What is sent: `edited` is the message that it takes the place of, or null; `delivery` is chosen for this one alone. */
export interface Written {
  text: string;
  files: FilePart[];
  edited: Message | null;
  delivery?: Delivery;
}

export class Composer extends Store {
  text = "";
  editing: Message | null = null;
  /** Why something did not go in, in words. */
  note = "";
  /** Grows with each wish that the field has the focus. */
  focusWishes = 0;
  /** What Enter does instead of sending, while a saved prompt is being looked for. */
  take: (() => void) | null = null;
  readonly attachments: Attachments;
  #draftKey = "";
  readonly #due = new Due();
  #on: { send: (written: Written) => void; command: (command: Command) => void };

  constructor(
    api: Api,
    limits: FileLimits,
    on: { send: (written: Written) => void; command: (command: Command) => void },
  ) {
    super();
    this.attachments = new Attachments(api, limits);
    this.#on = on;
    addEventListener("pagehide", () => this.#save());
  }

  get isEmpty(): boolean {
    return this.text.trim() === "" && this.attachments.isEmpty;
  }

  /** Open the draft of another conversation. */
  open(draftKey: string): void {
    this.#save();
    this.#draftKey = draftKey;
    this.editing = null;
    const draft = recall(`draft.${draftKey}`, {}) as Draft;
    this.attachments.restore(draft.files);
    this.#show(draft.text ?? "");
  }

  /** The draft moves with a conversation that has got its id. */
  rename(draftKey: string): void {
    this.#draftKey = draftKey;
  }

  type(text: string): void {
    this.text = text;
    this.note = "";
    this.#saveSoon();
    this.changed();
  }

  addFiles(files: readonly File[]): void {
    this.note = this.attachments.add(files);
    this.#saveSoon();
    this.changed();
  }

  /** Take a pasted text as a file where it is long. Returns whether it was taken. */
  takePasted(text: string): boolean {
    if (text.length <= LONGEST_PASTE) return false;
    const file = new File([text], t("composer.pasted-text"), { type: "text/plain" });
    const refusal = this.attachments.add([file], text);
    if (refusal) return false; // no room for a further file: it is a text, as any
    this.#saveSoon();
    this.changed();
    return true;
  }

  /** Put a text that became a file into the field after all. */
  pasteAsText(id: number): void {
    const pasted = this.attachments.items.find((item) => item.id === id)?.pasted ?? "";
    this.attachments.remove(id);
    this.type(this.text ? `${this.text}\n${pasted}` : pasted);
    this.focus();
  }

  removeFile(id: number): void {
    this.attachments.remove(id);
    this.#saveSoon();
    this.changed();
  }

  submit(delivery?: Delivery): void {
    if (this.isEmpty) return;
    if (this.attachments.isBusy) {
      this.note = t("composer.still-uploading");
      return this.changed();
    }
    const command = !this.editing && this.attachments.items.length === 0 ? commandOf(this.text) : null;
    const written = { text: this.text.trim(), files: this.attachments.parts(), edited: this.editing, delivery };
    this.editing = null;
    this.attachments.clear();
    this.#show("");
    remember(`draft.${this.#draftKey}`, null);
    if (command) this.#on.command(command);
    else this.#on.send(written);
  }

  /** Put a text into the field: a suggestion, or a message that was taken back. */
  fill(text: string, files: StoredFile[] = []): void {
    this.attachments.restore(files);
    this.#show(text);
    this.#saveSoon();
    this.focus();
  }

  edit(message: Message, text: string, files: StoredFile[]): void {
    this.#save();
    this.editing = message;
    this.attachments.restore(files);
    this.#show(text);
    this.focus();
  }

  /** Back to what was being written before the edit. Returns whether something was being edited. */
  cancelEdit(): boolean {
    if (!this.editing) return false;
    this.open(this.#draftKey);
    this.focus();
    return true;
  }

  /** Give the field the focus, except on touch screens, where a keyboard would cover the page. */
  focus(): void {
    this.focusWishes += 1;
    this.changed();
  }

  #show(text: string): void {
    this.text = text;
    this.note = "";
    this.changed();
  }

  #saveSoon(): void {
    this.#due.set(() => this.#save(), DRAFT_PAUSE_MS);
  }

  #save(): void {
    this.#due.clear();
    if (!this.#draftKey || this.editing) return;
    const draft: Draft = { text: this.text, files: this.attachments.saved() };
    remember(`draft.${this.#draftKey}`, draft.text || draft.files?.length ? draft : null);
  }
}
