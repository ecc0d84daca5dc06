// The background work of one conversation, on the server: its fibers, and agents that work for it.

import type { Api, Schemas } from "./api.ts";

export type Fiber = Schemas["FiberOut"];
export type FiberEntry = Schemas["FiberEntryOut"];
export type FiberEnd = Schemas["FiberResolution"]["status"];
export type TreeRun = Schemas["RunOut"];

export interface Work {
  /** Newest first, `MOST` at most. */
  fibers: Fiber[];
  tree: Schemas["RunTreeOut"];
}

/** How many fibers are read. */
export const MOST = 200;

const seg = encodeURIComponent;

export class BackgroundApi {
  readonly #api: Api;
  readonly #base: string;

  constructor(api: Api, instanceId: string) {
    this.#api = api;
    this.#base = `/instances/${seg(instanceId)}`;
  }

  read = async (signal?: AbortSignal): Promise<Work> => {
    const [fibers, tree] = await Promise.all([
      this.#api.request<Fiber[]>("GET", `${this.#base}/fibers?limit=${MOST}`, undefined, { signal }),
      this.#api.request<Work["tree"]>("GET", `${this.#base}/runs/tree`, undefined, { signal }),
    ]);
    return { fibers, tree };
  };

  /** The call that another process runs: by its job, else by the call. */
  ofCall = async (callId: string, jobId: string, signal?: AbortSignal): Promise<Fiber | null> => {
    const fibers = await this.#api.request<Fiber[]>("GET", `${this.#base}/fibers?limit=${MOST}`, undefined, { signal });
    return fibers.find((fiber) => jobId ? fiber.id === jobId : fiber.call_id === callId) ?? null;
  };

  journal = (id: string, signal?: AbortSignal): Promise<FiberEntry[]> =>
    this.#api.request("GET", `${this.#of(id)}/journal`, undefined, { signal });

  cancel = (id: string): Promise<unknown> => this.#api.request("POST", `${this.#of(id)}/cancel`);

  restart = (id: string): Promise<Fiber> => this.#api.request("POST", `${this.#of(id)}/restart`);

  resolve = (id: string, status: FiberEnd): Promise<Fiber> =>
    this.#api.request("POST", `${this.#of(id)}/resolve`, { status });

  #of = (id: string): string => `${this.#base}/fibers/${seg(id)}`;
}
