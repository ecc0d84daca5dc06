// Extensions in words, and their permissions one by one, so that a person can withdraw each of them. Pure.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { Extension } from "../net/tools_api.ts";

/** Permissions as a manifest has them. `"all"` and `"own"` are words of the manifest. */
export interface Permissions {
  network: "all" | string[];
  workspace: "none" | "read" | "read-write";
  context: { read: "all" | string[]; write: "own" | string[] };
  messages: "none" | "read";
  session: { sendMessage: boolean; metadata: boolean };
}

/** One permission that a person can give or withdraw. */
export interface Permission {
  key: string;
  text: string;
  isGranted: boolean;
  /** What is granted when it is given or withdrawn, the others as they are. */
  set: (isGranted: boolean) => Permissions;
}

const listOf = (value: unknown): string[] =>
  Array.isArray(value) ? value.filter((item) => typeof item === "string") : [];
const recordOf = (value: unknown): Record<string, unknown> =>
  typeof value === "object" && value !== null ? value as Record<string, unknown> : {};

/** What the server says, with nothing granted where it says nothing. */
export function permissionsOf(given: Record<string, unknown>): Permissions {
  const context = recordOf(given.context);
  const session = recordOf(given.session);
  return {
    network: given.network === "all" || given.network === true ? "all" : listOf(given.network),
    workspace: given.workspace === "read" || given.workspace === "read-write" ? given.workspace : "none",
    context: {
      read: context.read === "all" ? "all" : listOf(context.read),
      write: context.write === "own" ? "own" : listOf(context.write),
    },
    messages: given.messages === "read" ? "read" : "none",
    session: { sendMessage: session.sendMessage === true, metadata: session.metadata === true },
  };
}

/** All that the manifest asks for, and whether it is granted. */
export function permissionList(extension: Pick<Extension, "requested" | "granted">): Permission[] {
  const asked = permissionsOf(extension.requested);
  const has = permissionsOf(extension.granted);
  return [...files(asked, has), ...network(asked, has), ...conversation(asked, has), ...context(asked, has)];
}

function files(asked: Permissions, has: Permissions): Permission[] {
  const made: Permission[] = [];
  if (asked.workspace !== "none") {
    made.push({
      key: "read-files",
      text: t("extensions.may-read-files"),
      isGranted: has.workspace !== "none",
      set: (isGranted) => ({ ...has, workspace: isGranted ? "read" : "none" }),
    });
  }
  if (asked.workspace === "read-write") {
    made.push({
      key: "write-files",
      text: t("extensions.may-write-files"),
      isGranted: has.workspace === "read-write",
      set: (isGranted) => ({ ...has, workspace: isGranted ? "read-write" : "read" }),
    });
  }
  return made;
}

function network(asked: Permissions, has: Permissions): Permission[] {
  return several(asked.network, has.network, {
    key: "network",
    all: "extensions.may-reach-all",
    one: (host) => t("extensions.may-reach", { host }),
    set: (rules) => ({ ...has, network: rules }),
  });
}

function conversation(asked: Permissions, has: Permissions): Permission[] {
  const made: Permission[] = [];
  const session = (change: Partial<Permissions["session"]>) => ({ ...has, session: { ...has.session, ...change } });
  if (asked.messages === "read") {
    made.push({
      key: "read-messages",
      text: t("extensions.may-read-messages"),
      isGranted: has.messages === "read",
      set: (isGranted) => ({ ...has, messages: isGranted ? "read" : "none" }),
    });
  }
  if (asked.session.sendMessage) {
    made.push({
      key: "send-messages",
      text: t("extensions.may-send-messages"),
      isGranted: has.session.sendMessage,
      set: (isGranted) => session({ sendMessage: isGranted }),
    });
  }
  if (asked.session.metadata) {
    made.push({
      key: "session",
      text: t("extensions.may-read-session"),
      isGranted: has.session.metadata,
      set: (isGranted) => session({ metadata: isGranted }),
    });
  }
  return made;
}

function context(asked: Permissions, has: Permissions): Permission[] {
  const read = several(asked.context.read, has.context.read, {
    key: "context",
    all: "extensions.may-read-context",
    one: (label) => t("extensions.may-read-block", { label }),
    set: (labels) => ({ ...has, context: { ...has.context, read: labels } }),
  });
  if (asked.context.write === "own") return read; // its own blocks are a part of it
  const write = several(asked.context.write, has.context.write === "own" ? [] : has.context.write, {
    key: "write-context",
    all: "extensions.may-read-context",
    one: (label) => t("extensions.may-write-block", { label }),
    set: (labels) => ({ ...has, context: { ...has.context, write: labels as string[] } }),
  });
  return [...read, ...write];
}

interface Several {
  key: string;
  all: MessageKey;
  one: (name: string) => string;
  set: (names: "all" | string[]) => Permissions;
}

/** Each name of a list by itself, or everything at once. */
function several(asked: "all" | string[], has: "all" | string[], { key, all, one, set }: Several): Permission[] {
  if (asked === "all") {
    return [{ key, text: t(all), isGranted: has === "all", set: (isGranted) => set(isGranted ? "all" : []) }];
  }
  const given = has === "all" ? asked : has;
  return asked.map((name) => ({
    key: `${key} ${name}`,
    text: one(name),
    isGranted: given.includes(name),
    set: (isGranted) => set(asked.filter((other) => (other === name ? isGranted : given.includes(other)))),
  }));
}

export const SCOPES = {
  instance: "extensions.scope-instance",
  user: "extensions.scope-user",
  site: "extensions.scope-site",
  static: "extensions.scope-static",
} as const satisfies Record<Extension["scope"], MessageKey>;

/** Two of the same name may be there, in different scopes. */
export const keyOf = (extension: Pick<Extension, "scope" | "name">): string => `${extension.scope} ${extension.name}`;

/** How it stands: "", where it simply runs. */
export function stateOf(extension: Extension): string {
  if (extension.is_banned) return t("extensions.banned");
  if (!extension.enabled) return t("extensions.disabled");
  return extension.runs ? "" : t("extensions.hidden");
}

/** "2 tools · for this conversation". */
export function factsOf(extension: Extension): string {
  return [t("extensions.tools-count", { count: extension.tools.length }), t(SCOPES[extension.scope])].join(" · ");
}

/** A manifest that a person pasted or picked. Errors: `Error`, in words for people. */
export function manifestIn(text: string): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (error) {
    throw new Error(t("extensions.manifest-not-json", { reason: (error as Error).message }));
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new Error(t("extensions.manifest-no-object"));
  }
  return value as Record<string, unknown>;
}
