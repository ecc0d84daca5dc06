// One file: what is in it, as text with its colours, as a picture, or as something to save; and changing it.

import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { fileSize, fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { languageOf } from "../lib/language_of.ts";
import { kindOfFile, type PreviewKind } from "../lib/preview_kinds.ts";
import { fileText, withoutTricks } from "../lib/readable.ts";
import { ApiError, messageOf } from "../net/api.ts";
import type { FileEntry, FilesApi } from "../net/files_api.ts";
import { FileText } from "../store/file_text.ts";
import type { Conversation } from "../store/conversation.ts";
import { useApp } from "../ui/context.ts";
import { Icon, IconButton } from "../ui/icon.tsx";
import { Lines } from "../ui/lines.tsx";
import type { FileActions } from "./file_actions.ts";
import type { ShownPicture } from "../store/dialog_kinds.ts";
import { FilePreview } from "./file_preview.tsx";
import { FileVersions } from "./file_versions.tsx";
import { FileEditor } from "./file_editor.tsx";
import { Failure } from "./panel.tsx";
import { type Face, Faces } from "./preview_view.tsx";
import { useReading } from "../ui/reading.ts";

const PDF = "application/pdf";
const PICTURE = /^image\/(png|jpeg|gif|webp|avif)$/;
const WRITTEN: ReadonlySet<PreviewKind> = new Set(["markdown", "csv"]); // one reads and edits these as they are
const LARGEST_TO_EDIT = 1_000_000; // bytes

interface Props {
  conversation: Conversation;
  path: string;
  api: FilesApi;
  actions: FileActions;
  canWrite: boolean;
  close: () => void;
}

export function FileView({ conversation, path, api, actions, canWrite, close }: Props) {
  const { files: place } = useApp();
  const { id } = conversation.instance;
  const reading = useReading(conversation, async (signal) => {
    try {
      return { entry: await api.entry(path, signal) };
    } catch (error) {
      if (error instanceof ApiError && error.status === 404) return { entry: null };
      throw error;
    }
  });
  const [isEditing, setEditing] = useState(() => place.draft(id, path) !== null);
  const back = useRef<HTMLButtonElement>(null);
  useEffect(() => back.current?.focus(), []);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented || isEditing) return;
    event.preventDefault();
    close();
  };
  const entry = reading.value?.entry ?? null;
  const name = path.slice(path.lastIndexOf("/") + 1);
  return (
    <div class="file-view" onKeyDown={onKeyDown}>
      <FileHead entry={entry} path={path} api={api} actions={actions} canWrite={canWrite} close={close} back={back} />
      <h2 class="file-title">
        <bdi>{withoutTricks(path)}</bdi>
      </h2>
      {entry && entry.kind === "file" && (
        <p class="muted" title={fullTime(entry.modified_at)}>
          {t("files.modified", { size: fileSize(entry.size), when: timeLabel(entry.modified_at) })}
        </p>
      )}
      {reading.error && <Failure text={reading.error} again={() => reading.again()} />}
      {reading.value === null && !reading.error && <p class="muted">{t("common.loading")}</p>}
      {reading.value && !entry && !isEditing && <p role="alert">{t("files.missing")}</p>}
      {entry?.kind === "directory" && <p>{t("files.is-directory")}</p>}
      {reading.value && (entry?.kind === "file" || (!entry && isEditing)) && (
        <Content
          key={PICTURE.test(entry?.media_type ?? "") ? "picture" : "text"}
          conversation={conversation}
          entry={entry}
          instanceId={id}
          path={path}
          name={name}
          api={api}
          actions={actions}
          canWrite={canWrite}
          isEditing={isEditing}
          setEditing={setEditing}
          again={() => reading.again()}
        />
      )}
    </div>
  );
}

interface HeadProps extends Omit<Props, "conversation"> {
  entry: FileEntry | null;
  back: RefObject<HTMLButtonElement | null>;
}

function FileHead({ entry, path, api, actions, canWrite, close, back }: HeadProps) {
  const remove = async () => {
    if (entry && await actions.remove(entry)) close();
  };
  return (
    <div class="file-head">
      <button type="button" class="quiet" ref={back} onClick={close}>
        <Icon name="back" />
        {t("files.all-files")}
      </button>
      {entry && entry.kind !== "directory" && (
        <a
          class="icon-button"
          href={api.contentAddress(path, { isDownload: true })}
          download=""
          aria-label={t("files.save-file")}
          title={t("files.save-file")}
        >
          <Icon name="save" />
        </a>
      )}
      {entry?.kind === "file" && (
        <IconButton
          icon="copy"
          label={t("files.copy-content")}
          onClick={() => actions.copyContent(path)}
        />
      )}
      {entry && <IconButton icon="link" label={t("files.copy-path")} onClick={() => actions.copyPath(path)} />}
      {entry && canWrite && <IconButton icon="bin" label={t("common.delete")} onClick={remove} />}
    </div>
  );
}

interface ContentProps {
  conversation: Conversation;
  entry: FileEntry | null;
  instanceId: string;
  path: string;
  name: string;
  api: FilesApi;
  actions: FileActions;
  canWrite: boolean;
  isEditing: boolean;
  setEditing: (isEditing: boolean) => void;
  again: () => Promise<void>;
}

function Content(props: ContentProps) {
  const { entry, path, name, api } = props;
  if (entry && PICTURE.test(entry.media_type)) {
    const address = api.contentAddress(path, { version: entry.version });
    return <Enlargeable src={address} href={api.contentAddress(path, { isDownload: true })} name={name} />;
  }
  if (entry?.media_type === PDF) {
    return (
      <p class="panel-actions">
        <a class="button" href={api.contentAddress(path, { version: entry.version })} target="_blank" rel="noopener">
          <Icon name="file" />
          {t("previews.open-pdf")}
        </a>
      </p>
    );
  }
  return <Faced {...props} />;
}

/** A picture that a press shows over the whole page. */
function Enlargeable(picture: ShownPicture) {
  const { dialogs } = useApp();
  const enlarge = () => dialogs.ask("picture", { pictures: [picture], first: 0 });
  const { src, name } = picture;
  return (
    <button type="button" class="picture-button" aria-label={t("pictures.enlarge", { name })} onClick={enlarge}>
      <img class="file-picture" src={src} alt={t("files.picture-of", { name })} />
    </button>
  );
}

/** A text: as what it describes where that is possible, as it is written, and as it was before answers changed it. */
function Faced(props: ContentProps) {
  const { entry, path, name, api, isEditing } = props;
  const kind = kindOfFile(name);
  const [face, setFace] = useState<Face>(kind && !WRITTEN.has(kind) && !isEditing ? "preview" : "source");
  if (!entry || isEditing) return <Text {...props} />;
  return (
    <>
      <Faces of={kind ? ["preview", "source", "versions"] : ["source", "versions"]} face={face} choose={setFace} />
      {kind && face === "preview" && <FilePreview kind={kind} entry={entry} api={api} name={name} />}
      {face === "source" && <Text {...props} />}
      {face === "versions" && <FileVersions conversation={props.conversation} path={path} name={name} api={api} />}
    </>
  );
}

function Text(props: ContentProps) {
  const { entry, instanceId, path, name, api, actions, canWrite, isEditing, setEditing, again } = props;
  const [file, setFile] = useState<FileText | null>(null);
  const [problem, setProblem] = useState("");
  const version = entry?.version ?? "";
  useEffect(() => {
    if (!entry) return;
    const abort = new AbortController();
    FileText.open(api, entry, abort.signal).then(
      (made) => {
        setFile(made);
        setProblem("");
      },
      (error) => abort.signal.aborted || setProblem(messageOf(error)),
    );
    return () => abort.abort();
  }, [version]);
  const edit = useRef<HTMLButtonElement>(null);
  const done = () => {
    setEditing(false);
    again();
    setTimeout(() => edit.current?.focus());
  };
  if (problem) return <Failure text={problem} again={again} />;
  if (isEditing && (file || !entry)) {
    return (
      <FileEditor
        file={file?.version === version ? file : null}
        present={entry}
        instanceId={instanceId}
        path={path}
        api={api}
        actions={actions}
        done={done}
      />
    );
  }
  if (!file) return <p class="muted">{t("common.loading")}</p>;
  if (file.text === null) return <p>{t("files.binary")}</p>;
  const isSmall = (entry?.size ?? 0) <= LARGEST_TO_EDIT;
  const isEditable = canWrite && isSmall && file.canBeSaved;
  const readOn = async () => {
    try {
      setFile(await file.more(api));
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <>
      {file.encoding && (
        <p class="muted">
          {t(file.canBeSaved ? "files.other-encoding" : "files.kept-encoding", { encoding: file.encoding })}
        </p>
      )}
      {isEditable && !file.hasMixedEnds && (
        <p class="panel-actions">
          <button type="button" class="button" ref={edit} onClick={() => setEditing(true)}>
            <Icon name="edit" />
            {t("common.edit")}
          </button>
        </p>
      )}
      {canWrite && !isSmall && <p class="muted">{t("files.too-large-to-edit")}</p>}
      {isEditable && file.hasMixedEnds && <p class="muted">{t("files.mixed-ends")}</p>}
      {file.text === "" ? <p class="muted">{t("files.no-content")}</p> : (
        <Lines
          text={fileText(file.text)}
          label={t("files.content-of", { name })}
          language={languageOf(name)}
          firstLine={1}
          class="is-file"
        />
      )}
      {!file.isWhole && <button type="button" class="button" onClick={readOn}>{t("files.read-on")}</button>}
    </>
  );
}
