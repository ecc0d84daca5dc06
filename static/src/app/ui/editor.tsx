// A text that a person changes in its place: field, save, cancel, and why it was refused.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { Problem } from "./problem.tsx";

interface Props {
  label: string;
  text: string;
  /** Stores it. Resolves to what went wrong, in words; empty when it is stored. */
  save: (text: string, name: string) => Promise<string>;
  /** It is stored or given up. */
  done: () => void;
  /** Ask for a name too, under this label. */
  nameLabel?: string;
}

const FEWEST_ROWS = 4;
const MOST_ROWS = 14;

export function Editor({ label, text, save, done, nameLabel }: Props) {
  const id = useId();
  const field = useRef<HTMLTextAreaElement>(null);
  const name = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState("");
  const [isSaving, setSaving] = useState(false);
  useEffect(() => (name.current ?? field.current)!.focus(), []);
  const submit = async (event: Event) => {
    event.preventDefault();
    setSaving(true);
    const wrong = await save(field.current!.value, name.current?.value.trim() ?? "");
    setSaving(false);
    setProblem(wrong);
    if (!wrong) done();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // it ends the edit, nothing around it
    event.stopPropagation();
    done();
  };
  const rows = Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, text.split("\n").length + 1));
  return (
    <form class="editor" onSubmit={submit} onKeyDown={onKeyDown}>
      {nameLabel && (
        <>
          <label for={`${id}-name`} class="field-label">{nameLabel}</label>
          <input
            id={`${id}-name`}
            ref={name}
            class="field"
            type="text"
            required
            maxLength={200}
            pattern="[^\/]+"
            title={t("common.no-slash")}
          />
        </>
      )}
      <label for={id} class="field-label">{label}</label>
      <textarea id={id} ref={field} class="field" rows={rows} dir="auto" defaultValue={text} />
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isSaving}>{t("common.save")}</button>
        <button type="button" class="button" onClick={done}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}
