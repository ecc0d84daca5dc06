// What a person does to files: each asks what it has to know, does it, reads the tree again, and says what went wrong.

import { t } from "../lib/i18n.ts";
import type { Expected, FileEntry, FilesApi } from "../net/files_api.ts";
import type { App } from "../store/app.ts";
import { type FileTree, joined, parentOf } from "../store/file_tree.ts";
import { FileText } from "../store/file_text.ts";
import type { FileUploads } from "../store/file_uploads.ts";

const LONGEST_PATH = 1_000;
interface Needs {
  app: App;
  instanceId: string;
  api: FilesApi;
  tree: FileTree;
  uploads: FileUploads;
}

export class FileActions {
  readonly uploads: FileUploads;
  readonly #app: App;
  readonly #instanceId: string;
  readonly #api: FilesApi;
  readonly #tree: FileTree;

  constructor({ app, instanceId, api, tree, uploads }: Needs) {
    this.uploads = uploads;
    this.#app = app;
    this.#instanceId = instanceId;
    this.#api = api;
    this.#tree = tree;
  }

  /** Make an empty file in a directory and open it. */
  async newFile(directory: string): Promise<void> {
    const name = await this.#askName(t("files.new-file"), "");
    if (!name) return;
    await this.#attempt(async () => {
      const entry = await this.#api.write(joined(directory, name), "", "");
      await this.#tree.reveal(entry.path);
      this.#app.files.open(this.#instanceId, entry.path);
    });
  }

  async newDirectory(directory: string): Promise<void> {
    const name = await this.#askName(t("files.new-directory"), "");
    if (!name) return;
    await this.#attempt(async () => {
      const entry = await this.#api.makeDirectory(joined(directory, name));
      await this.#tree.reveal(entry.path);
    });
  }

  /** Resolves to the new path; "" where it stays. */
  async move(entry: FileEntry): Promise<string> {
    const target = await this.#app.dialogs.ask("ask-name", {
      title: t("files.move-title", { name: entry.name }),
      label: t("files.new-path"),
      confirm: t("common.rename"),
      value: entry.path,
      longest: LONGEST_PATH,
    });
    if (!target || target === entry.path) return "";
    let moved = "";
    await this.#attempt(async () => {
      moved = (await this.#api.move(entry.path, target)).path;
      await this.#tree.reveal(moved);
    });
    return moved;
  }

  /** Resolves to whether it is gone. */
  async remove(entry: Pick<FileEntry, "name" | "path" | "kind">): Promise<boolean> {
    const text = t(entry.kind === "directory" ? "files.delete-directory-text" : "files.delete-text");
    const isSure = await this.#app.dialogs.ask("confirm", {
      title: t("files.delete-title", { name: entry.name }),
      text,
      confirm: t("common.delete"),
      isDanger: true,
    });
    if (!isSure) return false;
    return await this.#attempt(async () => {
      await this.#api.remove(entry.path);
      this.#app.files.setDraft(this.#instanceId, entry.path, null);
      await this.#tree.toggle(entry.path, false);
      await this.#tree.read();
    });
  }

  async upload(files: readonly File[], directory: string): Promise<void> {
    if (!files.length) return;
    const count = await this.uploads.add(files, directory);
    if (count) this.#app.notices.show(t("files.uploaded", { count }));
    await this.#attempt(() => directory === "/" ? this.#tree.read() : this.#tree.toggle(directory, true));
    await this.#attempt(() => this.#tree.read());
  }

  async unpack(file: File, directory: string): Promise<void> {
    await this.#attempt(async () => {
      const count = await this.#api.unpack(file, directory);
      this.#app.notices.show(t("files.import-done", { count }));
      if (directory !== "/") await this.#tree.toggle(directory, true);
      await this.#tree.read();
    });
  }

  /** Show what all turns of the conversation have changed. */
  review = (): void => this.#app.files.review(this.#instanceId, []);

  async copyPath(path: string): Promise<void> {
    if (await this.#app.copy(path)) this.#app.notices.show(t("files.path-copied"));
  }

  /** Copy the whole text of a file, unless it is none or too large. */
  async copyContent(path: string): Promise<void> {
    await this.#attempt(async () => {
      const { text, isWhole } = await FileText.open(this.#api, await this.#api.entry(path));
      if (text === null || !isWhole) this.#app.notices.show(t(isWhole ? "files.not-text" : "files.too-large-to-copy"));
      else if (await this.#app.copy(text)) this.#app.notices.show(t("files.content-copied"));
    });
  }

  /** Show a directory in the tree. */
  async reveal(directory: string): Promise<void> {
    await this.#attempt(async () => {
      await this.#tree.toggle(directory, true);
      await this.#tree.reveal(directory);
    });
  }

  /** Store a text; throws an `ApiError`, of which `file_conflict` is that someone else was there in between. */
  save = (path: string, text: string, expected: Expected): Promise<FileEntry> =>
    this.#stored(path, this.#api.write(path, text, expected));

  /** The same for a text in another encoding, which it keeps; `input_invalid`: it does not have some of the letters. */
  saveText = (path: string, text: string, version: string, options: { asUtf8: boolean }): Promise<FileEntry> =>
    this.#stored(path, this.#api.writeText(path, text, version, options));

  async askReplace(name: string, areMore: boolean): Promise<{ replaces: boolean; isForAll: boolean }> {
    const answer = await this.#app.dialogs.ask("confirm", {
      title: t("files.replace-title", { name }),
      text: t("files.replace-text"),
      confirm: t("files.replace"),
      isDanger: true,
      ...(areMore ? { option: t("files.replace-others") } : {}),
    });
    return { replaces: answer !== null, isForAll: answer?.isTicked ?? false };
  }

  async #stored(path: string, work: Promise<FileEntry>): Promise<FileEntry> {
    const entry = await work;
    this.#app.announcer.say(t("files.saved"));
    await this.#attempt(() => this.#tree.reveal(parentOf(path) === "/" ? path : entry.path));
    return entry;
  }

  /** Whether the person gives up what is not saved. */
  async discards(): Promise<boolean> {
    return await this.#app.dialogs.ask("confirm", {
      title: t("files.discard-title"),
      text: t("files.discard-text"),
      confirm: t("files.discard"),
      isDanger: true,
    }) !== null;
  }

  async #askName(title: string, value: string): Promise<string | null> {
    return await this.#app.dialogs.ask("ask-name", {
      title,
      label: t("files.address"),
      confirm: t("files.make"),
      value,
      longest: LONGEST_PATH,
    });
  }

  async #attempt(verb: () => Promise<unknown>): Promise<boolean> {
    try {
      await verb();
      return true;
    } catch (error) {
      this.#app.notices.fail(error);
      return false;
    }
  }
}
