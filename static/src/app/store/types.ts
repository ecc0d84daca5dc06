// The values of the page's state, in this code's words. What the wire calls them stands in `path.ts`, `instances.ts` and
// `net/frames.ts` only.

export type {
  ApprovalDescriptor,
  ChoiceQuestion,
  DataPart,
  FilePart,
  Json,
  JsonObject,
  Offer,
  Part,
  ReasoningPart,
  Risk,
  SourceDocumentPart,
  SourceUrlPart,
  StepPart,
  TextPart,
  ToolApproval,
  ToolPart,
  ToolState,
} from "../lib/parts.ts";
export type { Limit, ModelChoice, Role, Wait } from "../net/types.ts";
import type { JsonObject, Part } from "../lib/parts.ts";
import type { Limit, ModelChoice, Role } from "../net/types.ts";

// --- messages, turns ------------------------------------------------------------------------------------------------

/** Figures of a turn as the API gives them (`TurnOut`), with the names of the API. Costs are decimal texts in US dollars. */
export interface TurnFacts {
  id: string;
  status: string;
  /** What began it: "continue" where it took up an answer that had ended with a question. */
  trigger?: string;
  delivery?: Delivery;
  model: string;
  input_tokens: number | null;
  output_tokens: number | null;
  cached_tokens?: number | null;
  reasoning_tokens?: number | null;
  step_count?: number;
  changed_file_count?: number;
  duration_ms?: number;
  cost?: string | null;
  finished_at: string | null;
  error?: { code: string; message: string } | null;
}

export interface Message {
  id: string;
  role: "user" | "assistant" | "system";
  parts: Part[];
  metadata: Record<string, unknown>;
  /** Ids of all versions of this message, its own among them. */
  siblings: string[];
  createdAt: string | null;
  turn: TurnFacts | null;
  /** Milliseconds that tool calls took, by call id, as the server measured them. */
  toolMs: Record<string, number>;
  /** It is being streamed into at this moment. */
  isLive: boolean;
  /** Its turn was stopped before it began. */
  isStopped: boolean;
  /** Of a message that waits and is edited: its turn, and the version that is changed. */
  waiting?: { turnId: string; version: number };
}

/** When the model is asked again. `retryAt`: milliseconds since the epoch. */
export interface Retry {
  code: string;
  attempt: number;
  attempts: number;
  retryAt: number;
}

/** Why a turn failed: `error` in words for people, `code` as in `docs/reference/errors.md`. */
export interface Failure {
  turnId?: string;
  error: string;
  code?: string;
}

/** Where one reads when it is not the newest page of the shown path. */
export interface ReadingPlace {
  sessionId: string | null;
  leafId: string | null;
  /** Another branch or history than the shown one. */
  isOther: boolean;
  /** Another history. */
  isForeign: boolean;
}

// --- conversations --------------------------------------------------------------------------------------------------

/** A conversation in lists and heads. One that is not on the server yet has no id and `isNew`. */
export interface Instance {
  id: string;
  agent: string;
  name: string;
  path?: string;
  /** The conversation that it works for. */
  parentId?: string | null;
  title: string;
  activeAt: string;
  isNew: boolean;
  isRunning: boolean;
  /** When its model is asked again, where it has failed; an instant as the API has it. */
  retryAt: string | null;
  isUnread: boolean;
  /** Nothing can be said in it: its agent is gone, or this person only reads. */
  isReadOnly: boolean;
  /** Its agent is gone. */
  isRetired: boolean;
  /** This person's in it. */
  role: Role;
  /** Others than its owner are members. */
  isShared: boolean;
  isPinned: boolean;
  /** It is in no list and no search, and goes within a day of its last message. */
  isTemporary: boolean;
  isArchived: boolean;
  /** The project that it is in; null for none, and in another person's. */
  projectId: string | null;
  /** Calls that wait for this person's decision. */
  waitingCount: number;
  /** Its last answer failed. */
  hasFailed: boolean;
  /** Differs after each change of its injection guard; empty where nothing was read from elsewhere. */
  guard?: string;
  /** It is in plan mode: calls that change anything are refused. */
  plans?: boolean;
  /** What was taken back and can be brought back; null for nothing. */
  undone?: { id: string; file_count: number; includes_messages: boolean } | null;
  sessionId: string | null;
  keepsSessions: boolean;
  origin: { id: string; messageId: string; title: string } | null;
  modelChoice: ModelChoice | null;
  /** Name of the model that answers next, where it is known. */
  model: string;
  /** What of the choice does not count, and why; empty when all of it does. */
  modelNotice: string;
}

/** What a message does while an answer is written: it waits, the answer takes it in, or the answer is stopped for it. */
export type Delivery = "queue" | "steer" | "interrupt";

/** An agent that conversations can be begun with, as the API gives it. */
export interface Agent {
  name: string;
  title: string;
  description: string;
  /** A symbol of the page's sprite, or "". */
  icon: string;
  /** A picture of the site's own, or "". */
  icon_url: string;
  suggestions: string[];
  /** Whether people are offered it to begin a conversation with. */
  is_listed: boolean;
  /** What a message does while it answers, where the message says nothing else. */
  delivery: Delivery;
  /** Its own slash commands, which are sent like messages. */
  commands: { name: string; description: string; takes_text: boolean }[];
  /** It keeps threads, which this agent answers. */
  thread_agent: string | null;
}

/** A stored file, as the upload answers. */
export interface StoredFile {
  id?: string;
  url: string;
  name: string;
  media_type: string;
  byte_size: number;
  /** What models that take no files of this kind cannot see of it; empty for most. */
  note?: string;
}

/** A message on its way. `shown`: what stands for it in the list; null where it adds no message. */
export interface OutboxEntry {
  requestId: string;
  body: JsonObject;
  shown: Message | null;
  state: "sending" | "waiting" | "refused" | "accepted";
  error: string;
  tries: number;
  /** What keeps it from being sent, if that is a limit. */
  limit: Limit | null;
  acceptedAt?: number;
}

/** A summary that stands for older messages, as the API gives it. */
export interface Compaction {
  id: string;
  first_id: string;
  last_id: string;
  summary: string;
  trigger: string;
  model_name: string;
  message_count: number;
  tokens_before: number;
  tokens_after: number;
  created_at: string;
  edited_at: string | null;
  undone_at: string | null;
}
