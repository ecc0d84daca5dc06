// What stood in a file before answers changed it: a list, and one of them as text or as what it describes.

import { useEffect, useState } from "preact/hooks";
import { fileSize, fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { languageOf } from "../lib/language_of.ts";
import { kindOfFile } from "../lib/preview_kinds.ts";
import { fileText } from "../lib/readable.ts";
import { messageOf } from "../net/api.ts";
import type { FilesApi, KeptVersion } from "../net/files_api.ts";
import type { Conversation } from "../store/conversation.ts";
import { Icon } from "../ui/icon.tsx";
import { Lines } from "../ui/lines.tsx";
import { Problem } from "../ui/problem.tsx";
import { Failure } from "./panel.tsx";
import { type Face, Faces, Preview } from "./preview_view.tsx";
import { useReading } from "../ui/reading.ts";

interface Props {
  conversation: Conversation;
  path: string;
  name: string;
  api: FilesApi;
}

export function FileVersions({ conversation, path, name, api }: Props) {
  const reading = useReading(conversation, (signal) => api.versions(path, signal));
  const [chosen, choose] = useState<KeptVersion | null>(null);
  if (chosen) return <Version version={chosen} path={path} name={name} api={api} close={() => choose(null)} />;
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("common.loading")}</p>;
  }
  if (!reading.value.length) return <p class="muted">{t("previews.no-versions")}</p>;
  return (
    <ol class="versions">
      {reading.value.map((version) => (
        <li key={version.id}>
          <button
            type="button"
            class="version"
            disabled={!version.is_kept}
            title={fullTime(version.replaced_at)}
            onClick={() => choose(version)}
          >
            <span>{t("previews.before", { when: timeLabel(version.replaced_at) })}</span>
            <span class="muted">{version.is_kept ? fileSize(version.size) : t("previews.version-gone")}</span>
          </button>
        </li>
      ))}
    </ol>
  );
}

function Version({ version, path, name, api, close }: {
  version: KeptVersion;
  path: string;
  name: string;
  api: FilesApi;
  close: () => void;
}) {
  const kind = kindOfFile(name);
  const [face, setFace] = useState<Face>(kind ? "preview" : "source");
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    api.version(path, version.id, abort.signal)
      .then(setText, (error) => abort.signal.aborted || setProblem(messageOf(error)));
    return () => abort.abort();
  }, [version.id]);
  return (
    <>
      <p class="panel-line">
        <span>{t("previews.before", { when: timeLabel(version.replaced_at) })}</span>
        <button type="button" class="quiet" onClick={close}>
          <Icon name="back" />
          {t("previews.versions")}
        </button>
      </p>
      {kind && <Faces of={["preview", "source"]} face={face} choose={setFace} />}
      <Problem text={problem} />
      {text === null && !problem && <p class="muted">{t("common.loading")}</p>}
      {text !== null && (face === "preview" && kind ? <Preview kind={kind} text={text} name={name} /> : (
        <Lines
          text={fileText(text)}
          label={t("files.content-of", { name })}
          language={languageOf(name)}
          firstLine={1}
          class="is-file"
        />
      ))}
    </>
  );
}
