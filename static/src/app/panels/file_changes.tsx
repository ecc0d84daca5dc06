// What an answer has changed: each file as it was and as it became, whatever changed it. Read when it is opened.

import { useEffect, useRef } from "preact/hooks";
import { diffLines } from "../lib/diff.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { type ChangedFile, joined, type TurnFile } from "../store/changed_files.ts";
import type { FilesApi } from "../net/files_api.ts";
import type { Conversation } from "../store/conversation.ts";
import { CountedDiff } from "../ui/diff.tsx";
import { Icon } from "../ui/icon.tsx";
import { Failure } from "./panel.tsx";
import { useReading } from "./reading.ts";

interface Props {
  conversation: Conversation;
  api: FilesApi;
  turnIds: readonly string[];
  open: (path: string) => void;
  close: () => void;
}

export function FileChanges({ conversation, api, turnIds, open, close }: Props) {
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => back.current?.focus(), []);
  const reading = useReading(conversation, (signal) => Promise.all(turnIds.map((id) => api.turn(id, signal))));
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  const changes = reading.value && joined(reading.value.map((turn) => turn.items));
  return (
    <div class="file-view" onKeyDown={onKeyDown}>
      <div class="file-head">
        <button type="button" class="quiet" ref={back} onClick={close}>
          <Icon name="back" />
          {t("files.all-files")}
        </button>
      </div>
      <h2 class="file-title">{t("files.changes")}</h2>
      {reading.error && <Failure text={reading.error} again={() => reading.again()} />}
      {!changes && !reading.error && <p class="muted" role="status">{t("files.loading")}</p>}
      {changes?.length === 0 && <p class="muted">{t("files.changes-gone")}</p>}
      {changes?.map((change) => <Change key={change.path} change={change} open={open} />)}
      {reading.value?.some((turn) => turn.has_more) && <p class="muted">{t("files.changes-more")}</p>}
    </div>
  );
}

const FATES = { created: "files.created", updated: "files.updated", deleted: "files.deleted" } as const;

function Change({ change: { path, fate, changes }, open }: { change: ChangedFile; open: (path: string) => void }) {
  return (
    <details class="changed-file" open>
      <summary>
        <bdi>{withoutTricks(path)}</bdi> <span class="muted">{t(FATES[fate])}</span>
      </summary>
      {changes.map((item, index) => <Difference key={index} item={item} />)}
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

function Difference({ item: { path, kind, diff, added, removed, is_cut } }: { item: TurnFile }) {
  if (!diff) return <p class="muted">{t(is_cut ? "files.change-too-large" : "files.change-not-shown")}</p>;
  const lines = diffLines(diff).filter((line) => kind === "updated" || line.kind !== "place"); // a whole text begins at its beginning
  return <CountedDiff path={path} lines={lines} added={added} removed={removed} />;
}
