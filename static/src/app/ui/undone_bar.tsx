// Above the message field, after an undo: what was taken back, and the way to bring it back.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Instance } from "../store/types.ts";
import { useApp } from "./context.ts";

export function UndoneBar() {
  const { undoing, conversation } = useApp();
  const { last } = follow(undoing);
  const { isReadOnly } = follow(conversation).instance;
  if (!last) return null;
  return (
    <section class="undone-bar" aria-label={t("undo.bar-label")}>
      <div>
        <p role="status">{textOf(last)}</p>
        {!isReadOnly && (
          <button type="button" class="button" onClick={() => undoing.redo()}>{t("undo.bar-redo")}</button>
        )}
      </div>
    </section>
  );
}

function textOf({ file_count: count, includes_messages: isOfMessages }: NonNullable<Instance["undone"]>): string {
  if (!isOfMessages) return t("undo.bar-files", { count });
  return count ? t("undo.bar-both", { count }) : t("undo.bar-messages");
}
