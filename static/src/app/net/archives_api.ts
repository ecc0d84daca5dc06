// Archives of other products on the server: uploaded, looked through, imported.

import { type Api, formOf, type Schemas } from "./api.ts";

export type ArchiveImport = Schemas["ArchiveOut"];

export class ArchivesApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  list = (): Promise<Schemas["ArchivesOut"]> => this.#api.request("GET", "/archives");
  get = (id: string): Promise<ArchiveImport> => this.#api.request("GET", `/archives/${encodeURIComponent(id)}`);
  start = (id: string, agent: string): Promise<ArchiveImport> =>
    this.#api.request("POST", `/archives/${encodeURIComponent(id)}/start`, { agent });
  stop = (id: string): Promise<ArchiveImport> => this.#api.request("POST", `/archives/${encodeURIComponent(id)}/stop`);
  remove = (id: string): Promise<null> => this.#api.request("DELETE", `/archives/${encodeURIComponent(id)}`);

  upload = (file: File, signal: AbortSignal, onProgress: (fraction: number) => void): Promise<ArchiveImport> =>
    this.#api.transfer("POST", "/archives", formOf(file), { signal, onProgress });
}
