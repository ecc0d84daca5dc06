// Which project conversations go into.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Icon } from "../ui/icon.tsx";
import { Dialog } from "./dialog.tsx";

export function MoveToProject({ projects, count, current, close }: DialogProps<"move-to-project">) {
  const [chosen, choose] = useState<string | null | undefined>(current);
  const isSame = chosen === undefined || chosen === current;
  const option = (id: string | null, name: string, colour = "") => (
    <label key={id} class="ticked project-option">
      <input
        type="radio"
        class="tick"
        name="project"
        checked={chosen === id}
        onChange={() => choose(id)}
      />
      {colour && <span class="project-dot" data-colour={colour} />}
      <span dir="auto">{name}</span>
    </label>
  );
  return (
    <Dialog
      title={t("projects.move-title", { count })}
      actions={<button type="submit" class="button is-primary" disabled={isSame}>{t("projects.move")}</button>}
      onSubmit={() => !isSame && close({ id: chosen, isNew: false })}
      close={close}
    >
      <fieldset class="tools-levels">
        <legend class="visually-hidden">{t("list.projects")}</legend>
        {projects.map(({ id, name, colour }) => option(id, name, colour))}
        {option(null, t("projects.none"))}
      </fieldset>
      <p>
        <button type="button" class="quiet project-make" onClick={() => close({ id: null, isNew: true })}>
          <Icon name="plus" />
          {t("projects.move-new")}
        </button>
      </p>
    </Dialog>
  );
}
