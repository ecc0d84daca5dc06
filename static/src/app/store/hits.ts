// What a search found, in this code's words. Pure.

import type { Schemas } from "../net/api.ts";

/** A piece of a snippet. `isHit`: the words that were searched for. */
export interface Segment {
  text: string;
  isHit: boolean;
}

/** A message that matches. */
export interface Hit {
  instanceId: string;
  sessionId: string;
  messageId: string;
  title: string;
  role: string;
  /** When it was written, ISO 8601. */
  at: string;
  segments: Segment[];
  /** In another history of its conversation than the current one. */
  isElsewhere: boolean;
  /** In another version of the conversation than the shown one. */
  isOtherVersion: boolean;
}

export interface HitPage {
  hits: Hit[];
  /** Where to read on; "" at the end. */
  cursor: string;
  /** So many messages match that only the newest ones were looked at. */
  isPartial: boolean;
  /** Why the query could not be understood, in words; "" where it was. */
  problem: string;
}

/** A page of the API's search. */
export function fromSearch(raw: Partial<Schemas["SearchPageOut"]>): HitPage {
  return {
    hits: (raw.items ?? []).map(fromHit),
    cursor: raw.next_cursor ?? "",
    isPartial: raw.is_partial === true,
    problem: raw.problem ?? "",
  };
}

function fromHit(raw: Schemas["SearchHitOut"]): Hit {
  return {
    instanceId: raw.instance_id ?? "",
    sessionId: raw.session_id,
    messageId: raw.message_id,
    title: raw.title ?? "",
    role: raw.role,
    at: raw.created_at,
    segments: segmentsOf(raw.snippet ?? "", raw.highlights ?? []),
    isElsewhere: raw.is_current_session === false,
    isOtherVersion: raw.is_on_path === false,
  };
}

/** The snippet cut at its highlights. Ranges that make no sense are left out; the text never is. */
export function segmentsOf(text: string, ranges: readonly (readonly number[])[]): Segment[] {
  const segments: Segment[] = [];
  let at = 0;
  const put = (end: number, isHit: boolean) => {
    if (end > at) segments.push({ text: text.slice(at, end), isHit });
    at = Math.max(at, end);
  };
  for (const [low, high] of [...ranges].sort((one, other) => one[0] - other[0])) {
    if (!(low < high) || low < at || high > text.length) continue;
    put(low, false);
    put(high, true);
  }
  put(text.length, false);
  return segments;
}

/** Where a hit is opened. `base`: the address of the page's home. */
export function hitAddress(
  base: string,
  hit: Pick<Hit, "instanceId" | "messageId" | "sessionId" | "isElsewhere">,
): string {
  const history = hit.isElsewhere ? `&in=${encodeURIComponent(hit.sessionId)}` : "";
  return `${base}c/${encodeURIComponent(hit.instanceId)}?at=${encodeURIComponent(hit.messageId)}${history}`;
}
