// Where a conversation forks, from the server.

import type { Api, Schemas } from "./api.ts";

export type Branches = Schemas["BranchesOut"];
export type BranchNode = Schemas["BranchNodeOut"];

export const readBranches = (api: Api, id: string): Promise<Branches> =>
  api.request("GET", `/instances/${encodeURIComponent(id)}/branches`);
