// What changed in the files: by answers, or against the last commit where the files are those of a repository.

import { useEffect, useRef } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { FilesApi } from "../net/files_api.ts";
import type { Conversation } from "../store/conversation.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { FileChanges } from "./file_changes.tsx";
import { RepositoryChanges } from "./repository_changes.tsx";

interface Props {
  conversation: Conversation;
  api: FilesApi;
  /** Empty for all turns of the conversation. */
  turnIds: readonly string[];
  canWrite: boolean;
  hasRepository: boolean;
  open: (path: string) => void;
  close: () => void;
}

export function FileReview({ hasRepository, close, ...props }: Props) {
  const { files: place } = useApp();
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => back.current?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    event.preventDefault();
    close();
  };
  const isRepository = hasRepository && place.isRepository;
  return (
    <div class="file-view" onKeyDown={onKeyDown}>
      <div class="file-head">
        <button type="button" class="quiet" ref={back} onClick={close}>
          <Icon name="back" />
          {t("files.all-files")}
        </button>
      </div>
      <h2 class="file-title">{t("files.changes")}</h2>
      {hasRepository && <Source isRepository={isRepository} choose={(chosen) => place.setRepository(chosen)} />}
      {isRepository ? <RepositoryChanges {...props} /> : <FileChanges {...props} />}
    </div>
  );
}

function Source({ isRepository, choose }: { isRepository: boolean; choose: (isRepository: boolean) => void }) {
  const option = (value: boolean, label: string) => (
    <label class="segment">
      <input type="radio" name="review-source" checked={isRepository === value} onChange={() => choose(value)} />
      <span>{label}</span>
    </label>
  );
  return (
    <fieldset class="review-source">
      <legend class="visually-hidden">{t("repository.source")}</legend>
      <div class="segment-row">
        {option(false, t("repository.answers"))}
        {option(true, t("repository.repository"))}
      </div>
    </fieldset>
  );
}
