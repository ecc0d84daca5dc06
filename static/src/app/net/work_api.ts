// What is at work for a person over all conversations, and what they have used, on the server.

import type { Api, Schemas } from "./api.ts";
import { BackgroundApi } from "./background_api.ts";
import { SchedulesApi } from "./schedules_api.ts";

export type WorkItem = Schemas["WorkItemOut"];
export type WorkPage = Schemas["WorkPageOut"];
export type WorkVerb = WorkItem["verbs"][number];
export type WorkSection = "now" | "schedules" | "ended";

export type UsageReport = Schemas["UsageReportOut"];
export type UsageRow = Schemas["UsageRowOut"];
export type Figures = Schemas["FiguresOut"];
export type BudgetView = Schemas["OwnBudgetOut"];
export type LimitView = Schemas["LimitOut"];

export class WorkApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  page = (section: WorkSection, { cursor = "", limit = 50 } = {}): Promise<WorkPage> => {
    const query = new URLSearchParams({ section, limit: String(limit), ...(cursor ? { cursor } : {}) });
    return this.#api.request("GET", `/work?${query}`);
  };

  /** Each verb is the operation of its kind. */
  act(verb: WorkVerb, { kind, id, instance_id }: WorkItem): Promise<unknown> {
    if (kind === "turn") return this.#api.cancelTurn(id);
    if (kind === "background") {
      const work = new BackgroundApi(this.#api, instance_id);
      return verb === "retry" ? work.restart(id) : work.cancel(id);
    }
    const schedules = new SchedulesApi(this.#api, instance_id);
    return verb === "run" ? schedules.run(id) : schedules.change(id, { paused: verb === "pause" });
  }

  usage = (days: number, signal?: AbortSignal): Promise<UsageReport> =>
    this.#api.request("GET", `/usage?days=${days}`, undefined, { signal });

  budgets = (signal?: AbortSignal): Promise<BudgetView[]> =>
    this.#api.request("GET", "/usage/budgets", undefined, { signal });

  limits = (signal?: AbortSignal): Promise<LimitView[]> =>
    this.#api.request("GET", "/usage/limits", undefined, { signal });
}
