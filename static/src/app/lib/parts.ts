// The parts of a message, as the AI SDK has them: JSON of the wire, and what the page draws.

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
