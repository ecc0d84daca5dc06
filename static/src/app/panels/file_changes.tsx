// What an answer has changed: each file with the changes of its calls.

import { useEffect, useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { ChangedFile } from "../store/changed_files.ts";
import { kindOf } from "../store/tool_kinds.ts";
import { ChangesOf } from "../ui/calls/file_calls.tsx";
import { Icon } from "../ui/icon.tsx";

const FATES = { created: "files.created", updated: "files.updated", deleted: "files.deleted" } as const;

interface Props {
  changes: readonly ChangedFile[];
  open: (path: string) => void;
  close: () => void;
}

export function FileChanges({ changes, open, close }: Props) {
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => back.current?.focus(), [changes]);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  return (
    <div class="file-view" onKeyDown={onKeyDown}>
      <div class="file-head">
        <button type="button" class="quiet" ref={back} onClick={close}>
          <Icon name="back" />
          {t("files.all-files")}
        </button>
      </div>
      <h2 class="file-title">{t("files.changes")}</h2>
      {changes.map((change) => <Change key={change.path} change={change} open={open} />)}
    </div>
  );
}

function Change({ change: { path, fate, calls }, open }: { change: ChangedFile; open: (path: string) => void }) {
  const shown = calls.filter((call) => ["write", "edit"].includes(kindOf(call) ?? ""));
  return (
    <details class="changed-file" open>
      <summary>
        <bdi>{withoutTricks(path)}</bdi> <span class="muted">{t(FATES[fate])}</span>
      </summary>
      {shown.map((call) => <ChangesOf key={call.toolCallId} part={call} />)}
      {shown.length < calls.length && fate !== "deleted" && <p class="muted">{t("files.changed-by-script")}</p>}
      {fate !== "deleted" && (
        <p>
          <button type="button" class="quiet" aria-label={t("files.show", { name: path })} onClick={() => open(path)}>
            {t("files.show-file")}
          </button>
        </p>
      )}
    </details>
  );
}
