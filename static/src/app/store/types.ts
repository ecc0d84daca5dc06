// The values of the page's state, in this code's words. What the wire calls them stands in `path.ts`, `instances.ts` and
// `net/frames.ts` only.

export type Json = string | number | boolean | null | Json[] | { [key: string]: Json };
export type JsonObject = { [key: string]: Json };

// --- parts of a message ---------------------------------------------------------------------------------------------

export type ToolState =
  | "input-streaming"
  | "input-available"
  | "approval-requested"
  | "approval-responded"
  | "output-available"
  | "output-error"
  | "output-denied";

/** Fields that this tab adds to parts that it saw being made: instants in milliseconds. */
interface Watched {
  startedAt?: number;
  endedAt?: number;
}

export interface TextPart extends Watched {
  type: "text";
  text: string;
  state?: "streaming" | "done";
  citations?: unknown;
  providerMetadata?: Record<string, unknown>;
}

export interface ReasoningPart extends Watched {
  type: "reasoning";
  text: string;
  state?: "streaming" | "done";
  providerMetadata?: Record<string, unknown>;
}

/** How much is at stake when a call is allowed; empty where its tool does not say. */
export type Risk = "" | "low" | "medium" | "high";

/** A rule that an approval for always adds. */
export interface Offer {
  key: string;
  pattern: string;
  /** For this conversation alone: it works for another one. */
  here_only?: boolean;
}

/** A question with choices. `custom`: own words will do, too. */
export interface ChoiceQuestion {
  question: string;
  header?: string;
  options?: { label: string; description?: string }[];
  multiple?: boolean;
  custom?: boolean;
}

/** A question in the tool's own words. `key`: why it is asked where no rule of the tool asks. */
export interface ApprovalDescriptor {
  title?: string;
  sentence?: string;
  mayEdit?: boolean | string[];
  risk?: Risk;
  because?: unknown;
  rule?: string;
  choices?: ChoiceQuestion[];
  key?: string;
}

/** A question to the person about a call, and its answer. */
export interface ToolApproval {
  id: string;
  approved?: boolean;
  descriptor?: ApprovalDescriptor;
  /** The person changed the arguments: the part has the changed ones, `originalInput` those of the model. */
  edited?: boolean;
  originalInput?: unknown;
}

export interface ToolPart extends Watched {
  type: `tool-${string}` | "dynamic-tool";
  toolCallId: string;
  toolName?: string;
  state: ToolState;
  title?: string;
  input?: unknown;
  rawInput?: string;
  output?: unknown;
  errorText?: string;
  preliminary?: boolean;
  providerExecuted?: boolean;
  approval?: ToolApproval;
  toolMetadata?: Record<string, unknown>;
  callProviderMetadata?: Record<string, unknown>;
  resultProviderMetadata?: Record<string, unknown>;
  inputEncoding?: string;
  /** Its reports while it runs, as `toolMetadata.think`; this tab has received it. */
  reported?: Record<string, unknown>;
}

export interface FilePart {
  type: "file";
  url: string;
  mediaType?: string;
  filename?: string;
  byteSize?: number;
}

export interface SourceUrlPart {
  type: "source-url";
  sourceId?: string;
  url: string;
  title?: string;
}

export interface SourceDocumentPart {
  type: "source-document";
  sourceId?: string;
  title?: string;
  filename?: string;
  url?: string;
}

export interface StepPart {
  type: "step-start";
}

export interface DataPart {
  type: `data-${string}`;
  id?: string;
  data: unknown;
}

export type Part =
  | TextPart
  | ReasoningPart
  | ToolPart
  | FilePart
  | SourceUrlPart
  | SourceDocumentPart
  | StepPart
  | DataPart;

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

/** A turn that waits for something outside: what for, in words for people, within which call, and since when (ISO 8601). */
export interface Wait {
  kind?: string;
  label?: string;
  callId?: string;
  since?: string;
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
export interface Place {
  sessionId: string | null;
  leafId: string | null;
  /** Another branch or history than the shown one. */
  isOther: boolean;
  /** Another history. */
  isForeign: boolean;
}

// --- conversations --------------------------------------------------------------------------------------------------

/** What people chose for the turns of one conversation; null where the agent's own choice stands. */
export interface ModelChoice {
  model: string | null;
  reasoning_effort: string | null;
  temperature: number | null;
  top_p: number | null;
  max_output_tokens: number | null;
}

/** A conversation in lists and heads. One that is not on the server yet has no id and `isNew`. */
/** What a person may do in a conversation, least first. */
export type Role = "reader" | "writer" | "approver" | "owner";

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
  isArchived: boolean;
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

/** A limit that was reached. Who shows it where it belongs sets `isShown`; any other is shown at the foot of the page. */
export interface Limit {
  /** What the limit is, in the server's words. */
  text: string;
  /** When the same may be asked again, in milliseconds since the epoch. */
  endsAt: number;
  /** It ends by itself; else one has to make room. */
  passes: boolean;
  isShown: boolean;
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
