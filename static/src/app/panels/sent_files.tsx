// The files in the messages of the conversation, above its workspace: each opens, and can be copied into the workspace.

import { useState } from "preact/hooks";
import { fileSize } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { FilesApi, SentFile } from "../net/files_api.ts";
import type { Conversation } from "../store/conversation.ts";
import type { FileTree } from "../store/file_tree.ts";
import { useApp } from "../ui/context.ts";
import { Icon, IconButton } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { useReading } from "../ui/reading.ts";

interface Props {
  conversation: Conversation;
  api: FilesApi;
  tree: FileTree;
  canWrite: boolean;
}

const FEW = 5;

export function SentFiles({ conversation, api, tree, canWrite }: Props) {
  const { notices } = useApp();
  const [isWhole, setWhole] = useState(false);
  const [busy, setBusy] = useState("");
  const { value, error } = useReading(conversation, (signal) => api.sent(signal));
  if (error) return <Problem text={error} />;
  if (!value?.length) return null;
  const copy = async (file: SentFile) => {
    setBusy(file.id);
    try {
      const { path } = await api.copySent(file.id);
      await tree.reveal(path);
      notices.show(t("files.copied-to", { path }));
    } catch (failure) {
      notices.fail(failure);
    }
    setBusy("");
  };
  const shown = isWhole ? value : value.slice(0, FEW);
  return (
    <section class="sent-files" aria-labelledby="sent-files">
      <h2 id="sent-files">{t("files.from-messages")}</h2>
      <ul>
        {shown.map((file) => (
          <li key={file.id} class="sent-file">
            <Icon name="clip" />
            <a href={file.url} target="_blank" rel="noopener noreferrer" dir="auto">{withoutTricks(file.name)}</a>
            <span class="muted">{fileSize(file.byte_size)}</span>
            {canWrite && (
              <IconButton
                icon="copy"
                label={t("files.copy-to-workspace", { name: withoutTricks(file.name) })}
                disabled={busy === file.id}
                onClick={() => copy(file)}
              />
            )}
          </li>
        ))}
      </ul>
      {shown.length < value.length && (
        <button type="button" class="quiet" onClick={() => setWhole(true)}>
          {t("files.all-sent", { count: value.length })}
        </button>
      )}
      <h2>{t("files.workspace")}</h2>
    </section>
  );
}
