// Agents that work for one conversation, on the server.

import type { Api } from "./api.ts";

/** A run as the API gives it, as far as the page reads it. `id`: ours, `run_id`: the one of the frames. */
export interface RawRun {
  id: string;
  run_id: string;
  child_id: string | null;
  status: string;
  created_at: string;
  finished_at: string | null;
  question_count: number;
  turn_count: number;
  is_detached: boolean;
}

const seg = encodeURIComponent;
const MOST = 50; // more than are sent again to a client that connects

/** The newest runs of a conversation. Throws an `ApiError`. */
export async function readRuns(api: Api, instanceId: string): Promise<RawRun[]> {
  const page: { items: RawRun[] } = await api.request("GET", `/instances/${seg(instanceId)}/runs?limit=${MOST}`);
  return page.items;
}

/** Stop a run; false when it was over. Throws an `ApiError`. */
export async function stopRun(api: Api, id: string): Promise<boolean> {
  const { stopped }: { stopped: boolean } = await api.request("POST", `/runs/${seg(id)}/stop`);
  return stopped;
}
