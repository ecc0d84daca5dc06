// Saved prompts: one is made or changed, and the places of one are filled in.

import { useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import { addPrompt, changePrompt } from "../net/prompts_api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";
import { Problem } from "../ui/problem.tsx";

const LONGEST_NAME = 60;
const LONGEST_TEXT = 8_000;

export function EditPrompt({ api, prompt, close }: DialogProps<"edit-prompt">) {
  const name = useRef<HTMLInputElement>(null);
  const text = useRef<HTMLTextAreaElement>(null);
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const submit = async () => {
    const written = { name: name.current!.value.trim(), text: text.current!.value.trim() };
    if (!written.name || !written.text || isBusy) return;
    setBusy(true);
    try {
      close(await (prompt.id ? changePrompt(api, prompt.id, written) : addPrompt(api, written)));
    } catch (error) {
      setProblem(messageOf(error));
      setBusy(false);
    }
  };
  return (
    <Dialog
      title={prompt.id ? t("prompts.edit-label", { name: prompt.name }) : t("prompts.new")}
      actions={<button type="submit" class="button is-primary" disabled={isBusy}>{t("prompts.save")}</button>}
      onSubmit={submit}
      close={close}
      isWide
    >
      <p class="muted">{t("prompts.about", { example: "{example}" })}</p>
      <label class="prompt-field">
        <span>{t("prompts.name")}</span>
        <input
          ref={name}
          type="text"
          name="prompt-name"
          autocomplete="off"
          maxLength={LONGEST_NAME}
          required
          dir="auto"
          defaultValue={prompt.name}
        />
      </label>
      <label class="prompt-field">
        <span>{t("prompts.text")}</span>
        <textarea ref={text} rows={8} maxLength={LONGEST_TEXT} required dir="auto" defaultValue={prompt.text} />
      </label>
      <Problem text={problem} />
    </Dialog>
  );
}

/** Tab goes from one place to the next. */
export function FillPrompt({ name, places, close }: DialogProps<"fill-prompt">) {
  const values = useRef<Record<string, string>>({});
  return (
    <Dialog
      title={t("prompts.fill", { name })}
      actions={<button type="submit" class="button is-primary">{t("prompts.use")}</button>}
      onSubmit={() => close(values.current)}
      close={close}
    >
      {places.map((place) => (
        <label key={place} class="prompt-field">
          <span dir="auto">{place}</span>
          <input
            type="text"
            name={place}
            autocomplete="off"
            dir="auto"
            onInput={({ currentTarget }) => values.current[place] = currentTarget.value}
          />
        </label>
      ))}
    </Dialog>
  );
}
