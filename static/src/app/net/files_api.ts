// The files of one conversation on the server.

import { type Api, formOf, type RequestOptions, type Schemas } from "./api.ts";

export type FileEntry = Schemas["WorkspaceEntryOut"];
export type FileTotals = Schemas["WorkspaceOut"];
export type SentFile = Schemas["SentFileOut"];
export type FoundFiles = Schemas["FoundFilesOut"];
export type DirectoryPage = Schemas["WorkspaceEntriesOut"];
export type Review = Schemas["ReviewOut"];
export type ReviewedFile = Schemas["ReviewedFileOut"];
export type Hunk = Schemas["HunkOut"];
export type RepositoryState = Schemas["RepositoryOut"];
export type RepositoryChange = Schemas["RepositoryChangeOut"];
type RepositoryDifference = Schemas["RepositoryDifferenceOut"];
export type KeptVersion = Schemas["KeptVersionOut"];
export type ReviewAction = Schemas["ReviewIn"]["action"];

/** Which version a writing replaces: that of an entry, "" for none (a new file), null for any. */
export type Expected = string | null;

export interface WriteOptions extends RequestOptions {
  onProgress?: (fraction: number) => void;
}

const queryOf = (values: Record<string, string | number | boolean>): string =>
  String(new URLSearchParams(Object.entries(values).map(([name, value]) => [name, String(value)])));

const turnsOf = (ids: readonly string[]): string => String(new URLSearchParams(ids.map((id) => ["turn", id])));

export class FilesApi {
  readonly #api: Api;
  readonly #instance: string;
  readonly #base: string;

  constructor(api: Api, instanceId: string) {
    this.#api = api;
    this.#instance = `/instances/${encodeURIComponent(instanceId)}`;
    this.#base = `${this.#instance}/workspace`;
  }

  totals = (signal?: AbortSignal): Promise<FileTotals> => this.#api.request("GET", this.#base, undefined, { signal });

  children = (path: string, limit: number, offset: number, signal?: AbortSignal): Promise<DirectoryPage> =>
    this.#api.request("GET", `${this.#base}/entries?${queryOf({ path, limit, offset })}`, undefined, { signal });

  entry = (path: string, signal?: AbortSignal): Promise<FileEntry> =>
    this.#api.request("GET", `${this.#base}/entry?${queryOf({ path })}`, undefined, { signal });

  /** Entries whose name contains a text, the first ones by their path. */
  find = (name: string, signal?: AbortSignal): Promise<FoundFiles> =>
    this.#api.request("GET", `${this.#base}/search?${queryOf({ name, ignored: true })}`, undefined, { signal });

  /** What turns of the conversation changed in files; without any, all of them. */
  review = (turnIds: readonly string[], signal?: AbortSignal): Promise<Review> =>
    this.#api.request("GET", `${this.#instance}/review?${turnsOf(turnIds)}`, undefined, { signal });

  /** Decide about a file or some of its hunks. A file that has changed since is an `ApiError`: `file_conflict`. */
  decide(turnIds: readonly string[], action: ReviewAction, file: ReviewedFile, hunks: string[]): Promise<Review> {
    const body = { action, file_id: file.id, version: file.version, hunks, turns: [...turnIds] };
    return this.#api.request("POST", `${this.#instance}/review`, body);
  }

  patchAddress = (turnIds: readonly string[]): string => `${this.#api.base}${this.#instance}/patch?${turnsOf(turnIds)}`;

  /** How the files differ from the last commit, where they are in a repository. */
  repository = (signal?: AbortSignal): Promise<RepositoryState> =>
    this.#api.request("GET", `${this.#instance}/repository`, undefined, { signal });

  repositoryDifference = ({ path, was }: RepositoryChange, signal?: AbortSignal): Promise<RepositoryDifference> =>
    this.#api.request("GET", `${this.#instance}/repository/difference?${queryOf({ path, was })}`, undefined, {
      signal,
    });

  get repositoryPatchAddress(): string {
    return `${this.#api.base}${this.#instance}/repository/patch`;
  }

  remove = (path: string): Promise<null> =>
    this.#api.request("DELETE", `${this.#base}/entries?${queryOf({ path, recursive: true })}`);

  makeDirectory = (path: string): Promise<FileEntry> =>
    this.#api.request("POST", `${this.#base}/directories`, { path });

  move = (source: string, target: string): Promise<FileEntry> =>
    this.#api.request("POST", `${this.#base}/moves`, { source, target });

  /** The way from the stored text to another one, as a unified diff. */
  diff = async (path: string, content: string): Promise<string> =>
    (await this.#api.request<Schemas["DiffOut"]>("POST", `${this.#base}/diff`, { path, content })).diff;

  /** The text of a file in any encoding, decoded by the server. */
  text = (path: string, signal?: AbortSignal): Promise<Schemas["FileTextOut"]> =>
    this.#api.request("GET", `${this.#base}/text?${queryOf({ path })}`, undefined, { signal });

  /** What stood in a file before answers changed it, the newest first. */
  versions = async (path: string, signal?: AbortSignal): Promise<KeptVersion[]> => {
    const address = `${this.#base}/versions?${queryOf({ path })}`;
    return (await this.#api.request<Schemas["FileVersionsOut"]>("GET", address, undefined, { signal })).items;
  };

  version = async (path: string, id: number, signal?: AbortSignal): Promise<string> => {
    const address = `${this.#base}/versions/${id}?${queryOf({ path })}`;
    return (await this.#api.request<Schemas["FileVersionOut"]>("GET", address, undefined, { signal })).text;
  };

  /** Replace the text of a file in the encoding that it has, or in UTF-8. Conflicts as `write`. */
  writeText(path: string, text: string, version: string, { asUtf8 = false } = {}): Promise<FileEntry> {
    const body = { text, version, ...(asUtf8 ? { encoding: "UTF-8" } : {}) };
    return this.#api.request("PUT", `${this.#base}/text?${queryOf({ path })}`, body);
  }

  /** Write a file. Another version than the expected one is an `ApiError` with the code `file_conflict`. */
  write(path: string, content: Blob | string, expected: Expected, options: WriteOptions = {}): Promise<FileEntry> {
    const condition: Record<string, string> = expected ? { "if-match": `"${expected}"` } : { "if-none-match": "*" };
    const headers = { "content-type": "application/octet-stream", ...(expected === null ? {} : condition) };
    const body = typeof content === "string" ? new Blob([content]) : content;
    return this.#api.transfer("PUT", `${this.#base}/content?${queryOf({ path })}`, body, { headers, ...options });
  }

  /** Unpack an archive into a directory. Returns how many files it changed. */
  async unpack(file: File, directory: string): Promise<number> {
    const address = `${this.#base}/archive?${queryOf({ path: directory })}`;
    const answer = await this.#api.transfer<Schemas["FileChangesOut"]>("POST", address, formOf(file));
    return answer.changes.filter((change) => change.entry_kind === "file").length;
  }

  /** Bytes of a file from an offset, so many at most; `isEnd`: there are no more. */
  async read(path: string, start: number, most: number, signal?: AbortSignal) {
    const headers = { range: `bytes=${start}-${start + most - 1}` };
    const response = await this.#api.bytes(this.contentAddress(path), { signal, headers });
    const bytes = new Uint8Array(await response.arrayBuffer());
    const total = Number(response.headers.get("content-range")?.split("/")[1] ?? start + bytes.length);
    return { bytes, isEnd: start + bytes.length >= total };
  }

  contentAddress(path: string, { isDownload = false, version = "" } = {}): string {
    const more = { ...(isDownload ? { download: true } : {}), ...(version ? { v: version } : {}) };
    return `${this.#api.base}${this.#base}/content?${queryOf({ path, ...more })}`;
  }

  /** The files in the messages of the conversation. */
  sent = (signal?: AbortSignal): Promise<SentFile[]> =>
    this.#api.request("GET", `${this.#instance}/files`, undefined, { signal });

  /** Copy one of them into the workspace. */
  copySent = (fileId: string): Promise<FileEntry> =>
    this.#api.request("POST", `${this.#base}/attachments`, { file_id: fileId });

  archiveAddress = (path: string): string => `${this.#api.base}${this.#base}/archive?${queryOf({ path })}`;
}
