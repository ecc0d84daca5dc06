// The path of messages as a list: reading the API's page, and laying a newer page or transcript over what is shown. Pure:
// a message that is shown stays the same object, so its changes are returned and not made.

import type { FrameMessage } from "../net/frames.ts";
import type { components } from "../net/openapi.d.ts";
import type { RawPage, RawRunning } from "../net/types.ts";
import { type Activity, activityOf } from "./stream.ts";
import type { Failure, Message, Part, Retry, TurnFacts, Wait } from "./types.ts";

type Schemas = components["schemas"];

/** How a summary of older messages stands. */
export type Compacting = "" | "waiting" | "running";

export interface RunningTurn {
  requestId: string;
  turnId: string;
  waits: Wait[];
  retry: Retry | null;
  activity: Activity | null;
}

/** A page of the API in this code's words. */
export interface Page {
  messages: Message[];
  queued: Message[];
  hasMore: boolean;
  hasNewer: boolean;
  leafId: string | null;
  /** The end of the path that the conversation shows; another one where the page is of another branch or history. */
  shownLeafId: string | null;
  sessionId: string | null;
  /** Changes of the history that are in the page. */
  version: number;
  failed: Failure | null;
  compacting: Compacting;
  running: RunningTurn | null;
}

/** The list as it is shown. */
export interface Shown {
  messages: readonly Message[];
  queued: readonly Message[];
  hasMore: boolean;
  leafId: string | null;
}

/** What becomes of a message that is shown already. */
export interface Update {
  message: Message;
  change: Partial<Message>;
}

/** The list as it is to be shown. */
export interface Merge extends Shown {
  messages: Message[];
  queued: Message[];
  updates: Update[];
}

// --- reading --------------------------------------------------------------------------------------------------------

/** The API's page in this code's words. Every name of the wire that the page uses stands here and nowhere else. */
export function fromPage(raw: RawPage): Page {
  const leafId = raw.leaf_id ?? null;
  return {
    messages: (raw.items ?? []).map(fromItem),
    queued: (raw.queued ?? []).map(fromItem),
    hasMore: raw.has_more === true,
    hasNewer: raw.has_newer === true,
    leafId,
    shownLeafId: raw.shown_leaf_id ?? leafId,
    sessionId: raw.session_id ?? null,
    version: raw.version ?? 0,
    failed: raw.failed ? fromFailure(raw.failed) : null,
    compacting: (raw.compacting ?? "") as Compacting,
    running: raw.running ? fromRunning(raw.running) : null,
  };
}

function fromFailure(turn: Pick<Schemas["TurnOut"], "id" | "error">): Failure {
  const { error } = turn as TurnFacts;
  return { turnId: turn.id, error: error?.message ?? "", code: error?.code ?? "" };
}

function fromRunning(raw: RawRunning): RunningTurn {
  const { activity, retry } = raw;
  const works = activity?.kind === "model" || activity?.kind === "tool" ? { ...activity, kind: activity.kind } : null;
  return {
    requestId: raw.request_id,
    turnId: raw.turn_id,
    waits: (raw.waits ?? []).map(({ kind, label, call_id: callId, since }) => ({
      kind,
      label,
      callId,
      since: since ?? undefined,
    })),
    retry: retry
      ? { code: retry.code, attempt: retry.attempt, attempts: retry.attempts, retryAt: Date.parse(retry.retry_at) }
      : null,
    activity: works ? activityOf(works) : null,
  };
}

/** A message of a page, or of a frame, which lacks what pages add. */
export type RawMessage = FrameMessage & Partial<Schemas["MessageOut"]>;

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

export function fromItem(item: RawMessage): Message {
  const metadata = isObject(item.metadata) ? item.metadata : {};
  return {
    id: item.id,
    role: item.role as Message["role"],
    // Its turn was stopped before it began: it waits for nothing, and gets its place with the next turn.
    isStopped: metadata.stopped === true || (item.queued === true && item.turn?.finished_at != null),
    parts: (item.parts ?? []) as Part[],
    metadata,
    siblings: item.sibling_ids?.length ? item.sibling_ids : [item.id],
    createdAt: item.created_at ?? null,
    turn: (item.turn ?? null) as TurnFacts | null,
    toolMs: item.tool_ms ?? {},
    isLive: false,
  };
}

// --- merging --------------------------------------------------------------------------------------------------------

/**
 * Lay the newest page over the list: older pages that still lead to it stay, the message being streamed (`live`) stays
 * ahead. A page that was read before its turn existed lacks it.
 */
export function mergeNewest(shown: Shown, page: Page, live: Message | null): Merge {
  const isMissing = live !== null && !page.messages.some((item) => item.id === live.id);
  const items = isMissing ? [...page.messages, live] : page.messages;
  const placed = reconciled(
    withLive(shown.messages, live),
    items,
    (old, item) => updateOf(old, item, old.id === live?.id),
  );
  const queued = reconciled(shown.queued, page.queued, (old, item) => updateOf(old, item, false));
  const older = leadingTo(shown.messages, placed.messages);
  return {
    messages: [...older, ...placed.messages],
    queued: queued.messages,
    hasMore: older.length ? shown.hasMore : page.hasMore,
    leafId: page.leafId,
    updates: [...placed.updates, ...queued.updates],
  };
}

/** What a page says of messages that are shown; none comes and none goes. */
export function refreshKnown(messages: readonly Message[], page: Page): Update[] {
  const fresh = new Map(page.messages.map((item) => [item.id, item]));
  return messages.flatMap((message) => {
    const item = fresh.get(message.id);
    return item && !message.isLive ? changed(message, updateOf(message, item, false)) : [];
  });
}

const PAGE = 50;

/** Lay a transcript frame over the list. It is a window of the newest messages, longer than what is loaded; queued last. */
export function mergeTranscript(shown: Shown, window: readonly FrameMessage[], live: Message | null): Merge {
  const known = new Set(shown.messages.map((item) => item.id));
  // The streaming answer does not show where the list begins: its question may have been waiting until now.
  const met = window.findIndex((item) => known.has(item.id) && item.id !== live?.id);
  const start = met < 0 ? Math.max(0, window.length - PAGE) : shown.hasMore ? met : 0;
  const items = window.slice(start).map(fromItem);
  const isQueued = (item: Message) => Boolean(item.metadata.queued);
  const placed = reconciled(
    withLive(shown.messages, live),
    items.filter((item) => !isQueued(item)),
    (old, item) => old.id === live?.id ? {} : partsOf(old, item),
  );
  const queued = reconciled(shown.queued, items.filter(isQueued), queuedUpdateOf);
  const older = leadingTo(shown.messages, placed.messages);
  const messages = [...older, ...placed.messages];
  if (live && !messages.includes(live)) messages.push(live);
  return {
    messages,
    queued: queued.messages,
    hasMore: met < 0 ? start > 0 : shown.hasMore,
    leafId: placed.messages.at(-1)?.id ?? shown.leafId,
    updates: [...placed.updates, ...queued.updates],
  };
}

/** The messages before the first of `fresh`, where the list holds it: older pages that lead to it. */
function leadingTo(messages: readonly Message[], fresh: readonly Message[]): readonly Message[] {
  const at = fresh[0] ? messages.findIndex((item) => item.id === fresh[0].id) : -1;
  return at > 0 ? messages.slice(0, at) : [];
}

/** Who reads elsewhere has no streaming answer in the list: on return it is the same object all the same. */
const withLive = (messages: readonly Message[], live: Message | null) => (live ? [...messages, live] : messages);

/** The same objects where they are known, so that their views live on, and what becomes of them. */
function reconciled(
  known: readonly Message[],
  items: readonly Message[],
  compare: (old: Message, item: Message) => Partial<Message>,
): { messages: Message[]; updates: Update[] } {
  const byId = new Map(known.map((item) => [item.id, item]));
  const updates: Update[] = [];
  const messages = items.map((item) => {
    const old = byId.get(item.id);
    if (!old || old === item) return item;
    updates.push(...changed(old, compare(old, item)));
    return old;
  });
  return { messages, updates };
}

const changed = (message: Message, change: Partial<Message>): Update[] =>
  Object.keys(change).length ? [{ message, change }] : [];

const PAGE_FIELDS = ["role", "isStopped", "metadata", "siblings", "createdAt", "turn", "toolMs"] as const;

/** What a page says anew; a message being streamed keeps its own, newer parts. */
function updateOf(old: Message, item: Message, isStreaming: boolean): Partial<Message> {
  const differing = PAGE_FIELDS.filter((field) => !isSame(old[field], item[field]));
  const changed: Partial<Message> = Object.fromEntries(differing.map((field) => [field, item[field]]));
  if (isStreaming) return changed;
  return { ...changed, ...partsOf(old, item), ...(old.isLive ? { isLive: false } : {}) };
}

function partsOf(old: Message, item: Message): Partial<Message> {
  return isSame(old.parts, item.parts, withoutOurs) ? {} : { parts: item.parts };
}

/** A frame tells of a waiting message without its turn: what is known of that stays. */
function queuedUpdateOf(old: Message, item: Message): Partial<Message> {
  return {
    ...partsOf(old, item),
    ...(isSame(old.metadata, item.metadata) ? {} : { metadata: item.metadata }),
    ...(item.isStopped && !old.isStopped ? { isStopped: true } : {}),
  };
}

const OURS = new Set(["startedAt", "endedAt", "toolName"]); // what only this browser notes
const withoutOurs = (key: string, value: unknown) => (OURS.has(key) ? undefined : value);

type Replacer = (key: string, value: unknown) => unknown;
const isSame = (a: unknown, b: unknown, replacer?: Replacer) =>
  a === b || JSON.stringify(a, replacer) === JSON.stringify(b, replacer);
