// Questions that are shown in their own way: a model that loads an extension, a server that asks a person or a model. Pure.

import { t } from "../lib/i18n.ts";
import { type Permission, permissionList, permissionsOf } from "./extension_facts.ts";
import { isRecord, textIn } from "./tool_details.ts";

export type AskedKind = "extension" | "words" | "link" | "sampling";

const FROM_SERVER = /:q\d+-[0-9a-f]{8}$/; // the ids of questions that a server asks within a call

/** The kind of a question; null for one that is shown by its arguments. */
export function askedKind(tool: string, callId: string, input: unknown): AskedKind | null {
  if (!isRecord(input)) return null;
  if (tool === "load_extension") return typeof input.source === "string" ? "extension" : null;
  if (!FROM_SERVER.test(callId)) return null; // something else may be called so
  if (tool === "mcp_question") return typeof input.url === "string" ? "link" : "words";
  return tool === "mcp_sampling" && Array.isArray(input.messages) ? "sampling" : null;
}

/** An extension that a model wants to load. */
export interface AskedExtension {
  description: string;
  source: string;
  /** What it could do, each by itself. */
  permissions: string[];
  /** Everything but the source, as the model wrote it. */
  rest: Record<string, unknown>;
}

export function askedExtension(input: Record<string, unknown>): AskedExtension {
  const { source: _, ...rest } = input;
  return {
    description: textIn(input, "description"),
    source: textIn(input, "source"),
    permissions: [...asked(input).map(({ text }) => text), ...blocks(input.context), ...hooks(input.hooks)],
    rest,
  };
}

/** The arguments of the call, as a manifest would ask for the same. */
function asked(input: Record<string, unknown>): Permission[] {
  const requested = permissionsOf({
    network: input.network,
    workspace: input.workspace_access,
    context: { read: input.read_context, write: "own" },
    messages: input.messages,
    session: { sendMessage: input.send_messages, metadata: input.session_info },
  });
  return permissionList({ requested: { ...requested }, granted: {} });
}

const blocks = (context: unknown): string[] =>
  (Array.isArray(context) ? context : []).map((block) =>
    t("extensions.may-add-block", { label: textIn(block, "label") })
  );

function hooks(given: unknown): string[] {
  const names = Array.isArray(given) ? given : [];
  const said: string[] = [];
  if (names.includes("beforeTurn")) said.push(t("extensions.may-change-turns"));
  if (names.some((name) => name !== "beforeTurn")) said.push(t("extensions.may-follow-turns"));
  return said;
}

/** What a server wants to ask the model. */
export interface AskedSampling {
  system: string;
  messages: { role: string; text: string }[];
  maxTokens: number | null;
}

export function askedSampling(input: Record<string, unknown>): AskedSampling {
  const messages = Array.isArray(input.messages) ? input.messages : [];
  return {
    system: textIn(input, "system"),
    messages: messages.map((message) => ({ role: textIn(message, "role"), text: textIn(message, "text") })),
    maxTokens: typeof input.max_tokens === "number" ? input.max_tokens : null,
  };
}
