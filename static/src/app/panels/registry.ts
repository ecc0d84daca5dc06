// The views of the panel beside a conversation. A new one is a line here, its component, which is loaded when it is opened
// first, and its test: docs/howto/add-a-panel.md.

import type { ComponentType } from "preact";
import type { MessageKey } from "../lib/i18n.ts";
import type { Conversation } from "../store/conversation.ts";
import { isOwn } from "../store/instances.ts";
import type { Instance } from "../store/types.ts";

/** What each view gets: the conversation beside which it is shown. Another conversation is another view. */
export interface PanelProps {
  conversation: Conversation;
}

export interface PanelEntry {
  /** Its address, `?panel=name`, and the key under which the browser remembers it. */
  name: string;
  label: MessageKey;
  icon: string;
  /** Whether others than the owner of the conversation have it. */
  isForMembers?: boolean;
  load: () => Promise<ComponentType<PanelProps>>;
}

export const PANELS: readonly PanelEntry[] = [
  {
    name: "context",
    label: "panel.context",
    icon: "panel",
    load: async () => (await import("./context.tsx")).ContextPanel,
  },
  {
    name: "files",
    label: "panel.files",
    icon: "file",
    isForMembers: true,
    load: async () => (await import("./files.tsx")).FilesPanel,
  },
  {
    name: "memory",
    label: "panel.memory",
    icon: "memory",
    load: async () => (await import("./memory.tsx")).MemoryPanel,
  },
  {
    name: "overview",
    label: "panel.overview",
    icon: "fold",
    load: async () => (await import("./overview.tsx")).OverviewPanel,
  },
  {
    name: "schedules",
    label: "panel.schedules",
    icon: "calendar",
    load: async () => (await import("./work_panels.ts")).SchedulesPanel,
  },
  {
    name: "background",
    label: "panel.background",
    icon: "chart",
    load: async () => (await import("../ui/later.ts")).BackgroundPanel,
  },
  {
    name: "tools",
    label: "panel.tools",
    icon: "tool",
    load: async () => (await import("./work_panels.ts")).ToolsPanel,
  },
];

/** The views that a person has beside a conversation. */
export const panelsOf = (instance: Instance): readonly PanelEntry[] =>
  isOwn(instance) ? PANELS : PANELS.filter(({ isForMembers }) => isForMembers);
