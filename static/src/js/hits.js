// What a search found, in this code's words. Pure.

/** A page of the API's search. */
export function fromSearch(raw) {
  return {
    hits: (raw.items ?? []).map(fromHit),
    cursor: raw.next_cursor ?? "",
    isPartial: raw.is_partial === true,
    problem: raw.problem ?? "",
  };
}

function fromHit(raw) {
  return {
    instanceId: raw.instance_id,
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

/** The snippet cut at its highlights: [{text, isHit}]. Ranges that make no sense are left out; the text never is. */
export function segmentsOf(text, ranges) {
  const segments = [];
  let at = 0;
  const put = (end, isHit) => {
    if (end > at) segments.push({ text: text.slice(at, end), isHit });
    at = Math.max(at, end);
  };
  for (const [low, high] of [...ranges].sort((a, b) => a[0] - b[0])) {
    if (!(low < high) || low < at || high > text.length) continue;
    put(low, false);
    put(high, true);
  }
  put(text.length, false);
  return segments;
}

/** Where a hit is opened. */
export function hitAddress(base, hit) {
  const history = hit.isElsewhere ? `&in=${encodeURIComponent(hit.sessionId)}` : "";
  return `${base}c/${encodeURIComponent(hit.instanceId)}?at=${encodeURIComponent(hit.messageId)}${history}`;
}
