// What the server embeds in the page: answers of the API's own operations, so that the first view needs no request.

import type { RawInstance } from "../net/types.ts";
import type { RawPage } from "../net/types.ts";
import type { ListedPage } from "./list.ts";
import type { ApprovalsPage } from "./approvals.ts";
import type { Agent } from "./types.ts";

export interface SiteModel {
  name: string;
  kind: string;
  is_small: boolean;
  hint: string;
}

/** What can be attached: bytes of a file, and media types. */
export interface FileLimits {
  max_bytes: number;
  types: readonly string[];
}

export interface Boot {
  product: string;
  user: string;
  /** The name that the person has chosen; may be empty. */
  name: string;
  page: "list" | "new" | "conversation" | "approvals" | "settings" | "work" | "shared";
  urls: {
    home: string;
    api: string;
    agents: string;
    files: string;
    logout: string;
    previews: string;
    worker: string;
    /** The administration and the description of the API, for staff; empty for others. */
    admin: string;
    docs: string;
  };
  agents: Agent[];
  model: SiteModel | null;
  files: FileLimits;
  instances: ListedPage;
  instance: RawInstance | null;
  messages: RawPage | null;
  approvals: ApprovalsPage;
  /** Of the page of a link for readers. */
  shared?: SharedLink;
}

/** A link for readers. `sign_in`: the page where one signs in, empty for those who have. */
export interface SharedLink {
  secret: string;
  expires_at: string;
  tools: boolean;
  files: boolean;
  may_continue: boolean;
  sign_in: string;
}

/** Read what is embedded; null on a page without it. */
export function readBoot(): Boot | null {
  const element = document.getElementById("boot");
  return element ? JSON.parse(element.textContent ?? "null") : null;
}
