// Changing the text of a file. It is stored only where no other change came in between; else both texts are compared and the
// person decides. What is not stored yet stays until it is given up (`store/files_place.ts`).

import type { RefObject } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type DiffLine, diffLines } from "../lib/diff.ts";
import { t } from "../lib/i18n.ts";
import { ApiError, messageOf } from "../net/api.ts";
import type { FileEntry, FilesApi } from "../net/files_api.ts";
import type { FileText } from "../store/file_text.ts";
import type { Draft } from "../store/files_place.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import { ConflictView } from "./conflict_view.tsx";
import type { FileActions } from "./file_actions.ts";

interface Props {
  /** The stored text; null where it has changed or is gone. */
  file: FileText | null;
  /** The file as it is now; null where it is gone. */
  present: FileEntry | null;
  instanceId: string;
  path: string;
  api: FilesApi;
  actions: FileActions;
  done: () => void;
}

/** What was found in the place of the text that this one was made from. `version`: "" where the file is gone. */
interface Conflict {
  version: string;
  lines: DiffLine[];
}

const toField = (text: string) => text.replace(/\r\n/g, "\n");

/** What is written and not stored yet: it outlives the editor, until it is stored or given up. */
function useFileDraft(file: FileText | null, instanceId: string, path: string) {
  const { files: place } = useApp();
  const [start] = useState<Draft>(() =>
    place.draft(instanceId, path) ?? {
      text: toField(file?.text ?? ""),
      version: file?.version ?? "",
      encoding: file?.encoding ?? "",
      isCrLf: file?.hasCrLf ?? false,
    }
  );
  const [original] = useState(() => toField(file?.text ?? ""));
  const text = useRef(start.text);
  const { version, encoding } = start;
  return {
    text,
    version,
    encoding,
    note: (value: string) => {
      text.current = value;
      const isSame = file !== null && value === original && version === file.version;
      place.setDraft(instanceId, path, isSame ? null : { ...start, text: value });
    },
    asStored: () => start.isCrLf ? text.current.replace(/\n/g, "\r\n") : text.current,
    isChanged: () => place.draft(instanceId, path) !== null,
    forget: () => place.setDraft(instanceId, path, null),
  };
}

/** The file as it is now against the text that was to be stored. */
async function conflictWith(api: FilesApi, path: string, text: string): Promise<Conflict> {
  const entry = await api.entry(path).catch((error) => {
    if (error instanceof ApiError && error.status === 404) return null;
    throw error;
  });
  const patch = entry ? await api.diff(path, text) : "";
  return { version: entry?.version ?? "", lines: patch ? diffLines(patch) : [] };
}

interface Saved {
  draft: ReturnType<typeof useFileDraft>;
  path: string;
  api: FilesApi;
  actions: FileActions;
  leave: () => void;
}

/** Storing the draft: where the file has changed meanwhile there is a conflict to decide instead. */
function useSaving({ draft, path, api, actions, leave }: Saved) {
  const [isSaving, setSaving] = useState(false);
  const [problem, setProblem] = useState("");
  const [canConvert, setConvert] = useState(false);
  const [conflict, setConflict] = useState<Conflict | null>(null);
  const compare = async () => {
    try {
      setConflict(await conflictWith(api, path, draft.asStored()));
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  const save = async (version = draft.version, asUtf8 = false) => {
    setSaving(true);
    setProblem("");
    setConvert(false);
    try {
      if (draft.encoding && version) await actions.saveText(path, draft.asStored(), version, { asUtf8 });
      else await actions.save(path, draft.asStored(), version);
      leave();
    } catch (error) {
      if (error instanceof ApiError && error.code === "file_conflict") await compare();
      else {
        setConvert(draft.encoding !== "" && error instanceof ApiError && error.status === 422);
        setProblem(messageOf(error));
      }
    }
    setSaving(false);
  };
  return { isSaving, problem, canConvert, conflict, save, cancel: () => setConflict(null) };
}

export function FileEditor({ file, present, instanceId, path, api, actions, done }: Props) {
  const draft = useFileDraft(file, instanceId, path);
  const field = useRef<HTMLTextAreaElement>(null);
  const leave = () => {
    draft.forget();
    done();
  };
  const { isSaving, problem, canConvert, conflict, save, cancel } = useSaving({ draft, path, api, actions, leave });
  useEffect(() => field.current?.focus(), [conflict === null]);
  const giveUp = async () => {
    if (!draft.isChanged() || await actions.discards()) leave();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const saves = event.key.toLowerCase() === "s" && (event.ctrlKey || event.metaKey);
    if (!saves && event.key !== "Escape") return;
    event.preventDefault(); // nothing around it is closed, and the browser saves no page
    event.stopPropagation();
    if (!saves) giveUp();
    else if (!isSaving) save();
  };
  if (conflict) {
    return (
      <ConflictView
        title={t("files.conflict")}
        text={t(conflict.version ? "files.conflict-text" : "files.conflict-gone")}
        diffs={conflict.lines.length ? [{ lines: conflict.lines, label: t("files.diff-of", { name: path }) }] : []}
        nothing={conflict.version && t("files.none-written")}
        problem={problem}
        isSaving={isSaving}
        keepMine={() => save(conflict.version)}
        takeTheirs={leave}
        cancel={cancel}
      />
    );
  }
  const hasMoved = (present?.version ?? "") !== draft.version;
  return (
    <form
      class="editor file-editor"
      onKeyDown={onKeyDown}
      onSubmit={(event) => {
        event.preventDefault();
        save();
      }}
    >
      {hasMoved && <p class="file-notice" role="status">{t("files.changed-meanwhile")}</p>}
      <TextField path={path} field={field} draft={draft} />
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isSaving}>{t("common.save")}</button>
        {canConvert && (
          <button type="button" class="button" onClick={() => save(draft.version, true)}>{t("files.as-utf-8")}</button>
        )}
        <button type="button" class="button" onClick={giveUp}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}

interface FieldProps {
  path: string;
  field: RefObject<HTMLTextAreaElement | null>;
  draft: ReturnType<typeof useFileDraft>;
}

function TextField({ path, field, draft }: FieldProps) {
  const id = useId();
  return (
    <>
      <label for={id} class="visually-hidden">{t("files.text-of", { name: path })}</label>
      <textarea
        id={id}
        ref={field}
        class="field is-code"
        dir="auto"
        rows={18}
        spellcheck={false}
        autocapitalize="off"
        defaultValue={draft.text.current}
        onInput={(event) => draft.note(event.currentTarget.value)}
      />
    </>
  );
}
