// Agents that work for a conversation, as its frames tell of them: what each says is folded as an answer is. The API adds what no
// frame has: when it began, which conversation it is, and whether it asks something. No DOM in here.

import { ANSWER, Due } from "../lib/busy.ts";
import { Store } from "../lib/store.ts";
import type { Api } from "../net/api.ts";
import { type Chunk, readChunk, type RunEvent, type RunFrame } from "../net/frames.ts";
import { type RawRun, readRuns, stopRun } from "../net/runs_api.ts";
import type { Conversation } from "./conversation.ts";
import { applyChunk, isTool } from "./fold.ts";
import { fromItem } from "./path.ts";
import { asksApproval } from "./runs.ts";
import { isRecord, textIn } from "./tool_details.ts";
import type { Message, ToolPart } from "./types.ts";

const CHUNK_PAUSE = 40; // as for answers
const READ_PAUSE = 200; // a run that begins or ends is seldom alone
const PROGRESS = "data-agent-progress";
const MILESTONE = "data-agent-milestone";

export type RunState = "running" | "completed" | "error" | "aborted" | "interrupted";

/** How far a run says it is. `fraction`: 0 to 1, or null where it does not say. */
export interface Progress {
  fraction: number | null;
  message: string;
}

export interface Milestone {
  name: string;
  sequence: number;
}

/** One run. What is given to views is a copy: a view that gets the same object again is not drawn. */
export interface DelegatedRun {
  runId: string;
  callId: string;
  agent: string;
  name: string;
  icon: string;
  order: number;
  input: unknown;
  state: RunState;
  /** What it has said and done. */
  message: Message;
  progress: Progress | null;
  milestones: Milestone[];
  /** In words for people: what came of it, or why it failed. */
  summary: string;
  error: string;
  childStillRunning: boolean;
  /** Milliseconds since the epoch; `endedAt` 0 while it is under way. */
  startedAt: number;
  endedAt: number;
  /** As the API has it; null until it was read. */
  raw: RawRun | null;
}

const STATES = { finished: "completed", error: "error", aborted: "aborted", interrupted: "interrupted" } as const;

export class Delegated extends Store {
  /** Why the last reading failed. */
  error = "";
  readonly #runs = new Map<string, DelegatedRun>();
  readonly #seen = new Map<string, number>(); // the last sequence that was taken, by run
  readonly #unstored = new Set<string>();
  readonly #api: Api;
  readonly #conversation: Conversation;
  readonly #pause = new Due(ANSWER);
  readonly #readDue = new Due();

  constructor(api: Api, conversation: Conversation) {
    super();
    this.#api = api;
    this.#conversation = conversation;
  }

  /** Runs that these calls started, in their order. */
  of(callIds: ReadonlySet<string>): DelegatedRun[] {
    return this.#sorted((run) => callIds.has(run.callId));
  }

  /** Runs that no call in sight stands for: those that code started, and of calls those that still work. */
  loose(): DelegatedRun[] {
    const calls = new Set<string>();
    for (const message of this.#conversation.messages) {
      for (const part of message.parts) if (isTool(part)) calls.add(part.toolCallId);
    }
    return this.#sorted((run) => !run.callId || (run.state === "running" && !calls.has(run.callId)));
  }

  #sorted(isWanted: (run: DelegatedRun) => boolean): DelegatedRun[] {
    const runs = [...this.#runs.values()].filter(isWanted).sort((one, other) => one.order - other.order);
    return runs.map((run) => ({ ...run }));
  }

  /** The conversation was cleared. */
  clear(): void {
    this.#runs.clear();
    this.changed();
  }

  /** Stop a run. Throws an `ApiError`. */
  async stop(run: DelegatedRun): Promise<void> {
    if (run.raw) await stopRun(this.#api, run.raw.id);
    this.readSoon();
  }

  /** Take an event. What came before is left out: after a cut line everything comes again. */
  take({ event, sequence, parentToolCallId = "", replay = false }: RunFrame): void {
    if (event.kind === "started") return this.#start(event, parentToolCallId, replay);
    const run = this.#runs.get(event.runId);
    if (!run) return;
    if (event.kind === "chunk") return this.#chunk(run, event, sequence);
    if (run.state !== "running") return;
    run.state = STATES[event.kind];
    run.message.isLive = false;
    run.endedAt = Date.now();
    if (event.kind === "finished") run.summary = event.summary ?? "";
    else if (event.kind === "aborted") run.error = event.reason ?? "";
    else run.error = event.error ?? "";
    if (event.kind === "interrupted") run.childStillRunning = event.childStillRunning === true;
    this.#changedNow();
    this.readSoon();
  }

  #start(event: Extract<RunEvent, { kind: "started" }>, callId: string, isReplay: boolean): void {
    if (this.#runs.has(event.runId)) return this.readSoon(); // it came again: whether it asks something may have changed
    const display = isRecord(event.display) ? event.display : {};
    const message = fromItem({ id: `run ${event.runId}`, role: "assistant" });
    message.isLive = true;
    this.#seen.delete(event.runId);
    this.#runs.set(event.runId, {
      runId: event.runId,
      callId,
      agent: event.agentType,
      name: textIn(display, "name"),
      icon: textIn(display, "icon"),
      order: event.order ?? 0,
      input: event.inputPreview,
      state: "running",
      message,
      progress: null,
      milestones: [],
      summary: "",
      error: "",
      childStillRunning: false,
      startedAt: isReplay ? 0 : Date.now(),
      endedAt: 0,
      raw: null,
    });
    this.#changedNow();
    this.readSoon();
  }

  #chunk(run: DelegatedRun, { body, unstoredId }: { body: string; unstoredId?: string }, sequence: number): void {
    if (unstoredId ? this.#unstored.has(unstoredId) : sequence <= (this.#seen.get(run.runId) ?? 0)) return;
    if (unstoredId) this.#unstored.add(unstoredId);
    else this.#seen.set(run.runId, sequence);
    const chunk = readChunk(body);
    if (chunk && (noteProgress(run, chunk) || applyChunk(run.message, chunk))) this.#changedSoon();
    if (chunk?.type === "tool-approval-request") this.readSoon();
  }

  #changedSoon(): void {
    if (!this.#pause.isSet) this.#pause.set(() => this.#changedNow(), CHUNK_PAUSE);
  }

  #changedNow(): void {
    this.#pause.clear();
    this.changed();
  }

  /** Read what no frame has. */
  readSoon(): void {
    if (!this.#readDue.isSet) this.#readDue.set(() => this.#read(), READ_PAUSE);
  }

  async #read(): Promise<void> {
    const { instance } = this.#conversation;
    if (!instance.id || this.#conversation.isClosed) return;
    try {
      for (const raw of await readRuns(this.#api, instance.id)) {
        const run = this.#runs.get(raw.run_id);
        if (run) settle(run, raw);
      }
      this.error = "";
    } catch (error) {
      this.error = (error as Error).message; // runs are shown without it
    }
    this.#changedNow();
  }
}

/** Follow the runs of a conversation from now on. The views of its calls are drawn again. */
export function openDelegated(api: Api, conversation: Conversation): Delegated {
  const delegated = new Delegated(api, conversation);
  conversation.delegated = delegated;
  conversation.changed();
  for (const { id } of conversation.messages) conversation.touch(id);
  return delegated;
}

/** Calls of a run that wait for this person's decision. */
export const questionsOf = (run: DelegatedRun): ToolPart[] =>
  run.state === "running" ? run.message.parts.filter(asksApproval) : [];

function settle(run: DelegatedRun, raw: RawRun): void {
  run.raw = raw;
  run.startedAt = Math.min(Date.parse(raw.created_at), Date.now());
  if (raw.finished_at) run.endedAt = Date.parse(raw.finished_at);
}

function noteProgress(run: DelegatedRun, chunk: Chunk): boolean {
  const { type, data } = chunk as { type: string; data?: unknown };
  if ((type !== PROGRESS && type !== MILESTONE) || !isRecord(data)) return false;
  const { fraction, sequence } = data;
  if (type === MILESTONE) {
    const number = typeof sequence === "number" ? sequence : run.milestones.length;
    if (!run.milestones.some((each) => each.sequence === number)) {
      run.milestones.push({ name: textIn(data, "name"), sequence: number });
    }
  }
  const isSaid = typeof fraction === "number";
  if (type === PROGRESS || isSaid) {
    run.progress = {
      fraction: isSaid ? Math.max(0, Math.min(1, fraction)) : run.progress?.fraction ?? null,
      message: textIn(data, "message"),
    };
  }
  return true;
}
