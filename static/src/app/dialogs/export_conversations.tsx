// Conversations as a file: for this product, to read, or for another one. Each format says what it does not have.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

const FORMATS = [
  ["jsonl", "exports.jsonl", "exports.jsonl-has"],
  ["markdown", "exports.markdown", "exports.markdown-has"],
  ["open-webui", "exports.open-webui", "exports.open-webui-has"],
  ["librechat", "exports.librechat", "exports.librechat-has"],
] as const;

export function ExportConversations({ api, sessionId, title, ids = [], close }: DialogProps<"export-conversations">) {
  const [format, setFormat] = useState<string>(FORMATS[0][0]);
  const address = sessionId ? api.exportAddress(sessionId, format) : api.exportAllAddress(format, ids);
  return (
    <Dialog
      title={titleFor(sessionId, title, ids.length)}
      actions={
        <a class="button is-primary" href={address} download="" onClick={() => close(true)}>{t("exports.save")}</a>
      }
      close={close}
    >
      <fieldset class="export-formats">
        <legend class="visually-hidden">{t("exports.format")}</legend>
        {FORMATS.map(([value, name, has]) => (
          <label key={value}>
            <input
              type="radio"
              name="format"
              value={value}
              checked={value === format}
              onChange={() => setFormat(value)}
            />
            <span>
              {t(name)}
              <span class="muted">{t(has)}</span>
            </span>
          </label>
        ))}
      </fieldset>
      {!sessionId && !ids.length && <p class="muted">{t("exports.all-help")}</p>}
    </Dialog>
  );
}

function titleFor(sessionId: string, name: string, count: number): string {
  if (sessionId) return t("exports.title-of", { name });
  return count ? t("exports.title-some", { count }) : t("exports.title-all");
}
