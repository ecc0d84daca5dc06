// Values that the API and the frames of the socket carry.

import type { components } from "./openapi.d.ts";

type Schemas = components["schemas"];

/** An instance as the API gives it, in a list or alone; what only the one of the two tells may be missing. */
export type RawInstance = Pick<Schemas["InstanceOut"], "id" | "agent" | "name"> & Partial<Schemas["InstanceDetailOut"]>;

/** The turn that runs, as the API gives it. */
export type RawRunning = Schemas["RunningTurnOut"] & {
  activity?: { kind: "model" | "tool" | "retry" | "waiting"; name?: string; since?: string } | null;
};

/** A page as the API gives it; what a server does not tell yet may be missing. */
export type RawPage = Partial<Omit<Schemas["TranscriptOut"], "running">> & { running?: RawRunning | null };

/** What a person may do in a conversation, least first. */
export type Role = "reader" | "writer" | "approver" | "owner";

/** What people chose for the turns of one conversation; null where the agent's own choice stands. */
export interface ModelChoice {
  model: string | null;
  reasoning_effort: string | null;
  temperature: number | null;
  top_p: number | null;
  max_output_tokens: number | null;
}

/** A turn that waits for something outside: what for, in words for people, within which call, and since when (ISO 8601). */
export interface Wait {
  kind?: string;
  label?: string;
  callId?: string;
  since?: string;
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
