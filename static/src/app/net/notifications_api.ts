// What is pushed to a person, on the server.

import type { Api, Schemas } from "./api.ts";

export type Notifications = Schemas["NotificationsOut"];
export type NoticeChoices = Schemas["NoticeChoicesOut"];
export type PushDevice = Schemas["PushDeviceOut"];

const seg = encodeURIComponent;

export class NotificationsApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  read = (signal?: AbortSignal): Promise<Notifications> =>
    this.#api.request("GET", "/notifications", undefined, { signal });

  change = (change: Schemas["NoticeChoicesPatch"]): Promise<NoticeChoices> =>
    this.#api.request("PATCH", "/notifications", change);

  add = (device: Schemas["PushDeviceIn"]): Promise<PushDevice> =>
    this.#api.request("POST", "/notifications/devices", device);

  remove = (id: string): Promise<null> => this.#api.request("DELETE", `/notifications/devices/${seg(id)}`);

  test = (id: string): Promise<null> => this.#api.request("POST", `/notifications/devices/${seg(id)}/test`);
}
