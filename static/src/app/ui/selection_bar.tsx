// What one can do with the conversations that are selected in the list.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { moveSelected } from "../store/projects.ts";
import { useApp } from "./context.ts";
import { IconButton } from "./icon.tsx";

export function SelectionBar() {
  const app = useApp();
  const selection = follow(app.selection);
  const { isArchive } = follow(app.list);
  const { count } = selection;
  return (
    <div id="selection-bar" class="selection-bar" role="toolbar" aria-label={t("selection.verbs")}>
      <p role="status">{t("selection.count", { count })}</p>
      <div class="selection-verbs">
        <IconButton
          icon="box"
          label={t(isArchive ? "selection.restore-selected" : "selection.archive-selected")}
          onClick={() => void selection.archive(!isArchive)}
        />
        {!isArchive && (
          <IconButton
            icon="folder"
            label={t("selection.move-selected")}
            onClick={() => void moveSelected(app)}
          />
        )}
        <IconButton icon="save" label={t("selection.export-selected")} onClick={() => void selection.save()} />
        <IconButton icon="bin" label={t("selection.delete-selected")} onClick={() => void selection.remove()} />
        <IconButton icon="close" label={t("selection.select-none")} onClick={() => selection.clear()} />
      </div>
    </div>
  );
}
