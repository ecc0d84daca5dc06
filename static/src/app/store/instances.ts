// A conversation of the API in this code's words, and where it is.

import { t } from "../lib/i18n.ts";
import type { components } from "../net/openapi.d.ts";
import type { RawInstance } from "../net/types.ts";
import type { Instance, ModelChoice } from "./types.ts";

type Schemas = components["schemas"];

export function fromInstance(raw: RawInstance): Instance {
  const origin = raw.forked_from;
  return {
    id: raw.id,
    agent: raw.agent,
    name: raw.name,
    path: raw.path,
    parentId: raw.parent_id,
    title: raw.title ?? "",
    activeAt: raw.active_at ?? raw.created_at ?? new Date().toISOString(),
    isNew: false,
    isRunning: Boolean(raw.is_running),
    retryAt: raw.retry?.retry_at ?? null,
    isUnread: Boolean(raw.is_unread),
    isReadOnly: Boolean(raw.is_read_only) || raw.role === "reader",
    isRetired: Boolean(raw.is_read_only),
    role: raw.role ?? "owner",
    isShared: Boolean(raw.is_shared),
    isPinned: Boolean(raw.pinned_at),
    isTemporary: Boolean(raw.temporary),
    isArchived: Boolean(raw.archived_at),
    projectId: raw.project_id ?? null,
    waitingCount: raw.waiting_count ?? 0,
    hasFailed: Boolean(raw.has_failed),
    guard: raw.guard,
    plans: Boolean(raw.plans),
    undone: raw.undone ?? null,
    sessionId: raw.session_id ?? null,
    keepsSessions: Boolean(raw.keeps_sessions),
    origin: origin ? { id: origin.instance_id, messageId: origin.message_id, title: origin.title } : null,
    modelChoice: raw.model_choice ? choiceOf(raw.model_choice) : null,
    model: raw.model ?? "",
    modelNotice: raw.model_notice ?? "",
  };
}

/** A choice with all of its settings; null where none is chosen. */
export const choiceOf = (raw: Schemas["ModelChoice"]): ModelChoice => ({
  model: raw.model ?? null,
  reasoning_effort: raw.reasoning_effort ?? null,
  temperature: raw.temperature ?? null,
  top_p: raw.top_p ?? null,
  max_output_tokens: raw.max_output_tokens ?? null,
});

/** What a conversation is begun with here. It has no id yet. */
export type Begun = Pick<Instance, "agent" | "name" | "isTemporary" | "projectId">;

/** A conversation that is begun here: the server knows it with its first message. */
export function newInstance({ agent, name, isTemporary, projectId }: Begun): Instance {
  return { ...fromInstance({ id: "", agent, name }), isNew: true, isTemporary, projectId };
}

/** Whether it is this person's own: what concerns the whole of it is the owner's. */
export const isOwn = ({ role }: Pick<Instance, "role">): boolean => role === "owner";

/** Whether this person may answer questions about calls. */
export const mayDecide = ({ role, isReadOnly }: Pick<Instance, "role" | "isReadOnly">): boolean =>
  !isReadOnly && (role === "owner" || role === "approver");

/** Whether several people may be in it. */
export const hasPeople = ({ role, isShared }: Pick<Instance, "role" | "isShared">): boolean =>
  isShared || role !== "owner";

/** Where a conversation's socket is, behind `/agents/`. One that is not made yet is a root. */
export function pathOf({ path, agent, name }: Pick<Instance, "path" | "agent" | "name">): string {
  return path || `${encodeURIComponent(agent)}/${encodeURIComponent(name)}`;
}

/** What a conversation is called. */
export function titleOf(instance: Pick<Instance, "title"> | null | undefined): string {
  return instance?.title || t("common.new-conversation");
}
