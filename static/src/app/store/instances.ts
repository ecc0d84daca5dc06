// A conversation of the API in this code's words, and where it is.

import { t } from "../lib/i18n.ts";
import type { components } from "../net/openapi.d.ts";
import type { Instance, ModelChoice } from "./types.ts";

/** An instance as the API gives it; what a server does not tell yet may be missing. */
export type RawInstance =
  & Pick<components["schemas"]["InstanceOut"], "id" | "agent" | "name">
  & Partial<components["schemas"]["InstanceOut"]>
  & {
    waiting_count?: number;
    has_failed?: boolean;
    model_choice?: ModelChoice | null;
    model?: string | null;
    model_notice?: string | null;
  };

export function fromInstance(raw: RawInstance): Instance {
  const origin = raw.forked_from;
  return {
    id: raw.id,
    agent: raw.agent,
    name: raw.name,
    path: raw.path,
    title: raw.title ?? "",
    activeAt: raw.active_at ?? raw.created_at ?? new Date().toISOString(),
    isNew: false,
    isRunning: Boolean(raw.is_running),
    isUnread: Boolean(raw.is_unread),
    isReadOnly: Boolean(raw.is_read_only),
    isPinned: Boolean(raw.pinned_at),
    isArchived: Boolean(raw.archived_at),
    waitingCount: raw.waiting_count ?? 0,
    hasFailed: Boolean(raw.has_failed),
    sessionId: raw.session_id ?? null,
    keepsSessions: Boolean(raw.keeps_sessions),
    origin: origin ? { id: origin.instance_id, messageId: origin.message_id, title: origin.title } : null,
    modelChoice: raw.model_choice ?? null,
    model: raw.model ?? "",
    modelNotice: raw.model_notice ?? "",
  };
}

/** A conversation that is begun here: the server knows it with its first message. */
export function newInstance(agent: string, name: string): Instance {
  return { ...fromInstance({ id: "", agent, name }), isNew: true };
}

/** Where a conversation's socket is, behind `/agents/`. One that is not made yet is a root. */
export function pathOf({ path, agent, name }: Pick<Instance, "path" | "agent" | "name">): string {
  return path || `${encodeURIComponent(agent)}/${encodeURIComponent(name)}`;
}

/** What a conversation is called. */
export function titleOf(instance: Pick<Instance, "title"> | null | undefined): string {
  return instance?.title || t("common.new-conversation");
}
