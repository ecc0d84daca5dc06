// The section "Prompts": what is saved, made, changed and removed.

import { useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { removePrompt, type SavedPrompt } from "../net/prompts_api.ts";
import { readPrompts } from "../net/prompts_api.ts";
import { Failure } from "../panels/panel.tsx";
import { editPrompt, prompts } from "../store/prompts.ts";
import { useApp } from "../ui/context.ts";
import { useSection } from "./reading.ts";

const SHOWN = 160;

export function PromptsSection() {
  const app = useApp();
  const add = useRef<HTMLButtonElement>(null);
  const reading = useSection(async (signal) => {
    const items = await readPrompts(app.api, signal);
    prompts.put(items);
    return items;
  });
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("common.loading")}</p>;
  }
  const edit = async (prompt: Pick<SavedPrompt, "name" | "text"> & { id?: string }) => {
    if (await editPrompt(app, prompt)) await reading.again();
  };
  const remove = async (prompt: SavedPrompt) => {
    try {
      await removePrompt(app.api, prompt.id);
      await reading.again();
      add.current?.focus(); // the button that was pressed is gone
    } catch (error) {
      app.notices.fail(error);
    }
  };
  return (
    <>
      <p class="settings-intro">{t("prompts.about", { example: "{example}" })}</p>
      {reading.value.length === 0 && <p class="muted">{t("prompts.none")}</p>}
      <ul class="settings-rows">
        {reading.value.map((prompt) => (
          <li key={prompt.id}>
            <div class="settings-row-text">
              <p dir="auto">{prompt.name}</p>
              <p class="muted" dir="auto">
                {prompt.text.length > SHOWN ? `${prompt.text.slice(0, SHOWN)}…` : prompt.text}
              </p>
            </div>
            <div class="notice-verbs">
              <button
                type="button"
                class="button"
                aria-label={t("prompts.edit-label", { name: prompt.name })}
                onClick={() => void edit(prompt)}
              >
                {t("prompts.edit")}
              </button>
              <button
                type="button"
                class="button"
                aria-label={t("prompts.remove-label", { name: prompt.name })}
                onClick={() => void remove(prompt)}
              >
                {t("prompts.remove")}
              </button>
            </div>
          </li>
        ))}
      </ul>
      <p class="panel-actions">
        <button type="button" class="button is-primary" ref={add} onClick={() => void edit({ name: "", text: "" })}>
          {t("prompts.new")}
        </button>
      </p>
    </>
  );
}
