// Folds stream chunks into a message: the browser's counterpart of the server's accumulator, rule by rule
// (docs/design/ui.md). A message that was folded up to some offset on the server can be folded on from there.

/** Apply one chunk to the message in place. Unknown chunks change nothing. Returns whether anything visible changed. */
export function applyChunk(message, chunk) {
  const rule = RULES[chunk.type];
  if (rule) return isAccepted(message, chunk) && rule(message, chunk) !== false;
  if (typeof chunk.type === "string" && chunk.type.startsWith("data-")) return applyData(message, chunk);
  return false;
}

export const isTool = (part) => part.type === "dynamic-tool" || part.type.startsWith("tool-");
export const toolName = (part) => (part.type === "dynamic-tool" ? part.toolName : part.toolName ?? part.type.slice(5));
const hasResult = (state) => ["output-available", "output-error", "output-denied"].includes(state);
/** Whether the call is over: a preliminary result is not the end. */
export const isSettled = (part) => hasResult(part.state) && !part.preliminary;

// States of a known call in which a chunk is dropped: the first write wins.
const BLOCKED = {
  "tool-input-start": () => true,
  "tool-input-delta": (state) => state !== "input-streaming",
  "tool-input-available": (state) => state !== "input-streaming" && state !== "approval-requested",
  "tool-input-error": hasResult,
  "tool-approval-request": (state) => hasResult(state) || state === "approval-responded",
  "tool-output-denied": (state) => hasResult(state) || state === "approval-responded",
};

// Fields of a request for approval, and where the part keeps them.
const REQUEST_FIELDS = [
  ["approvalDescriptor", "descriptor"],
  ["inputSchemaInput", "inputSchemaInput"],
  ["signature", "signature"],
  ["reason", "requestReason"],
  ["isAutomatic", "isAutomatic"],
];

function isAccepted(message, chunk) {
  const part = BLOCKED[chunk.type] && findCall(message, chunk.toolCallId);
  return !part || !BLOCKED[chunk.type](part.state);
}

const lastOf = (message, type) => message.parts.findLast((part) => part.type === type);
const findCall = (message, callId) => message.parts.findLast((part) => isTool(part) && part.toolCallId === callId);

function mergeInto(target, key, added) {
  if (added && typeof added === "object") target[key] = { ...target[key], ...added };
}

function applyData(message, chunk) {
  if (chunk.transient) return false;
  const old = "id" in chunk &&
    message.parts.findLast((part) => part.type === chunk.type && (part.id ?? "") === chunk.id);
  if (old) old.data = chunk.data;
  else {
    const { transient: _, ...part } = chunk;
    message.parts.push(part);
  }
  return true;
}

// --- text and reasoning: a delta goes to the last part of its kind, whatever its id ---------------------------------

function open(message, type, chunk) {
  const part = { type, text: "", state: "streaming", startedAt: Date.now() };
  mergeInto(part, "providerMetadata", chunk.providerMetadata);
  message.parts.push(part);
  return part;
}

function grow(message, type, chunk) {
  const part = lastOf(message, type) ?? open(message, type, {});
  part.text += chunk.delta ?? "";
  mergeInto(part, "providerMetadata", chunk.providerMetadata);
}

function close(message, type, chunk) {
  const part = lastOf(message, type);
  if (!part) return false;
  part.state = "done";
  if (part.startedAt) part.endedAt = Date.now();
  mergeInto(part, "providerMetadata", chunk.providerMetadata);
  if ("citations" in chunk) part.citations = chunk.citations;
}

// --- tool calls -----------------------------------------------------------------------------------------------------

/** What a tool gets: an object, whatever the model wrote. */
function normaliseInput(input) {
  if (typeof input === "string") {
    try {
      input = JSON.parse(input);
    } catch {
      return {};
    }
  }
  return input && typeof input === "object" && !Array.isArray(input) ? input : {};
}

function openCall(message, chunk) {
  let part = findCall(message, chunk.toolCallId);
  if (!part) {
    const type = chunk.dynamic ? "dynamic-tool" : `tool-${chunk.toolName}`;
    part = {
      type,
      toolCallId: chunk.toolCallId,
      toolName: chunk.toolName,
      state: "input-streaming",
      startedAt: Date.now(),
    };
    message.parts.push(part);
  }
  mergeInto(part, "callProviderMetadata", chunk.providerMetadata);
  for (const key of ["title", "toolMetadata", "inputEncoding"]) if (key in chunk) part[key] = chunk[key];
  if (chunk.providerExecuted) part.providerExecuted = true;
  return part;
}

/** The call has its final input; the raw text it was written in is forgotten. */
function settleInput(part) {
  const raw = part.rawInput ?? "";
  delete part.rawInput;
  if (!("input" in part)) part.input = normaliseInput(raw);
}

function takeOutput(message, chunk, change) {
  const part = findCall(message, chunk.toolCallId);
  if (!part) return false;
  settleInput(part);
  for (const key of ["output", "errorText", "preliminary"]) delete part[key];
  Object.assign(part, change);
  mergeInto(part, "resultProviderMetadata", chunk.providerMetadata);
  if ("toolMetadata" in chunk) part.toolMetadata = chunk.toolMetadata;
  if (chunk.providerExecuted) part.providerExecuted = true;
  if (isSettled(part)) part.endedAt = Date.now();
}

const copy = (message, chunk) => void message.parts.push({ ...chunk });
const mergeMetadata = (message, chunk) => mergeInto(message, "metadata", chunk.messageMetadata);
const startStep = (message) => void message.parts.push({ type: "step-start" });

const RULES = {
  start: mergeMetadata,
  finish: mergeMetadata,
  "message-metadata": mergeMetadata,
  "start-step": startStep,
  "step-start": startStep,
  "reset-step": (message) =>
    void message.parts.splice(message.parts.findLastIndex((part) => part.type === "step-start") + 1 || Infinity),
  "text-start": (message, chunk) => void open(message, "text", chunk),
  "text-delta": (message, chunk) => grow(message, "text", chunk),
  "text-end": (message, chunk) => close(message, "text", chunk),
  "reasoning-start": (message, chunk) => void open(message, "reasoning", chunk),
  "reasoning-delta": (message, chunk) => grow(message, "reasoning", chunk),
  "reasoning-end": (message, chunk) => close(message, "reasoning", chunk),
  "tool-input-start": (message, chunk) => void openCall(message, chunk),
  "tool-input-delta": (message, chunk) => {
    const part = findCall(message, chunk.toolCallId);
    if (!part) return false;
    part.rawInput = (part.rawInput ?? "") + (chunk.inputTextDelta ?? "");
    if ("input" in chunk) part.input = chunk.input;
  },
  "tool-input-available": (message, chunk) => {
    const part = openCall(message, chunk);
    part.input = normaliseInput(chunk.input);
    if (part.state === "input-streaming") part.state = "input-available";
    settleInput(part);
  },
  "tool-input-error": (message, chunk) => {
    const part = openCall(message, chunk);
    Object.assign(part, { state: "output-error", errorText: chunk.errorText, endedAt: Date.now() });
    if (chunk.input !== null && chunk.input !== undefined) part.input = chunk.input;
    settleInput(part);
  },
  "tool-output-available": (message, chunk) =>
    takeOutput(message, chunk, {
      state: "output-available",
      output: chunk.output,
      ...(chunk.preliminary ? { preliminary: true } : {}),
    }),
  "tool-output-error": (message, chunk) =>
    takeOutput(message, chunk, { state: "output-error", errorText: chunk.errorText }),
  "tool-output-denied": (message, chunk) => {
    const part = findCall(message, chunk.toolCallId);
    if (!part) return false;
    settleInput(part);
    part.state = "output-denied";
    part.approval = { id: part.toolCallId, ...part.approval, approved: false };
  },
  "tool-approval-request": (message, chunk) => {
    const part = findCall(message, chunk.toolCallId);
    if (!part) return false;
    settleInput(part);
    part.state = "approval-requested";
    part.approval = { id: chunk.approvalId };
    for (const [from, to] of REQUEST_FIELDS) if (from in chunk) part.approval[to] = chunk[from];
  },
  file: copy,
  "source-url": copy,
  "source-document": copy,
};
