// Files on their way: how far each has come, and why one did not arrive.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { FileUploads } from "../store/file_uploads.ts";
import { IconButton } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";

export function UploadList({ uploads }: { uploads: FileUploads }) {
  const { items } = follow(uploads);
  if (!items.length) return null;
  return (
    <ul class="uploads" aria-label={t("files.uploads")}>
      {items.map(({ id, name, state, progress, error }) => (
        <li key={id}>
          <bdi class="upload-name">{name}</bdi>
          <IconButton
            icon="close"
            label={t(state === "failed" ? "common.dismiss" : "files.stop-upload", { name })}
            onClick={() => uploads.remove(id)}
          />
          {state === "failed"
            ? <Problem text={error} />
            : <progress max={1} value={progress} aria-label={t("files.uploading", { name })} />}
        </li>
      ))}
    </ul>
  );
}
