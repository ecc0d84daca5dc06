// Which model answers again. The conversation goes on with it.

import { useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

export function ChooseModel({ models, current, close }: DialogProps<"choose-model">) {
  const select = useRef<HTMLSelectElement>(null);
  const others = models.filter(({ name }) => name !== current);
  return (
    <Dialog
      title={t("feedback.other-model")}
      actions={<button type="submit" class="button is-primary">{t("message.again")}</button>}
      onSubmit={() => close(select.current!.value)}
      close={close}
    >
      <p class="muted">{t("feedback.other-model-about")}</p>
      <p>
        <select ref={select} class="field" aria-label={t("models.choose")}>
          {others.map(({ name, title }) => <option key={name} value={name}>{title || name}</option>)}
        </select>
      </p>
    </Dialog>
  );
}
