// The commands that what is typed may become, each with what it does.

import { type MessageKey, t } from "../lib/i18n.ts";
import type { CommandInfo } from "../store/commands.ts";
import { useApp } from "./context.ts";

const HINTS: { readonly [name: string]: MessageKey } = {
  compact: "summaries.compact-hint",
  undo: "undo.hint",
  redo: "undo.redo-hint",
  title: "keys.title-hint",
};

export function CommandList({ commands }: { commands: readonly CommandInfo[] }) {
  const { composer } = useApp();
  return (
    <>
      {commands.map(({ name, usage, about }) => (
        <button
          key={name}
          type="button"
          class="command"
          onClick={() => composer.fill(`${usage} `)}
        >
          <code>{usage}</code>
          <span dir="auto">{about ?? t(HINTS[name])}</span>
        </button>
      ))}
    </>
  );
}
