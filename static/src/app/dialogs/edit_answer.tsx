// Another text in the place of an answer. Nothing is overwritten: it becomes a version, chosen or not.

import { useEffect, useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

/** `continues`: the conversation goes on from the new version. */
export function EditAnswer({ text, isLast, close }: DialogProps<"edit-answer">) {
  const input = useRef<HTMLTextAreaElement>(null);
  useEffect(() => {
    input.current!.setSelectionRange(0, 0);
    input.current!.scrollTop = 0;
  }, []);
  const answer = (continues: boolean) => {
    const written = input.current!.value.trim();
    if (written) close({ text: written, continues });
  };
  const actions = (
    <>
      {!isLast && <button type="button" class="button" onClick={() => answer(false)}>{t("answer.save-version")}
      </button>}
      <button type="submit" class="button is-primary">
        {isLast ? t("common.save") : t("answer.save-and-continue")}
      </button>
    </>
  );
  return (
    <Dialog title={t("answer.edit-answer")} actions={actions} onSubmit={() => answer(true)} close={close} isWide>
      <p class="muted">{isLast ? t("answer.edit-last") : t("answer.edit-inner")}</p>
      <p>
        <textarea ref={input} rows={12} required aria-label={t("message.answer")} dir="auto" defaultValue={text} />
      </p>
    </Dialog>
  );
}
