// The schedules of one conversation, on the server.

import type { Api, Schemas } from "./api.ts";

export type Schedule = Schemas["ScheduleOut"];
export type ScheduleRun = Schemas["ScheduleRunOut"];
export type Times = Schemas["TimesIn"];

const seg = encodeURIComponent;

export class SchedulesApi {
  readonly #api: Api;
  readonly #base: string;

  constructor(api: Api, instanceId: string) {
    this.#api = api;
    this.#base = `/instances/${seg(instanceId)}/schedules`;
  }

  list = (signal?: AbortSignal): Promise<Schedule[]> => this.#api.request("GET", this.#base, undefined, { signal });

  create = (made: Schemas["ScheduleIn"]): Promise<Schedule> => this.#api.request("POST", this.#base, made);

  change = (id: string, change: Partial<Schemas["SchedulePatch"]>): Promise<Schedule> =>
    this.#api.request("PATCH", this.#of(id), change);

  remove = (id: string): Promise<null> => this.#api.request("DELETE", this.#of(id));

  run = (id: string): Promise<ScheduleRun> => this.#api.request("POST", `${this.#of(id)}/run`);

  runs = (id: string, signal?: AbortSignal): Promise<ScheduleRun[]> =>
    this.#api.request("GET", `${this.#of(id)}/runs`, undefined, { signal });

  /** The next times, without storing anything. */
  preview = async (times: Times, signal?: AbortSignal): Promise<string[]> =>
    (await this.#api.request<Schemas["ScheduleTimesOut"]>("POST", "/schedules/preview", times, { signal })).next;

  #of = (id: string): string => `${this.#base}/${seg(id)}`;
}
