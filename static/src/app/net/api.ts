// The JSON API: one place for addresses, the CSRF header and what an error means. Its types are those of its document.

import { pending } from "../lib/busy.ts";
import { t } from "../lib/i18n.ts";
import { ownZone } from "../lib/own_zone.ts";
import type { JsonObject } from "../lib/parts.ts";
import type { components } from "./openapi.d.ts";
import type { Limit, ModelChoice, RawInstance, RawPage } from "./types.ts";

export type Schemas = components["schemas"];

/** "offline": nothing answered; "refused": 4xx; "broken": 5xx. */
export type ErrorKind = "offline" | "refused" | "broken";

/** A request that failed. Its message is for people. */
export class ApiError extends Error {
  readonly kind: ErrorKind;
  readonly status: number;
  /** As in docs/reference/errors.md, or "". */
  readonly code: string;
  /** Of a refusal because of a limit alone. */
  readonly limit: Limit | null;

  constructor(
    kind: ErrorKind,
    message: string,
    { status = 0, code = "", limit = null }: { status?: number; code?: string; limit?: Limit | null } = {},
  ) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.code = code;
    this.limit = limit;
  }

  /** Whether the same request may succeed later without anyone doing anything. */
  get isTemporary(): boolean {
    return this.kind === "offline" || this.kind === "broken" || this.limit?.passes === true;
  }
}

/** The limit that a request met, if that is why it failed. */
export const limitOf = (error: unknown): Limit | null => (error instanceof ApiError ? error.limit : null);

/** Whether what was thrown may pass by itself. */
export const isTemporary = (error: unknown): boolean =>
  error instanceof Error && "isTemporary" in error && error.isTemporary === true;

/** What was thrown, in words for people. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

const csrf = () => document.querySelector('meta[name="csrf-token"]')?.getAttribute("content") ?? "";

/** The body of an error, as far as this page reads it. */
interface Problem {
  detail?: unknown;
  title?: string;
  message?: string;
  code?: string;
  data?: { errors?: { message?: string }[]; retry_after_seconds?: number; passes?: boolean };
}

const UNKNOWN_WAIT = 60; // seconds, for a proxy that limits and does not say until when

/** Tell the page of a limit. What has asked learns of it first, and may show it itself. */
function limitIn(text: string, body: Problem | null, response: Response): Limit {
  const seconds = body?.data?.retry_after_seconds ?? (Number(response.headers.get("retry-after")) || UNKNOWN_WAIT);
  const passes = body?.data?.passes ?? true;
  const limit: Limit = { text, endsAt: Date.now() + seconds * 1_000, passes, isShown: false };
  dispatchEvent(new CustomEvent<Limit>("limit", { detail: limit }));
  return limit;
}

async function problem(response: Response): Promise<ApiError> {
  let body: Problem | null = null;
  try {
    body = await response.json() as Problem | null;
  } catch {
    // Not JSON: a proxy's page. The status says enough.
  }
  const said = typeof body?.detail === "string" ? body.detail : body?.title ?? body?.message;
  const why = body?.data?.errors?.[0]?.message; // of a value that was not as it should be
  const text = said && why ? `${said.replace(/\.$/, "")}: ${why}.` : said;
  const { status } = response;
  if (status === 401) {
    dispatchEvent(new Event("signed-out"));
    return new ApiError("refused", t("common.sign-in-to-continue"), { status });
  }
  const kind = status >= 500 ? "broken" : "refused";
  const fallback = kind === "broken" ? t("common.server-broken") : t("common.server-refused");
  const message = text || fallback;
  const limit = status === 429 ? limitIn(message, body, response) : null;
  return new ApiError(kind, message, { status, code: body?.code ?? "", limit });
}

type Query = Record<string, string | number | boolean | null | undefined>;

function queryOf(values: Query): URLSearchParams {
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) {
    if (value !== "" && value !== undefined && value !== null) query.set(name, String(value));
  }
  return query;
}

const seg = encodeURIComponent;
const LONGEST_WAIT = 30_000; // for a whole answer, files apart; what is asked for again is asked for with the same ids

export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

export interface RequestOptions {
  signal?: AbortSignal;
}

/** Which page of a path: the newest, or `before`, `after` or `around` a message; `sessionId` of another history. */
export interface WantedPage {
  before?: string;
  after?: string;
  around?: string;
  sessionId?: string | null;
  limit?: number;
}

export interface UploadOptions extends RequestOptions {
  /** Receives fractions. */
  onProgress?: (fraction: number) => void;
}

type InstancesQuery = Partial<Schemas["InstancesQuery"]> & { cursor?: string; limit?: number };

/** A page of conversations. */
export interface InstancePage extends Omit<Schemas["InstancePageOut"], "items"> {
  items: RawInstance[];
}

export class Api {
  readonly base: string;

  /** `base`: the address before all paths. */
  constructor(base: string) {
    this.base = base;
  }

  /**
   * Ask for a path below the base. `Answer` is what its document says of the answer; an empty one is null. Throws an
   * `ApiError`, or what a given signal makes of its abort.
   */
  async request<Answer>(
    method: Method,
    path: string,
    body?: unknown,
    { signal }: RequestOptions = {},
  ): Promise<Answer> {
    const isForm = body instanceof FormData;
    const patience = new AbortController();
    const tooLong = isForm ? 0 : setTimeout(() => patience.abort(), LONGEST_WAIT);
    const giveUp = () => patience.abort();
    signal?.addEventListener("abort", giveUp);
    try {
      if (signal?.aborted) giveUp();
      return await pending(this.#ask(method, path, body, patience.signal)) as Answer;
    } catch (error) {
      if (error instanceof ApiError || signal?.aborted) throw error;
      throw new ApiError("offline", patience.signal.aborted ? t("common.server-slow") : t("common.server-unreachable"));
    } finally {
      clearTimeout(tooLong);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  async #ask(method: Method, path: string, body: unknown, signal: AbortSignal): Promise<unknown> {
    const isForm = body instanceof FormData;
    const headers: Record<string, string> = { accept: "application/json", "x-time-zone": ownZone() };
    if (method !== "GET") headers["x-csrftoken"] = csrf();
    if (body !== undefined && !isForm) headers["content-type"] = "application/json";
    const sent = isForm ? body : body === undefined ? undefined : JSON.stringify(body);
    const response = await fetch(this.base + path, { method, headers, signal, credentials: "same-origin", body: sent });
    if (!response.ok) throw await problem(response);
    return response.status === 204 ? null : await response.json();
  }

  // --- conversations ------------------------------------------------------------------------------------------------

  instances = (wanted: InstancesQuery = {}, options?: RequestOptions): Promise<InstancePage> =>
    this.request("GET", `/instances?${queryOf({ limit: 60, ...wanted })}`, undefined, options);
  search = (wanted: Query, options?: RequestOptions): Promise<Schemas["SearchPageOut"]> =>
    this.request("GET", `/search?${queryOf(wanted)}`, undefined, options);
  /** `modelChoice`: null where the agent's own stands. */
  createInstance = (
    agent: string,
    name: string,
    title: string,
    modelChoice: ModelChoice | null = null,
    temporary = false,
    projectId: string | null = null,
  ): Promise<RawInstance> =>
    this.request("POST", "/instances", {
      agent,
      name,
      title,
      title_is_provisional: true,
      ...(modelChoice ? { model_choice: modelChoice } : {}),
      temporary,
      ...(projectId ? { project_id: projectId } : {}),
    });
  projects = (options?: RequestOptions): Promise<Schemas["ProjectOut"][]> =>
    this.request("GET", "/projects", undefined, options);
  instance = (id: string): Promise<RawInstance> => this.request("GET", `/instances/${seg(id)}`);
  /** The conversation of a thread by its short id. */
  thread = (threadId: string): Promise<RawInstance> => this.request("GET", `/threads/${seg(threadId)}`);
  /** Call a method that the agent of a conversation offers. */
  callMethod = <Result>(id: string, method: string, args: readonly string[]): Promise<{ result: Result }> =>
    this.request("POST", `/instances/${seg(id)}/methods/${seg(method)}`, { args });
  changeInstance = (
    id: string,
    change: Schemas["InstancePatch"],
  ): Promise<RawInstance> => this.request("PATCH", `/instances/${seg(id)}`, change);
  /** It can be restored, unless it is deleted for good. */
  deleteInstance = (id: string, { forever = false } = {}): Promise<null> =>
    this.request("DELETE", `/instances/${seg(id)}${forever ? "?forever=true" : ""}`);
  restoreInstance = (id: string): Promise<RawInstance> => this.request("POST", `/instances/${seg(id)}/restore`);
  /** The last deleted first; `before`: deleted earlier than this. */
  deletedInstances = (before = ""): Promise<Schemas["DeletedOut"][]> =>
    this.request("GET", `/deleted?${queryOf({ limit: 100, before })}`);
  fork = (id: string, messageId: string, sessionId: string | null | undefined, title: string): Promise<RawInstance> =>
    this.request("POST", `/instances/${seg(id)}/fork`, { message_id: messageId, session_id: sessionId, title });

  /** Make a conversation of an exported one. */
  importConversation(file: File, agent: string): Promise<Schemas["ImportedOut"]> {
    const form = new FormData();
    form.append("agent", agent);
    form.append("file", file, file.name);
    return this.request("POST", "/imports", form);
  }

  // --- messages and histories ---------------------------------------------------------------------------------------

  /** A page of the shown path, or of another history of the conversation. */
  messages = (id: string, { sessionId, ...wanted }: WantedPage = {}): Promise<RawPage> => {
    const whose = sessionId ? `/sessions/${seg(sessionId)}` : `/instances/${seg(id)}`;
    return this.request("GET", `${whose}/messages?${queryOf({ limit: 50, ...wanted })}`);
  };
  editAnswer = (id: string, messageId: string, text: string, continues: boolean): Promise<Schemas["EditedAnswerOut"]> =>
    this.request("POST", `/instances/${seg(id)}/messages/${seg(messageId)}/edit`, {
      parts: [{ type: "text", text }],
      continue_from_here: continues,
    });
  selectLeaf = (id: string, messageId: string): Promise<Schemas["LeafOut"]> =>
    this.request("PUT", `/instances/${seg(id)}/leaf`, { message_id: messageId });
  sessions = (id: string): Promise<Schemas["SessionOut"][]> => this.request("GET", `/instances/${seg(id)}/sessions`);
  createSession = (id: string, name: string): Promise<Schemas["SessionOut"]> =>
    this.request("POST", `/instances/${seg(id)}/sessions`, { name });
  switchSession = (id: string, sessionId: string): Promise<Schemas["SessionOut"]> =>
    this.request("PUT", `/instances/${seg(id)}/session`, { session_id: sessionId });
  changeSession = (sessionId: string, change: Schemas["SessionPatch"]): Promise<Schemas["SessionOut"]> =>
    this.request("PATCH", `/sessions/${seg(sessionId)}`, change);
  deleteSession = (sessionId: string): Promise<null> => this.request("DELETE", `/sessions/${seg(sessionId)}`);
  exportAddress = (sessionId: string, format: string): string =>
    `${this.base}/sessions/${seg(sessionId)}/export?format=${format}`;
  /** `ids`: of these conversations alone. */
  exportAllAddress = (format: string, ids: readonly string[] = []): string =>
    `${this.base}/exports?${new URLSearchParams([["format", format], ...ids.map((id) => ["id", id])])}`;

  // --- turns and calls ----------------------------------------------------------------------------------------------

  /** `body`: as `TurnIn`; the outbox keeps it as it is sent. */
  submitTurn = (id: string, body: JsonObject, signal?: AbortSignal): Promise<Schemas["AdmittedTurnOut"]> =>
    this.request("POST", `/instances/${seg(id)}/turns`, body, { signal });
  cancelTurn = (turnId: string): Promise<Schemas["CancelOut"]> =>
    this.request("POST", `/turns/${seg(turnId)}/cancel`, {});

  editWaiting = (turnId: string, change: Schemas["WaitingMessageIn"]): Promise<Schemas["WaitingMessageOut"]> =>
    this.request("PATCH", `/turns/${seg(turnId)}/message`, change);

  orderQueue = (instanceId: string, turnIds: string[]): Promise<unknown> =>
    this.request("PUT", `/instances/${seg(instanceId)}/queue`, { turn_ids: turnIds });

  resumeTurn = (turnId: string): Promise<unknown> => this.request("POST", `/turns/${seg(turnId)}/resume`, {});
  /** `edited_input`: the arguments as the person has changed them. */
  decideCall = (
    id: string,
    callId: string,
    decision: Omit<Schemas["ApprovalIn"], "input" | "edited_input"> & { input?: unknown; edited_input?: unknown },
  ): Promise<Schemas["AnsweredOut"]> =>
    this.request("POST", `/instances/${seg(id)}/calls/${seg(callId)}/approval`, decision);
  /** Calls that wait in a conversation, with what may be changed before they are approved. */
  openCalls = (id: string): Promise<Schemas["OpenCallOut"][]> => this.request("GET", `/instances/${seg(id)}/calls`);
  answerCall = (id: string, callId: string, result: Schemas["ResultIn"]): Promise<Schemas["AnsweredOut"]> =>
    this.request("POST", `/instances/${seg(id)}/calls/${seg(callId)}/result`, result);

  /** Calls that wait for this person, in all conversations. */
  approvals = (wanted: { cursor?: string; limit?: number } = {}): Promise<Schemas["PendingApprovalsOut"]> =>
    this.request("GET", `/approvals?${queryOf(wanted)}`);
  /** What an agent may use, before a conversation with it has begun. */
  offers = (agent: string): Promise<Schemas["OffersOut"]> => this.request("GET", `/agents/${seg(agent)}/offers`);
  /** Models that may be chosen for an agent. */
  models = (agent: string): Promise<Schemas["OfferedModelsOut"]> =>
    this.request("GET", `/models?${queryOf({ agent })}`);

  // --- what the model reads -----------------------------------------------------------------------------------------

  context = (id: string, options?: RequestOptions): Promise<Schemas["PreviewOut"]> =>
    this.request("GET", `/instances/${seg(id)}/context`, undefined, options);
  /** What answering one more message may cost. */
  nextPrice = (id: string, options?: RequestOptions): Promise<Schemas["NextPriceOut"]> =>
    this.request("GET", `/instances/${seg(id)}/next-price`, undefined, options);
  usage = (id: string): Promise<Schemas["SpendingOut"]> => this.request("GET", `/instances/${seg(id)}/usage`);
  compact = (id: string, instructions: string): Promise<Schemas["CompactOut"]> =>
    this.request("POST", `/instances/${seg(id)}/compact`, { instructions });
  compactions = (id: string): Promise<Schemas["CompactionOut"][]> =>
    this.request("GET", `/instances/${seg(id)}/compactions`);
  rewordCompaction = (id: string, summary: string): Promise<Schemas["CompactionOut"]> =>
    this.request("PATCH", `/compactions/${seg(id)}`, { summary });
  undoCompaction = (id: string): Promise<Schemas["CompactionOut"]> =>
    this.request("POST", `/compactions/${seg(id)}/undo`, {});

  /** What the agent reads of a history: its blocks. */
  sessionContext = (sessionId: string, signal?: AbortSignal): Promise<Schemas["ContextOut"]> =>
    this.request("GET", `/sessions/${seg(sessionId)}/context`, undefined, { signal });
  memory = (signal?: AbortSignal): Promise<Schemas["MemoryOut"][]> =>
    this.request("GET", "/memory", undefined, { signal });

  // --- what a conversation is about -----------------------------------------------------------------------------------

  overview = (sessionId: string, signal?: AbortSignal): Promise<Schemas["SessionSummaryOut"]> =>
    this.request("GET", `/sessions/${seg(sessionId)}/summary`, undefined, { signal });
  askOverview = (sessionId: string): Promise<Schemas["SummaryAskedOut"]> =>
    this.request("POST", `/sessions/${seg(sessionId)}/summary`);
  writeOverview = (sessionId: string, text: string): Promise<Schemas["SessionSummaryOut"]> =>
    this.request("PUT", `/sessions/${seg(sessionId)}/summary`, { text });
  deleteOverview = (sessionId: string): Promise<null> => this.request("DELETE", `/sessions/${seg(sessionId)}/summary`);

  // --- files --------------------------------------------------------------------------------------------------------

  /** Upload one file. */
  upload(file: File, options: UploadOptions = {}): Promise<Schemas["FileOut"]> {
    return this.transfer("POST", "/files", formOf(file), options);
  }

  /** Send bytes or a form; progress is reported. Throws as `request` does. */
  transfer<Answer>(
    method: Method,
    path: string,
    body: FormData | Blob | string,
    { onProgress, signal, headers = {} }: UploadOptions & { headers?: Record<string, string> } = {},
  ): Promise<Answer> {
    const request = new XMLHttpRequest(); // fetch tells nothing of upload progress
    const answer = new Promise<Answer>((resolve, reject) => {
      request.open(method, this.base + path);
      const all = { "x-csrftoken": csrf(), accept: "application/json", ...headers };
      for (const [name, value] of Object.entries(all)) request.setRequestHeader(name, value);
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) onProgress?.(event.loaded / event.total);
      });
      request.addEventListener("error", () => reject(new ApiError("offline", t("common.upload-cut"))));
      request.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
      request.addEventListener("load", () => settle<Answer>(request).then(resolve, reject));
      signal?.addEventListener("abort", () => request.abort());
      request.send(body);
    });
    return pending(answer);
  }

  /** The answer to a GET whatever its type; of an address of this server. Throws as `request` does. */
  async bytes(url: string, { signal, headers = {} }: RequestOptions & { headers?: Record<string, string> } = {}) {
    let response: Response | null = null;
    if (URL.parse(url, location.href)?.origin === location.origin) {
      // What the browser keeps of a file is not pieced together with what the file is now.
      const asked = fetch(url, { headers, signal, credentials: "same-origin", cache: "no-store" });
      response = await pending(asked).catch((error) => {
        if (signal?.aborted) throw error;
        return null;
      });
    }
    if (!response) throw new ApiError("offline", t("common.server-unreachable"));
    if (!response.ok) throw await problem(response);
    return response;
  }

  /** A text of this server. */
  textAt = async (url: string): Promise<string> => await (await this.bytes(url)).text();
}

/** A form with one file. */
export function formOf(file: File): FormData {
  const form = new FormData();
  form.append("file", file, file.name);
  return form;
}

async function settle<Answer>(request: XMLHttpRequest): Promise<Answer> {
  const headers = { "retry-after": request.getResponseHeader("retry-after") ?? "" };
  const response = new Response(request.responseText, { status: request.status, headers });
  if (!response.ok) throw await problem(response);
  return await response.json() as Answer;
}
