// Where a block is kept, as addresses of the API: of a session, or of the person.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { Api, Schemas } from "../net/api.ts";

/** A text that people keep, as the API gives it. */
export type MemoryItem = Schemas["MemoryOut"];
export type Entry = Schemas["EntryOut"];
export type Change = Schemas["ChangeOut"];

/**
 * A block as it is shown. `isElsewhere`: this agent does not read it; `isNew`: it is not stored yet; `entry_count`: 0 where there are
 * none or it is not known.
 */
export type Block = Schemas["BlockOut"] & {
  entry_count: number;
  isElsewhere?: boolean;
  isNew?: boolean;
};

const seg = encodeURIComponent;

/** Verbs on one block. A person's own block that an agent declares is written by way of the session, which knows its limit. */
export class Remembered {
  readonly label: string;
  readonly #api: Pick<Api, "request">;
  readonly #base: string;
  readonly #writing: string;
  readonly #history: string;

  /** `sessionId`: "" without a conversation. `isOwn`: it belongs to the person and not to the session. */
  constructor(
    api: Pick<Api, "request">,
    { label, sessionId, isOwn }: { label: string; sessionId: string; isOwn: boolean },
  ) {
    this.label = label;
    this.#api = api;
    const inSession = `/sessions/${seg(sessionId)}/context/${seg(label)}`;
    this.#base = isOwn ? `/memory/${seg(label)}` : inSession;
    this.#writing = sessionId ? inSession : this.#base;
    this.#history = isOwn ? "/memory-changes" : `/sessions/${seg(sessionId)}/changes`;
  }

  write = (content: string): Promise<unknown> => this.#api.request("PUT", this.#writing, { content });
  forget = (withHistory: boolean): Promise<null> =>
    this.#api.request("DELETE", `${this.#base}${withHistory ? "?history=true" : ""}`);
  entries = (after = ""): Promise<Schemas["EntryPageOut"]> =>
    this.#api.request("GET", `${this.#base}/entries?limit=20${after ? `&after=${seg(after)}` : ""}`);
  writeEntry = (key: string, content: string): Promise<null> =>
    this.#api.request("PUT", `${this.#base}/entries/${seg(key)}`, { content });
  deleteEntry = (key: string): Promise<null> => this.#api.request("DELETE", `${this.#base}/entries/${seg(key)}`);
  changes = (subject: string, before: number | null = null): Promise<Schemas["ChangePageOut"]> =>
    this.#api.request(
      "GET",
      `${this.#history}?limit=10&subject=${seg(subject)}${before ? `&before=${before}` : ""}`,
    );
}

const ACTORS: { readonly [via: string]: MessageKey } = {
  model: "memory.by-model",
  code: "memory.by-code",
  api: "memory.by-you",
  admin: "memory.by-admin",
};
const VERBS: { readonly [action: string]: MessageKey } = {
  set: "memory.did-set",
  append: "memory.did-append",
  delete: "memory.did-delete",
  add: "memory.did-add",
  remove: "memory.did-remove",
  edit: "memory.did-edit",
  undo: "memory.did-undo",
};

/** "The model wrote", "You deleted". Pure. */
export function whoDid({ via, action }: Pick<Change, "via" | "action">): string {
  const who = ACTORS[via] ? t(ACTORS[via]) : via;
  return VERBS[action] ? t(VERBS[action], { who }) : `${who} ${action}`;
}

/** Blocks that belong together. */
export interface BlockGroup {
  key: "user" | "session" | "agent";
  title: string;
  hint: string;
  blocks: Block[];
}

/** The blocks in the order in which people look for them: their own, the conversation's, the agent's. Pure. */
export function grouped(blocks: readonly Schemas["BlockOut"][], memory: readonly MemoryItem[]): BlockGroup[] {
  const stored = new Map(memory.map((item) => [item.label, item]));
  const countOf = ({ of, label }: Schemas["BlockOut"]) => (of === "user" && stored.get(label)?.entry_count) || 0;
  const of = (owner: BlockGroup["key"]): Block[] =>
    blocks.filter((block) => block.of === owner).map((block) => ({ ...block, entry_count: countOf(block) }));
  const own = of("user");
  const declared = new Set(own.map((block) => block.label));
  const other = memory.filter((item) => !declared.has(item.label)).map(asBlock);
  return [
    { key: "user", title: t("memory.of-you"), hint: t("memory.of-you-hint"), blocks: [...own, ...other] },
    {
      key: "session",
      title: t("memory.of-conversation"),
      hint: t("memory.of-conversation-hint"),
      blocks: of("session"),
    },
    { key: "agent", title: t("memory.of-agent"), hint: t("memory.of-agent-hint"), blocks: of("agent") },
  ];
}

const OWN_LABEL = "memory";

/** A place to begin, where nothing is remembered of the person. `isElsewhere`: the shown agent does not read it. */
export const emptyMemory = (isElsewhere: boolean): Block => ({
  ...asBlock({ label: OWN_LABEL, content: "", entry_count: 0 } as MemoryItem),
  isElsewhere,
  isNew: true,
});

/** What is remembered, without a conversation: nothing is said of which agent reads it. */
export const ownBlock = (item: MemoryItem): Block => ({ ...asBlock(item), isElsewhere: false });

/** A label as people read it: "about_me" is "About me"; the one that each person has is named in their language. */
export function nameOf(label: string): string {
  if (label === OWN_LABEL) return t("memory.own-label");
  const words = label.replace(/[_-]+/g, " ").trim();
  return words ? words[0].toLocaleUpperCase() + words.slice(1) : label;
}

const asBlock = (item: MemoryItem): Block => ({
  ...item,
  of: "user",
  writable: true,
  isElsewhere: true,
  is_skill: false,
  is_searchable: false,
  is_runtime: false,
});
