// The directories of a conversation as far as they were opened, and the rows that they make.

import { Store } from "../lib/store.ts";
import type { FileEntry, FilesApi, FileTotals } from "../net/files_api.ts";

const PAGE = 200;
const MOST = 1_000; // that the server gives at once

interface Directory {
  items: readonly FileEntry[];
  hasMore: boolean;
}

/** A line of the tree: an entry; where `kind` is "more", what reads on in a directory; where it is "empty", that it is. */
export interface TreeRow {
  kind: "entry" | "more" | "empty";
  /** Of the entry, or of the directory that goes on. */
  path: string;
  entry: FileEntry | null;
  /** From 1. */
  level: number;
  isOpen: boolean;
  /** How many stand beside each other, and which of them it is, from 1. Unknown while there are more: -1. */
  size: number;
  position: number;
}

/** The parent of a path; "/" of what stands in the root. */
export const parentOf = (path: string): string => path.slice(0, path.lastIndexOf("/")) || "/";

/** A path below a directory. */
export const joined = (directory: string, name: string): string => `${directory === "/" ? "" : directory}/${name}`;

export class FileTree extends Store {
  totals: FileTotals | null = null;
  readonly #api: FilesApi;
  #directories: ReadonlyMap<string, Directory> = new Map();
  readonly #opened = new Set<string>();

  constructor(api: FilesApi) {
    super();
    this.#api = api;
  }

  get rows(): TreeRow[] {
    return rowsOf("/", 1, this.#directories, this.#opened);
  }

  /** Read again all that was read: totals, and what is open. Throws an `ApiError`. */
  async read(signal?: AbortSignal): Promise<void> {
    const paths = ["/", ...this.#opened];
    const lengths = paths.map((path) => Math.max(this.#directories.get(path)?.items.length ?? 0, PAGE));
    const [totals, ...pages] = await Promise.all([
      this.#api.totals(signal),
      ...paths.map((path, at) => this.#api.children(path, Math.min(lengths[at], MOST), 0, signal)),
    ]);
    this.totals = totals;
    this.#directories = new Map(pages.map((page, at) => [paths[at], { items: page.items, hasMore: page.has_more }]));
    this.changed();
  }

  /** Open a directory, reading it, or close it. */
  async toggle(path: string, isOpen = !this.#opened.has(path)): Promise<void> {
    if (!isOpen) this.#opened.delete(path);
    else {
      const page = await this.#api.children(path, PAGE, 0);
      this.#put(path, { items: page.items, hasMore: page.has_more });
      this.#opened.add(path);
    }
    this.changed();
  }

  /** Read on in a directory. */
  async more(path: string): Promise<void> {
    const known = this.#directories.get(path)?.items ?? [];
    const page = await this.#api.children(path, PAGE, known.length);
    this.#put(path, { items: [...known, ...page.items], hasMore: page.has_more });
    this.changed();
  }

  /** Open what is above a path, so that it is in sight. */
  async reveal(path: string): Promise<void> {
    for (let above = parentOf(path); above !== "/"; above = parentOf(above)) this.#opened.add(above);
    await this.read();
  }

  #put(path: string, directory: Directory): void {
    this.#directories = new Map([...this.#directories, [path, directory]]);
  }
}

function rowsOf(
  path: string,
  level: number,
  directories: ReadonlyMap<string, Directory>,
  opened: ReadonlySet<string>,
): TreeRow[] {
  const directory = directories.get(path);
  if (!directory) return [];
  const { items, hasMore } = directory;
  const size = hasMore ? -1 : items.length;
  const base = { path, entry: null, level, isOpen: false, size: 1, position: 1 };
  const rows = items.flatMap((entry, at): TreeRow[] => {
    const isOpen = entry.kind === "directory" && opened.has(entry.path);
    const row: TreeRow = { kind: "entry", path: entry.path, entry, level, isOpen, size, position: at + 1 };
    return isOpen ? [row, ...rowsOf(entry.path, level + 1, directories, opened)] : [row];
  });
  if (hasMore) rows.push({ ...base, kind: "more", size: -1, position: items.length + 1 });
  if (!items.length && level > 1) rows.push({ ...base, kind: "empty" });
  return rows;
}
