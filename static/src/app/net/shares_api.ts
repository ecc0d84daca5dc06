// Links for readers, on the server.

import type { Api, Schemas } from "./api.ts";

export type ShareLink = Schemas["ShareOut"];
export type NewShareLink = Schemas["NewShareOut"];
export type Ticks = Pick<ShareLink, "tools" | "files" | "reasoning">;

const seg = encodeURIComponent;

export class SharesApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  /** All of this person's that work. */
  all = (): Promise<ShareLink[]> => this.#api.request("GET", "/shares");

  /** Those of a conversation. */
  of = (instanceId: string): Promise<ShareLink[]> => this.#api.request("GET", `/instances/${seg(instanceId)}/shares`);

  make = (instanceId: string, wanted: Ticks & { days: number; message_id?: string }): Promise<NewShareLink> =>
    this.#api.request("POST", `/instances/${seg(instanceId)}/shares`, wanted);

  revoke = (id: string): Promise<void> => this.#api.request("DELETE", `/shares/${seg(id)}`);

  /** Begin a conversation with what a link shows. */
  continue = (secret: string): Promise<Schemas["ContinuedOut"]> =>
    this.#api.request("POST", "/shares/continue", { secret });
}
