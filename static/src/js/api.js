// The JSON API: one place for addresses, the CSRF header and what an error means.

/** A request that failed. `kind`: "offline" (nothing answered), "refused" (4xx), "broken" (5xx). */
export class ApiError extends Error {
  constructor(kind, message, { status = 0, code = "" } = {}) {
    super(message);
    this.kind = kind;
    this.status = status;
    this.code = code;
  }

  /** Whether the same request may succeed later. */
  get isTemporary() {
    return this.kind === "offline" || this.kind === "broken" || this.status === 429;
  }
}

const csrf = () => document.querySelector('meta[name="csrf-token"]')?.getAttribute("content") ?? "";

async function problem(response) {
  let body = null;
  try {
    body = await response.json();
  } catch {
    // Not JSON: a proxy's page. The status says enough.
  }
  const said = typeof body?.detail === "string" ? body.detail : body?.title ?? body?.message;
  const why = body?.data?.errors?.[0]?.message; // of a value that was not as it should be
  const text = said && why ? `${said.replace(/\.$/, "")}: ${why}.` : said;
  if (response.status === 401) {
    return new ApiError("refused", "You are signed out. Sign in again to go on.", { status: 401 });
  }
  const kind = response.status >= 500 ? "broken" : "refused";
  const fallback = kind === "broken" ? "The server could not do this just now." : "The server refused this request.";
  return new ApiError(kind, text || fallback, { status: response.status, code: body?.code ?? "" });
}

const queryOf = (values) =>
  new URLSearchParams(
    Object.entries(values).filter(([, value]) => value !== "" && value !== undefined && value !== null),
  );

const LONGEST_WAIT = 30_000; // for a whole answer, files apart; what is asked for again is asked for with the same ids

export class Api {
  constructor(base) {
    this.base = base;
  }

  /**
   * @param {string} method
   * @param {string} path
   * @param {unknown} [body]
   * @param {{ signal?: AbortSignal }} [options]
   */
  async request(method, path, body, { signal } = {}) {
    const isForm = body instanceof FormData;
    const patience = new AbortController();
    const tooLong = isForm ? 0 : setTimeout(() => patience.abort(), LONGEST_WAIT);
    const giveUp = () => patience.abort();
    signal?.addEventListener("abort", giveUp);
    try {
      if (signal?.aborted) giveUp();
      return await this.#ask(method, path, body, isForm, patience.signal);
    } catch (error) {
      if (error instanceof ApiError || signal?.aborted) throw error;
      throw new ApiError(
        "offline",
        patience.signal.aborted ? "The server did not answer in time." : "The server cannot be reached.",
      );
    } finally {
      clearTimeout(tooLong);
      signal?.removeEventListener("abort", giveUp);
    }
  }

  async #ask(method, path, body, isForm, signal) {
    const headers = { accept: "application/json" };
    if (method !== "GET") headers["x-csrftoken"] = csrf();
    if (body !== undefined && !isForm) headers["content-type"] = "application/json";
    const sent = body === undefined || isForm ? body : JSON.stringify(body);
    const response = await fetch(this.base + path, { method, headers, signal, credentials: "same-origin", body: sent });
    if (!response.ok) throw await problem(response);
    if (response.status === 204) return null;
    return await response.json();
  }

  instances = (wanted = {}, options) =>
    this.request("GET", `/instances?${queryOf({ limit: 60, ...wanted })}`, undefined, options);
  search = (wanted, options) => this.request("GET", `/search?${queryOf(wanted)}`, undefined, options);
  createInstance = (agent, name, title) =>
    this.request("POST", "/instances", { agent, name, title, title_is_provisional: true });
  instance = (id) => this.request("GET", `/instances/${encodeURIComponent(id)}`);
  changeInstance = (id, change) => this.request("PATCH", `/instances/${encodeURIComponent(id)}`, change);
  deleteInstance = (id) => this.request("DELETE", `/instances/${encodeURIComponent(id)}`);
  /** A page of the shown path, or of another history of the conversation: newest, `before`, `after` or `around` a message. */
  messages = (id, { sessionId = "", ...wanted } = {}) => {
    const whose = sessionId ? `/sessions/${encodeURIComponent(sessionId)}` : `/instances/${encodeURIComponent(id)}`;
    return this.request("GET", `${whose}/messages?${queryOf({ limit: 50, ...wanted })}`);
  };
  fork = (id, messageId, sessionId, title) =>
    this.request("POST", `/instances/${encodeURIComponent(id)}/fork`, {
      message_id: messageId,
      session_id: sessionId,
      title,
    });
  editAnswer = (id, messageId, text, continues) =>
    this.request("POST", `/instances/${encodeURIComponent(id)}/messages/${encodeURIComponent(messageId)}/edit`, {
      parts: [{ type: "text", text }],
      continue_from_here: continues,
    });
  sessions = (id) => this.request("GET", `/instances/${encodeURIComponent(id)}/sessions`);
  createSession = (id, name) => this.request("POST", `/instances/${encodeURIComponent(id)}/sessions`, { name });
  switchSession = (id, sessionId) =>
    this.request("PUT", `/instances/${encodeURIComponent(id)}/session`, { session_id: sessionId });
  changeSession = (sessionId, change) => this.request("PATCH", `/sessions/${encodeURIComponent(sessionId)}`, change);
  deleteSession = (sessionId) => this.request("DELETE", `/sessions/${encodeURIComponent(sessionId)}`);
  exportAddress = (sessionId, format) =>
    `${this.base}/sessions/${encodeURIComponent(sessionId)}/export?format=${format}`;
  selectLeaf = (id, messageId) =>
    this.request("PUT", `/instances/${encodeURIComponent(id)}/leaf`, { message_id: messageId });
  submitTurn = (id, body) => this.request("POST", `/instances/${encodeURIComponent(id)}/turns`, body);
  decideCall = (id, callId, decision) =>
    this.request("POST", `/instances/${encodeURIComponent(id)}/calls/${encodeURIComponent(callId)}/approval`, decision);
  answerCall = (id, callId, result) =>
    this.request("POST", `/instances/${encodeURIComponent(id)}/calls/${encodeURIComponent(callId)}/result`, result);
  context = (id, options) => this.request("GET", `/instances/${encodeURIComponent(id)}/context`, undefined, options);
  usage = (id) => this.request("GET", `/instances/${encodeURIComponent(id)}/usage`);
  compact = (id, instructions) =>
    this.request("POST", `/instances/${encodeURIComponent(id)}/compact`, { instructions });
  compactions = (id) => this.request("GET", `/instances/${encodeURIComponent(id)}/compactions`);
  rewordCompaction = (id, summary) => this.request("PATCH", `/compactions/${encodeURIComponent(id)}`, { summary });
  undoCompaction = (id) => this.request("POST", `/compactions/${encodeURIComponent(id)}/undo`, {});
  cancelTurn = (turnId) => this.request("POST", `/turns/${encodeURIComponent(turnId)}/cancel`, {});

  /** Make a conversation of an exported one. */
  importConversation(file, agent) {
    const form = new FormData();
    form.append("agent", agent);
    form.append("file", file, file.name);
    return this.request("POST", "/imports", form);
  }

  /**
   * Upload one file. `onProgress` receives fractions; `signal` aborts. Resolves to {id, url, name, media_type, byte_size}.
   * @param {File} file
   * @param {{ onProgress?: (fraction: number) => void, signal?: AbortSignal }} [options]
   */
  upload(file, { onProgress, signal } = {}) {
    const form = new FormData();
    form.append("file", file, file.name);
    const request = new XMLHttpRequest(); // fetch tells nothing of upload progress
    return new Promise((resolve, reject) => {
      request.open("POST", `${this.base}/files`);
      request.setRequestHeader("x-csrftoken", csrf());
      request.setRequestHeader("accept", "application/json");
      request.upload.addEventListener("progress", (event) => {
        if (event.lengthComputable) onProgress?.(event.loaded / event.total);
      });
      request.addEventListener("error", () => reject(new ApiError("offline", "The upload was cut off.")));
      request.addEventListener("abort", () => reject(new DOMException("aborted", "AbortError")));
      request.addEventListener("load", () => settleUpload(request, resolve, reject));
      signal?.addEventListener("abort", () => request.abort());
      request.send(form);
    });
  }
}

async function settleUpload(request, resolve, reject) {
  const response = new Response(request.responseText, { status: request.status });
  if (response.ok) resolve(await response.json());
  else reject(await problem(response));
}
