// What the server embeds in the page: answers of the API's own operations, so that the first view needs no request.

import type { ApprovalsPage } from "./approvals.ts";
import type { Agent } from "./types.ts";

/** A conversation of the API, as it came; `instances.ts` reads it. */
export type RawInstance = Record<string, unknown> & { id: string };

export interface RawPage {
  items: RawInstance[];
  next_cursor: string | null;
}

export interface SiteModel {
  name: string;
  kind: string;
  is_small: boolean;
  hint: string;
}

export interface Boot {
  product: string;
  user: string;
  page: "list" | "new" | "conversation" | "approvals";
  urls: { home: string; api: string; agents: string; files: string; logout: string };
  agents: Agent[];
  model: SiteModel | null;
  instances: RawPage & { pinned: RawInstance[] };
  instance: RawInstance | null;
  messages: Record<string, unknown> | null;
  approvals: ApprovalsPage;
}

/** Read what is embedded; null on a page without it. */
export function readBoot(): Boot | null {
  const element = document.getElementById("boot");
  return element ? JSON.parse(element.textContent ?? "null") : null;
}
