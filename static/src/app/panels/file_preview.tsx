// A file of the workspace as what it describes.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { PreviewKind } from "../lib/preview_kinds.ts";
import { messageOf } from "../net/api.ts";
import type { FileEntry, FilesApi } from "../net/files_api.ts";
import { FileText } from "../store/file_text.ts";
import { Preview } from "./preview_view.tsx";
import { Problem } from "../ui/problem.tsx";

const MOST = 5_000_000; // characters

/** As much of a text as is previewed. Throws an `ApiError`. */
async function wholeText(api: FilesApi, entry: FileEntry, signal: AbortSignal): Promise<FileText> {
  let file = await FileText.open(api, entry, signal);
  while (!file.isWhole && file.text !== null && file.text.length < MOST && !signal.aborted) file = await file.more(api);
  return file;
}

interface Props {
  kind: PreviewKind;
  entry: FileEntry;
  name: string;
  api: FilesApi;
}

export function FilePreview({ kind, entry, name, api }: Props) {
  const [file, setFile] = useState<FileText | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    wholeText(api, entry, abort.signal).then(
      (made) => {
        if (abort.signal.aborted) return;
        setFile(made);
        setProblem("");
      },
      (error) => abort.signal.aborted || setProblem(messageOf(error)),
    );
    return () => abort.abort();
  }, [entry.version]);
  if (problem) return <Problem text={problem} />;
  if (!file) return <p class="muted">{t("common.loading")}</p>;
  if (file.text === null) return <p>{t("files.binary")}</p>;
  return (
    <>
      {!file.isWhole && <p class="muted">{t("previews.large")}</p>}
      <Preview kind={kind} text={file.text} name={name} />
    </>
  );
}
