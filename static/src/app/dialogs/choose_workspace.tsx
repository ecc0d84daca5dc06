// Which workspace a thread works on.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Dialog } from "./dialog.tsx";

export function ChooseWorkspace({ workspaces, current, thread, close }: DialogProps<"choose-workspace">) {
  const [chosen, choose] = useState(current);
  return (
    <Dialog
      title={t("threads.move-title", { title: thread })}
      actions={<button type="submit" class="button is-primary">{t("threads.use")}</button>}
      onSubmit={() => close({ id: chosen })}
      close={close}
    >
      <fieldset class="tools-levels">
        <legend class="visually-hidden">{t("threads.workspace")}</legend>
        {[...workspaces, { id: "", name: t("threads.no-workspace") }].map(({ id, name }) => (
          <label key={id} class="ticked">
            <input
              type="radio"
              class="tick"
              name="workspace"
              checked={chosen === id}
              onChange={() =>
                choose(id)}
            />
            <span dir="auto">{name}</span>
          </label>
        ))}
      </fieldset>
      <p class="muted">{t(chosen ? "threads.about" : "threads.none-here")}</p>
    </Dialog>
  );
}
