// How the files of a repository differ from its last commit, as git on the server has it. The list is read when it is shown, the
// difference of a file when that is opened.

import { useState } from "preact/hooks";
import { diffLines } from "../lib/diff.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { FilesApi, RepositoryChange, RepositoryState } from "../net/files_api.ts";
import type { Conversation } from "../store/conversation.ts";
import { fateOf, markOf, shortCommit } from "../store/repository_facts.ts";
import { CountedDiff } from "../ui/diff.tsx";
import { Icon } from "../ui/icon.tsx";
import { useReading } from "../ui/reading.ts";
import { ShowFile } from "./file_changes.tsx";
import { Failure } from "./panel.tsx";

interface Props {
  conversation: Conversation;
  api: FilesApi;
  open: (path: string) => void;
}

export function RepositoryChanges({ conversation, api, open }: Props) {
  const reading = useReading(conversation, api.repository);
  const [round, setRound] = useState(0); // the differences that are open are read again with the list
  const again = () => {
    setRound(round + 1);
    return reading.again();
  };
  const state = reading.value;
  if (reading.error) return <Failure text={reading.error} again={again} />;
  if (!state) return <p class="muted" role="status">{t("repository.loading")}</p>;
  return (
    <div>
      <Facts state={state} />
      <div class="review-summary">
        <p class="muted" role="status">
          {state.changes.length ? t("repository.count", { count: state.changes.length }) : t("repository.clean")}
        </p>
        <p class="review-verbs">
          <button type="button" class="button" onClick={again}>{t("repository.again")}</button>
          {state.changes.length > 0 && (
            <a class="button" href={api.repositoryPatchAddress} download="">
              <Icon name="save" />
              {t("repository.export")}
            </a>
          )}
        </p>
      </div>
      {state.changes.map((change) => (
        <Change
          key={change.path}
          conversation={conversation}
          change={change}
          round={round}
          api={api}
          open={open}
        />
      ))}
      {state.has_more && <p class="muted">{t("repository.more", { count: state.changes.length })}</p>}
    </div>
  );
}

function Facts({ state: { branch, commit } }: { state: RepositoryState }) {
  return (
    <dl class="repository-facts">
      <dt>{t("repository.branch")}</dt>
      <dd>{branch ? <bdi>{withoutTricks(branch)}</bdi> : <span class="muted">{t("repository.no-branch")}</span>}</dd>
      <dt>{t("repository.commit")}</dt>
      <dd>
        {commit
          ? <code title={commit}>{shortCommit(commit)}</code>
          : <span class="muted">{t("repository.no-commit")}</span>}
      </dd>
    </dl>
  );
}

interface ChangeProps extends Props {
  change: RepositoryChange;
  round: number;
}

function Change({ conversation, change, round, api, open }: ChangeProps) {
  const [isOpen, setOpen] = useState(false);
  const { path, kind } = change;
  const mark = markOf(change);
  return (
    <details class="changed-file" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <bdi>{withoutTricks(path)}</bdi> <span class="muted">{fateOf(change)}</span>
        {mark && <span class="review-mark">{mark}</span>}
      </summary>
      {isOpen && <Difference key={round} conversation={conversation} change={change} api={api} />}
      {kind !== "deleted" && (
        <p class="review-verbs">
          <ShowFile path={path} open={open} />
        </p>
      )}
    </details>
  );
}

function Difference({ conversation, change, api }: Pick<ChangeProps, "conversation" | "change" | "api">) {
  const reading = useReading(conversation, (signal) => api.repositoryDifference(change, signal));
  const found = reading.value;
  if (reading.error) return <Failure text={reading.error} again={() => reading.again()} />;
  if (!found) return <p class="muted" role="status">{t("repository.loading-file")}</p>;
  if (!found.diff) {
    return <p class="muted tool-note">{t(found.is_cut ? "files.change-too-large" : "files.change-not-shown")}</p>;
  }
  return <CountedDiff path={change.path} lines={diffLines(found.diff)} added={found.added} removed={found.removed} />;
}
