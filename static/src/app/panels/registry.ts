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

/** What the views are grouped by: the tabs of the panel. */
export const GROUPS = ["files", "work", "about"] as const;
export type PanelGroup = (typeof GROUPS)[number];

export interface PanelEntry {
  /** Its address, `?panel=name`, and the key under which the browser remembers it. */
  name: string;
  label: MessageKey;
  icon: string;
  group: PanelGroup;
  /** Whether it is about threads, which few agents keep. */
  isForThreads?: boolean;
  /** Whether others than the owner of the conversation have it. */
  isForMembers?: boolean;
  load: () => Promise<ComponentType<PanelProps>>;
}

export const PANELS: readonly PanelEntry[] = [
  {
    name: "files",
    label: "panel.files",
    icon: "file",
    isForMembers: true,
    group: "files",
    load: async () => (await import("./files.tsx")).FilesPanel,
  },
  {
    name: "workspaces",
    label: "panel.workspaces",
    icon: "folder",
    group: "files",
    isForThreads: true,
    load: async () => (await import("./work_panels.ts")).WorkspacesPanel,
  },
  {
    name: "schedules",
    label: "panel.schedules",
    icon: "calendar",
    group: "work",
    load: async () => (await import("./work_panels.ts")).SchedulesPanel,
  },
  {
    name: "background",
    label: "panel.background",
    icon: "chart",
    group: "work",
    load: async () => (await import("../later/panel.ts")).BackgroundPanel,
  },
  {
    name: "context",
    label: "panel.context",
    icon: "panel",
    group: "about",
    load: async () => (await import("./context.tsx")).ContextPanel,
  },
  {
    name: "memory",
    label: "panel.memory",
    icon: "memory",
    group: "about",
    load: async () => (await import("./memory.tsx")).MemoryPanel,
  },
  {
    name: "overview",
    label: "panel.overview",
    icon: "fold",
    group: "about",
    load: async () => (await import("./overview.tsx")).OverviewPanel,
  },
  {
    name: "tools",
    label: "panel.tools",
    icon: "tool",
    group: "about",
    load: async () => (await import("./work_panels.ts")).ToolsPanel,
  },
];

const FIRST = "context";

/** The views that a person has beside a conversation. `threads`: what the conversation has to do with them. */
export function panelsOf(instance: Instance, threads: { isRoot: boolean; isThread: boolean }): readonly PanelEntry[] {
  const { isRoot, isThread } = threads;
  if (isRoot) return PANELS.filter(({ isForThreads }) => isForThreads);
  const own = PANELS.filter(({ isForThreads }) => isThread || !isForThreads);
  return isOwn(instance) ? own : own.filter(({ isForMembers }) => isForMembers);
}

/** The one that is shown: that of a name, the usual first one, or the first there is. */
export const panelOf = (panels: readonly PanelEntry[], name: string): PanelEntry =>
  panels.find((panel) => panel.name === name) ?? panels.find((panel) => panel.name === FIRST) ?? panels[0];
