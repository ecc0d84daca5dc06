// Many conversations at once, on the server: the outcome of each by its id.

import type { Api, Schemas } from "./api.ts";

type Outcomes = Record<string, Schemas["BulkResultOut"]["outcome"]>;

export class BulkApi {
  readonly #api: Api;

  constructor(api: Api) {
    this.#api = api;
  }

  archive = (ids: readonly string[], archived: boolean): Promise<Outcomes> => this.#send("archive", { ids, archived });
  /** Into a project, or with null into none. */
  move = (ids: readonly string[], projectId: string | null): Promise<Outcomes> =>
    this.#send("move", { ids, project_id: projectId });
  remove = (ids: readonly string[]): Promise<Outcomes> => this.#send("delete", { ids });
  restore = (ids: readonly string[]): Promise<Outcomes> => this.#send("restore", { ids });

  async #send(verb: string, body: Record<string, unknown>): Promise<Outcomes> {
    const results: Schemas["BulkResultOut"][] = await this.#api.request("POST", `/bulk/${verb}`, body);
    return Object.fromEntries(results.map(({ id, outcome }) => [id, outcome]));
  }
}
