// The sections of a person's settings, in the order of the column. A new one is a line here and its view, which is loaded when it
// is opened first: docs/howto/add-a-section.md.

import type { ComponentType } from "preact";
import type { MessageKey } from "../lib/i18n.ts";

export interface SettingsSection {
  /** Its address, `/settings/name`. */
  name: string;
  label: MessageKey;
  /** A symbol of `templates/chat/icons.svg`. */
  icon: string;
  load: () => Promise<ComponentType>;
}

export const SECTIONS: readonly SettingsSection[] = [
  { name: "you", label: "settings.you", icon: "person", load: async () => (await import("./own.ts")).YouSection },
  {
    name: "instructions",
    label: "settings.instructions",
    icon: "edit",
    load: async () => (await import("./own.ts")).InstructionsSection,
  },
  {
    name: "memory",
    label: "settings.memory",
    icon: "memory",
    load: async () => (await import("./own.ts")).MemorySection,
  },
  {
    name: "prompts",
    label: "prompts.title",
    icon: "book",
    load: async () => (await import("./own.ts")).PromptsSection,
  },
  { name: "rules", label: "rules.title", icon: "shield", load: async () => (await import("./own.ts")).RulesSection },
  {
    name: "keys",
    label: "account.keys",
    icon: "sliders",
    load: async () => (await import("./keys.tsx")).KeysSection,
  },
  {
    name: "tools",
    label: "account.tools",
    icon: "tool",
    load: async () => (await import("./all_tools.tsx")).ToolsSection,
  },
  {
    name: "notifications",
    label: "notifications.title",
    icon: "mail",
    load: async () => (await import("./own.ts")).NotificationsSection,
  },
  {
    name: "tokens",
    label: "account.tokens-title",
    icon: "key",
    load: async () => (await import("./tokens.tsx")).TokensSection,
  },
  {
    name: "sessions",
    label: "account.browsers",
    icon: "globe",
    load: async () => (await import("./browsers.tsx")).BrowsersSection,
  },
  { name: "links", label: "sharing.links", icon: "link", load: async () => (await import("./links.tsx")).LinksSection },
  {
    name: "deleted",
    label: "deleted.title",
    icon: "bin",
    load: async () => (await import("./deleted.tsx")).DeletedSection,
  },
  { name: "usage", label: "usage.title", icon: "chart", load: async () => (await import("./usage.tsx")).UsageSection },
  {
    name: "data",
    label: "account.data",
    icon: "save",
    load: async () => (await import("./your_data.tsx")).YourDataSection,
  },
];

export const sectionNamed = (name: string): SettingsSection | undefined => SECTIONS.find((item) => item.name === name);
