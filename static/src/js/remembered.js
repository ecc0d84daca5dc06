// Where a block is kept, as addresses of the API: of a session, or of the person.

const seg = encodeURIComponent;

/** Verbs on one block. A person's own block that an agent declares is written by way of the session, which knows its limit. */
export class Remembered {
  /** `sessionId`: "" without a conversation. `isOwn`: it belongs to the person and not to the session. */
  constructor(api, { label, sessionId, isOwn }) {
    this.api = api;
    this.label = label;
    const inSession = `/sessions/${seg(sessionId)}/context/${seg(label)}`;
    this.base = isOwn ? `/memory/${seg(label)}` : inSession;
    this.writing = sessionId ? inSession : this.base;
    this.history = isOwn ? "/memory-changes" : `/sessions/${seg(sessionId)}/changes`;
  }

  write = (content) => this.api.request("PUT", this.writing, { content });
  forget = (withHistory) => this.api.request("DELETE", `${this.base}${withHistory ? "?history=true" : ""}`);
  entries = (after = "") =>
    this.api.request("GET", `${this.base}/entries?limit=20${after ? `&after=${seg(after)}` : ""}`);
  writeEntry = (key, content) => this.api.request("PUT", `${this.base}/entries/${seg(key)}`, { content });
  deleteEntry = (key) => this.api.request("DELETE", `${this.base}/entries/${seg(key)}`);
  changes = (subject, before = null) =>
    this.api.request("GET", `${this.history}?limit=10&subject=${seg(subject)}${before ? `&before=${before}` : ""}`);
}

const ACTORS = { model: "The model", code: "The agent’s code", api: "You", admin: "An administrator" };
const VERBS = {
  set: "wrote",
  append: "added to",
  delete: "deleted",
  add: "added",
  remove: "took out",
  edit: "changed",
  undo: "undid",
};

/** "The model wrote", "You deleted". Pure. */
export const whoDid = (change) => `${ACTORS[change.via] ?? change.via} ${VERBS[change.action] ?? change.action}`;

/** The blocks in the order in which people look for them: their own, the conversation's, the agent's. Pure. */
export function grouped(blocks, memory) {
  const own = blocks.filter((block) => block.of === "user");
  const declared = new Set(own.map((block) => block.label));
  const other = memory.filter((item) => !declared.has(item.label)).map((item) => ({
    ...item,
    of: "user",
    writable: true,
    isElsewhere: true,
    is_skill: false,
    is_searchable: false,
  }));
  const stored = new Map(memory.map((item) => [item.label, item]));
  const withCount = own.map((block) => ({ ...block, entry_count: stored.get(block.label)?.entry_count ?? 0 }));
  return [
    {
      key: "user",
      title: "About you",
      hint: "Read by agents in all of your conversations.",
      blocks: [...withCount, ...other],
    },
    {
      key: "session",
      title: "In this conversation",
      hint: "Read in this conversation only.",
      blocks: blocks.filter((block) => block.of === "session"),
    },
    {
      key: "agent",
      title: "From the agent",
      hint: "What the agent brings along.",
      blocks: blocks.filter((block) => block.of === "agent"),
    },
  ];
}
