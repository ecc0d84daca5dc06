// The frames of the socket that the page reads and sends, and the chunks inside of them: docs/reference/protocol.md.

import type { DataPart, FilePart, Json, SourceDocumentPart, SourceUrlPart, ToolApproval } from "../lib/parts.ts";
import type { Wait } from "./types.ts";
import type { components } from "./openapi.d.ts";

// --- what the server sends --------------------------------------------------------------------------------------------

export type Outcome = "completed" | "error" | "aborted" | "skipped";

/** A message as frames carry it: what pages add, siblings and turns, is missing. */
export interface FrameMessage {
  id: string;
  role: string;
  parts?: unknown[];
  metadata?: unknown;
}

/** A chunk, an error, or the end of a request: `id` is the request's. `body`: JSON of a chunk, or words for people. */
export interface ResponseFrame {
  type: "cf_agent_use_chat_response";
  id: string;
  body?: string;
  done?: boolean;
  error?: boolean;
  /** Offset of the chunk in its stream, from 0. */
  seq?: number;
  replay?: boolean;
  outcome?: Outcome | "recovering";
}

/** The newest messages of the path, and those that wait. `version`: every change of the history up to it is in. */
export interface TranscriptFrame {
  type: "cf_agent_chat_messages";
  messages?: FrameMessage[];
  sessionId?: string | null;
  version?: number;
}

/** How full the history is, and whether older messages are being summarised. */
export interface SessionFrame {
  type: "cf_agent_session";
  phase?: "idle" | "compacting";
  tokenEstimate?: number;
  tokenThreshold?: number;
  compacted?: Json;
}

/** What changed about one of the person's conversations; fields that did not change may be missing. */
export interface ConversationFrame {
  type: "think_conversation";
  id: string;
  title?: string;
  isRunning?: boolean;
  waitingCount?: number;
  hasFailed?: boolean;
  retryAt?: string | null;
  guard?: string;
  plans?: boolean;
  projectId?: string | null;
}

/** Another model or other settings were chosen for a conversation: names and values as in the API. */
export interface ModelChoiceFrame {
  type: "think_model_choice";
  instanceId: string;
  model_choice?: components["schemas"]["ModelChoice"] | null;
  model?: string | null;
  model_notice?: string | null;
}

/** An event of an agent that works for this conversation. `sequence`: 0 for its beginning, then one for each chunk. */
export interface RunFrame {
  type: "agent-tool-event";
  parentToolCallId?: string;
  sequence: number;
  replay?: boolean;
  event: RunEvent;
}

export type RunEvent =
  & { runId: string }
  & (
    | { kind: "started"; agentType: string; order?: number; inputPreview?: unknown; display?: Json }
    | { kind: "chunk"; body: string; unstoredId?: string }
    | { kind: "finished"; summary?: string }
    | { kind: "error"; error?: string }
    | { kind: "aborted"; reason?: string }
    | { kind: "interrupted"; error?: string; reason?: string; childStillRunning?: boolean }
  );

export type ServerFrame =
  | ResponseFrame
  | TranscriptFrame
  | SessionFrame
  | ConversationFrame
  | ModelChoiceFrame
  | RunFrame
  | { type: "cf_agent_stream_resuming"; id?: string; probeId?: string }
  | { type: "cf_agent_stream_pending"; id?: string; probeId?: string }
  | { type: "cf_agent_stream_resume_none"; reason?: string; probeId?: string }
  | { type: "cf_agent_identity" }
  | { type: "cf_agent_message_updated"; message?: FrameMessage }
  | { type: "cf_agent_chat_clear" }
  | { type: "cf_agent_mcp_servers" }
  | { type: "think_people" }
  | { type: "think_projects" }
  | { type: "think_presence"; author: string; typing: boolean }
  | { type: "cf_agent_chat_recovering"; recovering?: boolean; id?: string }
  | { type: "cf_agent_session_error"; error?: string };

/** Read a frame, or null where it is none. Frames of types that the page does not know come through, and are ignored. */
export function readFrame(text: string): ServerFrame | null {
  const frame = readObject(text);
  return frame && typeof frame.type === "string" ? frame as ServerFrame : null;
}

/** Read the chunk in a response's body, or null where the body is a text for people. */
export function readChunk(text: string): Chunk | null {
  const chunk = readObject(text);
  return chunk && typeof chunk.type === "string" ? chunk as Chunk : null;
}

function readObject(text: string): { type?: unknown } | null {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : null;
  } catch {
    return null;
  }
}

// --- what the page sends ----------------------------------------------------------------------------------------------

export type ClientFrame =
  | { type: "cf_agent_stream_resume_request"; probeId: string }
  | { type: "cf_agent_stream_resume_ack"; id: string }
  | { type: "cf_agent_chat_request_cancel"; id: string }
  | { type: "think_ping"; typing?: boolean };

// --- chunks -----------------------------------------------------------------------------------------------------------

type ProviderMetadata = Record<string, unknown>;

interface MetadataChunk {
  type: "start" | "finish" | "message-metadata";
  messageId?: string;
  messageMetadata?: Record<string, unknown>;
}

interface StepChunk {
  type: "start-step" | "step-start" | "reset-step";
}

interface TextChunk {
  type: "text-start" | "text-delta" | "text-end" | "reasoning-start" | "reasoning-delta" | "reasoning-end";
  id?: string;
  delta?: string;
  providerMetadata?: ProviderMetadata;
  citations?: unknown;
}

/** What all chunks about a call may have. */
export interface CallChunk {
  toolCallId: string;
  toolMetadata?: Record<string, unknown>;
  providerMetadata?: ProviderMetadata;
  providerExecuted?: boolean;
}

/** Chunks that make a call known. */
export interface CallInputChunk extends CallChunk {
  type: "tool-input-start" | "tool-input-available" | "tool-input-error";
  toolName: string;
  dynamic?: boolean;
  title?: string;
  inputEncoding?: string;
  input?: unknown;
  errorText?: string;
}

export interface CallDeltaChunk extends CallChunk {
  type: "tool-input-delta";
  inputTextDelta?: string;
  input?: unknown;
}

export interface CallOutputChunk extends CallChunk {
  type: "tool-output-available" | "tool-output-error";
  output?: unknown;
  preliminary?: boolean;
  errorText?: string;
}

export interface CallQuestionChunk extends CallChunk {
  type: "tool-approval-request";
  approvalId: string;
  /** The question in the tool's own words. */
  approvalDescriptor?: ToolApproval["descriptor"];
  inputSchemaInput?: unknown;
  signature?: string;
  reason?: string;
  isAutomatic?: boolean;
}

export interface CallDenialChunk extends CallChunk {
  type: "tool-output-denied";
}

/**
 * How a turn stands, in passing: what it waits for, when its model is asked again, what failed and which model goes on, or
 * what is at work.
 */
export type StatusData =
  | { kind: "waiting"; waits?: Wait[] }
  | { kind: "retry"; code: string; attempt: number; attempts: number; delaySeconds: number; retryAt: string }
  | { kind: "failover"; from: string; to: string; code: string }
  | { kind: "stalled"; name: string; code: string }
  | { kind: "model" | "tool"; name?: string; since?: string; insteadOf?: { model: string; code: string } };

export interface StatusChunk {
  type: "data-think-status";
  data?: StatusData;
  transient?: boolean;
}

export type DataChunk = DataPart & { transient?: boolean };
export type PartChunk = FilePart | SourceUrlPart | SourceDocumentPart;

/** Chunks with a rule of their own in `store/fold.ts`. */
export type RuledChunk =
  | MetadataChunk
  | StepChunk
  | TextChunk
  | CallInputChunk
  | CallDeltaChunk
  | CallOutputChunk
  | CallQuestionChunk
  | CallDenialChunk
  | PartChunk;

/** A chunk of any type: what is unknown changes nothing. */
export type Chunk = RuledChunk | DataChunk | StatusChunk | { type: "finish-step" };

export type { MetadataChunk, TextChunk };
