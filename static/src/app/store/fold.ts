// Folds stream chunks into a message: the browser's counterpart of the server's accumulator, rule by rule
// (docs/design/ui.md). A message that was folded up to some offset on the server can be folded on from there.

import type {
  CallChunk,
  CallDeltaChunk,
  CallInputChunk,
  CallOutputChunk,
  Chunk,
  DataChunk,
  MetadataChunk,
  PartChunk,
  RuledChunk,
  TextChunk,
} from "../net/frames.ts";
import type { DataPart, Part, ReasoningPart, TextPart, ToolPart, ToolState } from "./types.ts";

/** What chunks fold into: a message, or as much of one. */
export interface Foldable {
  parts: Part[];
  metadata?: Record<string, unknown>;
}

/** Apply one chunk to the message in place. Unknown chunks change nothing. Returns whether anything visible changed. */
export function applyChunk(message: Foldable, chunk: Chunk): boolean {
  if (isRuled(chunk)) {
    const rule = RULES[chunk.type] as Rule<RuledChunk>; // of exactly this type
    return isAccepted(message, chunk) && rule(message, chunk) !== false;
  }
  return isData(chunk) && applyData(message, chunk);
}

const isRuled = (chunk: Chunk): chunk is RuledChunk => Object.hasOwn(RULES, chunk.type);
const isData = (chunk: Chunk): chunk is DataChunk => chunk.type.startsWith("data-");

export const isTool = (part: Part): part is ToolPart => part.type === "dynamic-tool" || part.type.startsWith("tool-");

/** The name of the tool that a call is of. */
export function toolName(part: ToolPart): string {
  return part.toolName ?? (part.type === "dynamic-tool" ? "" : part.type.slice("tool-".length));
}

const hasResult = (state: ToolState) => ["output-available", "output-error", "output-denied"].includes(state);

/** Whether the call is over: a preliminary result is not the end. */
export const isSettled = (part: ToolPart): boolean => hasResult(part.state) && !part.preliminary;

// States of a known call in which a chunk is dropped: the first write wins.
const BLOCKED: { readonly [type: string]: (state: ToolState) => boolean } = {
  "tool-input-start": () => true,
  "tool-input-delta": (state) => state !== "input-streaming",
  "tool-input-available": (state) => state !== "input-streaming" && state !== "approval-requested",
  "tool-input-error": hasResult,
  "tool-approval-request": (state) => hasResult(state) || state === "approval-responded",
  "tool-output-denied": (state) => hasResult(state) || state === "approval-responded",
};

function isAccepted(message: Foldable, chunk: RuledChunk): boolean {
  const isBlocked = Object.hasOwn(BLOCKED, chunk.type) ? BLOCKED[chunk.type] : undefined;
  const part = isBlocked && "toolCallId" in chunk ? findCall(message, chunk.toolCallId) : undefined;
  return !isBlocked || !part || !isBlocked(part.state);
}

// Fields of a request for approval, and where the part keeps them.
const REQUEST_FIELDS = [
  ["approvalDescriptor", "descriptor"],
  ["inputSchemaInput", "inputSchemaInput"],
  ["signature", "signature"],
  ["reason", "requestReason"],
  ["isAutomatic", "isAutomatic"],
] as const;

const findCall = (message: Foldable, callId: string): ToolPart | undefined =>
  message.parts.filter(isTool).findLast((part) => part.toolCallId === callId);

function merged(
  old: Record<string, unknown> | undefined,
  added: Record<string, unknown>,
): Record<string, unknown> {
  return { ...old, ...added };
}

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === "object" && value !== null;

// --- data -----------------------------------------------------------------------------------------------------------

function applyData(message: Foldable, chunk: DataChunk): boolean {
  if (chunk.transient) return false;
  if (chunk.type === RESUMED) takeBack(message, (chunk.data as { replaced?: unknown } | null)?.replaced);
  const isSame = (part: Part): part is DataPart =>
    part.type === chunk.type && "data" in part && (part.id ?? "") === chunk.id;
  const old = "id" in chunk ? message.parts.findLast(isSame) : undefined;
  if (old) old.data = chunk.data;
  else {
    const { transient: _, ...part } = chunk;
    message.parts.push(part);
  }
  return true;
}

/** The mark of a seam: its data may say which end of the last text is written anew. */
export const RESUMED = "data-think-resumed";
/** A message that the answer took in while it was written: `{id, parts}`. */
export const STEER = "data-think-steer";

function takeBack(message: Foldable, replaced: unknown): void {
  const part = lastOf(message, "text");
  if (part && typeof replaced === "string" && part.text.endsWith(replaced)) {
    part.text = part.text.slice(0, part.text.length - replaced.length);
  }
}

// --- text and reasoning: a delta goes to the last part of its kind, whatever its id ---------------------------------

type Prose = TextPart | ReasoningPart;

const kindOf = (chunk: TextChunk): Prose["type"] => chunk.type.startsWith("text-") ? "text" : "reasoning";

function lastOf(message: Foldable, type: Prose["type"]): Prose | undefined {
  return message.parts.findLast((part): part is Prose => part.type === type);
}

function noteProvider(part: Prose, { providerMetadata }: TextChunk): void {
  if (isObject(providerMetadata)) part.providerMetadata = merged(part.providerMetadata, providerMetadata);
}

function open(message: Foldable, type: Prose["type"]): Prose {
  const part: Prose = { type, text: "", state: "streaming", startedAt: Date.now() };
  message.parts.push(part);
  return part;
}

function begin(message: Foldable, chunk: TextChunk): void {
  noteProvider(open(message, kindOf(chunk)), chunk);
}

function grow(message: Foldable, chunk: TextChunk): void {
  const part = lastOf(message, kindOf(chunk)) ?? open(message, kindOf(chunk));
  part.text += chunk.delta ?? "";
  noteProvider(part, chunk);
}

function close(message: Foldable, chunk: TextChunk): boolean {
  const part = lastOf(message, kindOf(chunk));
  if (!part) return false;
  part.state = "done";
  if (part.startedAt) part.endedAt = Date.now();
  noteProvider(part, chunk);
  if (part.type === "text" && "citations" in chunk) part.citations = chunk.citations;
  if (part.type === "text" && wasThought(part)) (part as Prose).type = "reasoning";
  return true;
}

/** Whether the end of a text says that it was reasoning. */
function wasThought({ providerMetadata }: Prose): boolean {
  const ours = providerMetadata?.think;
  return isObject(ours) && ours.wasThought === true;
}

// --- tool calls -----------------------------------------------------------------------------------------------------

/** What a tool gets: an object, whatever the model wrote. */
function normaliseInput(input: unknown): Record<string, unknown> {
  let value = input;
  if (typeof value === "string") {
    try {
      value = JSON.parse(value);
    } catch {
      return {};
    }
  }
  return isObject(value) && !Array.isArray(value) ? value : {};
}

function openCall(message: Foldable, chunk: CallInputChunk): ToolPart {
  let part = findCall(message, chunk.toolCallId);
  if (!part) {
    part = {
      type: chunk.dynamic ? "dynamic-tool" : `tool-${chunk.toolName}`,
      toolCallId: chunk.toolCallId,
      toolName: chunk.toolName,
      state: "input-streaming",
      startedAt: Date.now(),
    };
    message.parts.push(part);
  }
  if (isObject(chunk.providerMetadata)) {
    part.callProviderMetadata = merged(part.callProviderMetadata, chunk.providerMetadata);
  }
  if ("title" in chunk) part.title = chunk.title;
  if ("inputEncoding" in chunk) part.inputEncoding = chunk.inputEncoding;
  noteTool(part, chunk);
  return part;
}

function noteTool(part: ToolPart, chunk: CallChunk): void {
  if ("toolMetadata" in chunk) part.toolMetadata = chunk.toolMetadata;
  if (chunk.providerExecuted) part.providerExecuted = true;
}

/** The call has its final input; the raw text it was written in is forgotten. */
function settleInput(part: ToolPart): void {
  const raw = part.rawInput ?? "";
  delete part.rawInput;
  if (!("input" in part)) part.input = normaliseInput(raw);
}

function takeDelta(part: ToolPart, chunk: CallDeltaChunk): void {
  part.rawInput = (part.rawInput ?? "") + (chunk.inputTextDelta ?? "");
  if ("input" in chunk) part.input = chunk.input;
}

function takeInput(message: Foldable, chunk: CallInputChunk): void {
  const part = openCall(message, chunk);
  part.input = normaliseInput(chunk.input);
  if (part.state === "input-streaming") part.state = "input-available";
  settleInput(part);
}

function takeBadInput(message: Foldable, chunk: CallInputChunk): void {
  const part = openCall(message, chunk);
  part.state = "output-error";
  part.errorText = chunk.errorText;
  part.endedAt = Date.now();
  if (chunk.input !== null && chunk.input !== undefined) part.input = chunk.input;
  settleInput(part);
}

function takeOutput(part: ToolPart, chunk: CallOutputChunk): void {
  settleInput(part);
  delete part.output;
  delete part.errorText;
  delete part.preliminary;
  if (chunk.type === "tool-output-error") {
    part.state = "output-error";
    part.errorText = chunk.errorText;
  } else {
    part.state = "output-available";
    part.output = chunk.output;
    if (chunk.preliminary) part.preliminary = true;
  }
  if (isObject(chunk.providerMetadata)) {
    part.resultProviderMetadata = merged(part.resultProviderMetadata, chunk.providerMetadata);
  }
  noteTool(part, chunk);
  if (isSettled(part)) part.endedAt = Date.now();
}

// --- the rules ------------------------------------------------------------------------------------------------------

type Rule<Kind> = (message: Foldable, chunk: Kind) => boolean | void;
type Rules = { readonly [Type in RuledChunk["type"]]: Rule<Extract<RuledChunk, { type: Type }>> };

/** A rule about a call that the message has; chunks about others change nothing. */
function onCall<Kind extends CallChunk>(rule: (part: ToolPart, chunk: Kind) => void): Rule<Kind> {
  return (message, chunk) => {
    const part = findCall(message, chunk.toolCallId);
    if (!part) return false;
    rule(part, chunk);
  };
}

function mergeMetadata(message: Foldable, chunk: MetadataChunk): void {
  if (isObject(chunk.messageMetadata)) message.metadata = merged(message.metadata, chunk.messageMetadata);
}

const append = (message: Foldable, chunk: PartChunk) => void message.parts.push({ ...chunk });
const startStep = (message: Foldable) => void message.parts.push({ type: "step-start" });

function forgetStep(message: Foldable): void {
  message.parts.splice(message.parts.findLastIndex((part) => part.type === "step-start") + 1 || Infinity);
}

const RULES: Rules = {
  start: mergeMetadata,
  finish: mergeMetadata,
  "message-metadata": mergeMetadata,
  "start-step": startStep,
  "step-start": startStep,
  "reset-step": forgetStep,
  "text-start": begin,
  "text-delta": grow,
  "text-end": close,
  "reasoning-start": begin,
  "reasoning-delta": grow,
  "reasoning-end": close,
  "tool-input-start": (message, chunk) => void openCall(message, chunk),
  "tool-input-delta": onCall(takeDelta),
  "tool-input-available": takeInput,
  "tool-input-error": takeBadInput,
  "tool-output-available": onCall(takeOutput),
  "tool-output-error": onCall(takeOutput),
  "tool-output-denied": onCall((part) => {
    settleInput(part);
    part.state = "output-denied";
    part.approval = { id: part.toolCallId, ...part.approval, approved: false };
  }),
  "tool-approval-request": onCall((part, chunk) => {
    settleInput(part);
    part.state = "approval-requested";
    part.approval = { id: chunk.approvalId };
    for (const [from, to] of REQUEST_FIELDS) if (from in chunk) Object.assign(part.approval, { [to]: chunk[from] });
  }),
  file: append,
  "source-url": append,
  "source-document": append,
};
