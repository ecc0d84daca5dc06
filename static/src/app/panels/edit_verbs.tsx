// The two buttons below a remembered text.

import type { Ref } from "preact";
import { t } from "../lib/i18n.ts";

interface Props {
  /** Of the text, for their names. */
  label: string;
  /** The button that gets the focus back after editing. */
  editButton: Ref<HTMLButtonElement>;
  /** Nothing where it cannot be done. */
  edit: (() => void) | null;
  remove: (() => void) | null;
  /** There is no text yet. */
  isEmpty?: boolean;
}

export function EditVerbs({ label, editButton, edit, remove, isEmpty = false }: Props) {
  if (!edit && !remove) return null;
  return (
    <p class="block-buttons">
      {edit && (
        <button
          type="button"
          class="quiet"
          ref={editButton}
          aria-label={t(isEmpty ? "memory.begin-label" : "memory.edit-label", { label })}
          onClick={edit}
        >
          {t(isEmpty ? "memory.begin" : "common.edit")}
        </button>
      )}
      {remove && (
        <button type="button" class="quiet" aria-label={t("memory.delete-label", { label })} onClick={remove}>
          {t("common.delete")}
        </button>
      )}
    </p>
  );
}
