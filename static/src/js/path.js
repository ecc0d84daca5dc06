// The path of messages as a list: reading the API's page, and laying a newer page or transcript over what is shown.

/** The API's page in this code's words. Every name of the wire that the page uses stands here and nowhere else. */
export function fromPage(raw) {
  return {
    messages: (raw.items ?? []).map(fromItem),
    queued: (raw.queued ?? []).map(fromItem),
    hasMore: raw.has_more === true,
    hasNewer: raw.has_newer === true,
    leafId: raw.leaf_id ?? null,
    shownLeafId: raw.shown_leaf_id ?? raw.leaf_id ?? null,
    sessionId: raw.session_id ?? null,
    version: raw.version ?? 0,
    failed: raw.failed ? fromFailure(raw.failed) : null,
    compacting: raw.compacting ?? "",
    running: raw.running
      ? {
        requestId: raw.running.request_id,
        turnId: raw.running.turn_id,
        waits: raw.running.waits ?? [],
        retry: fromRetry(raw.running.retry),
      }
      : null,
  };
}

const fromFailure = (turn) => ({ turnId: turn.id, error: turn.error?.message ?? "", code: turn.error?.code ?? "" });

export function fromItem(item) {
  return {
    id: item.id,
    role: item.role,
    // Its turn was stopped before it began: it waits for nothing, and gets its place with the next turn.
    isStopped: item.metadata?.stopped === true || (item.queued === true && item.turn?.finished_at != null),
    parts: item.parts ?? [],
    metadata: item.metadata ?? {},
    siblings: item.sibling_ids?.length ? item.sibling_ids : [item.id],
    createdAt: item.created_at ?? null,
    turn: item.turn ?? null,
    toolMs: item.tool_ms ?? {},
    isLive: false,
  };
}

/** Lay the newest page over the list: older pages that still lead to it stay, the message being streamed stays ahead. */
export function mergeNewest(conversation, page, live) {
  const known = new Map(conversation.messages.map((item) => [item.id, item]));
  const fresh = page.messages.map((item) => refreshed(known.get(item.id), item, live));
  const first = fresh[0];
  const at = first ? conversation.messages.findIndex((item) => item.id === first.id) : -1;
  const older = at > 0 ? conversation.messages.slice(0, at) : [];
  conversation.messages = [...older, ...fresh];
  if (live && !conversation.messages.some((item) => item.id === live.id)) conversation.messages.push(live);
  conversation.hasMore = older.length ? conversation.hasMore : page.hasMore;
}

/** Take over what a page says of messages that are shown; none comes and none goes. */
export function refreshKnown(conversation, page) {
  const fresh = new Map(page.messages.map((item) => [item.id, item]));
  for (const message of conversation.messages) {
    const item = fresh.get(message.id);
    if (item && !message.isLive) refreshed(message, item, null);
  }
}

/** The same object lives on, so that its view does; a message being streamed keeps its own, newer parts. */
function refreshed(old, item, live) {
  if (!old || old === item) return item;
  const { parts, isLive: _, ...rest } = item;
  Object.assign(old, rest);
  if (live?.id === item.id) return old;
  if (!samePartsText(old.parts, parts)) old.parts = parts;
  old.isLive = false;
  return old;
}

const strip = (key, value) => (["startedAt", "endedAt", "toolName"].includes(key) ? undefined : value);
const samePartsText = (a, b) => a === b || JSON.stringify(a, strip) === JSON.stringify(b, strip);

const PAGE = 50;

/** Lay a transcript frame over the list. It is a window of the newest messages, longer than what is loaded; queued last. */
export function mergeTranscript(conversation, window) {
  const known = new Map(conversation.messages.map((item) => [item.id, item]));
  const liveId = conversation.running?.message?.id;
  // The streaming answer does not show where the list begins: its question may have been waiting until now.
  const met = window.findIndex((item) => known.has(item.id) && item.id !== liveId);
  const start = met < 0 ? Math.max(0, window.length - PAGE) : conversation.hasMore ? met : 0;
  const transcript = window.slice(start);
  const fresh = [];
  const queued = [];
  for (const item of transcript) {
    const old = known.get(item.id);
    if (item.metadata?.queued) queued.push({ ...fromItem(item) });
    else if (!old) fresh.push(fromItem(item));
    else {
      if (item.id !== liveId && !samePartsText(old.parts, item.parts)) old.parts = item.parts;
      fresh.push(old);
    }
  }
  const at = fresh[0] ? conversation.messages.findIndex((item) => item.id === fresh[0].id) : -1;
  const older = at > 0 ? conversation.messages.slice(0, at) : [];
  conversation.messages = [...older, ...fresh];
  const live = conversation.running?.message;
  if (live && !conversation.messages.includes(live)) conversation.messages.push(live);
  if (met < 0) conversation.hasMore = start > 0;
  conversation.queued = queued;
  conversation.leafId = fresh.at(-1)?.id ?? conversation.leafId;
}

function fromRetry(raw) {
  return raw
    ? { code: raw.code, attempt: raw.attempt, attempts: raw.attempts, retryAt: Date.parse(raw.retry_at) }
    : null;
}
