// The commands and saved prompts that what is typed may become, each with what it does.

import { useEffect } from "preact/hooks";
import { type MessageKey, t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { CommandInfo } from "../store/commands.ts";
import { promptsFor } from "../store/prompt_words.ts";
import { prompts, usePrompt } from "../store/prompts.ts";
import { useApp } from "./context.ts";

const HINTS: { readonly [name: string]: MessageKey } = {
  compact: "summaries.compact-hint",
  undo: "undo.hint",
  redo: "undo.redo-hint",
  title: "keys.title-hint",
};
const MOST = 8; // prompts at a time: who has more goes on typing

export function CommandList({ commands, typed }: { commands: readonly CommandInfo[]; typed: string }) {
  const app = useApp();
  const { composer } = app;
  const found = promptsFor(typed, follow(prompts).items).slice(0, MOST);
  useEffect(() => void prompts.load(app), []);
  useEffect(() => { // Enter takes the first prompt that a word has found
    const [first] = typed.length > 1 ? found : [];
    composer.take = first ? () => void usePrompt(app, first) : null;
    return () => void (composer.take = null);
  });
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
      {found.map((prompt) => (
        <button
          key={prompt.id}
          type="button"
          class="command"
          data-prompt={prompt.id}
          title={t("prompts.hint")}
          onClick={() => void usePrompt(app, prompt)}
        >
          <span class="prompt-name" dir="auto">{prompt.name}</span>
          <span dir="auto">{prompt.text.slice(0, 120)}</span>
        </button>
      ))}
    </>
  );
}
