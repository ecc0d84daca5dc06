// What is shown in the place of an editor when another change came in between: both texts, and the person decides.

import { useEffect, useRef } from "preact/hooks";
import type { DiffLine } from "../lib/diff.ts";
import { t } from "../lib/i18n.ts";
import { DiffView } from "../ui/diff.tsx";
import { Problem } from "../ui/problem.tsx";

interface Props {
  title: string;
  text: string;
  /** The way from what is stored to what the person wrote. */
  diffs: { lines: DiffLine[]; label: string }[];
  /** Said where there is no difference to show. */
  nothing: string;
  problem: string;
  isSaving: boolean;
  keepMine: () => void;
  takeTheirs: () => void;
  cancel: () => void;
}

export function ConflictView(
  { title, text, diffs, nothing, problem, isSaving, keepMine, takeTheirs, cancel }: Props,
) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => heading.current?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape") return;
    event.preventDefault(); // back to the text: nothing around it is closed
    event.stopPropagation();
    cancel();
  };
  return (
    <section class="conflict" aria-label={title} onKeyDown={onKeyDown}>
      <h3 ref={heading} tabIndex={-1}>{title}</h3>
      <p class="muted">{text}</p>
      {diffs.map(({ lines, label }) => <DiffView key={label} lines={lines} label={label} />)}
      {diffs.length === 0 && nothing && <p>{nothing}</p>}
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="button" class="button is-primary" disabled={isSaving} onClick={keepMine}>
          {t("files.keep-mine")}
        </button>
        <button type="button" class="button" onClick={takeTheirs}>{t("files.take-theirs")}</button>
        <button type="button" class="button" onClick={cancel}>{t("common.cancel")}</button>
      </p>
    </section>
  );
}
