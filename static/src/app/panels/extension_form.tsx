// An extension that a person writes, pastes or picks: a new one, or a new version. What its manifest asks for stands below it,
// each with a switch: only what is switched on is granted.

import { useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { lineDiff } from "../lib/line_diff.ts";
import { ApiError, messageOf } from "../net/api.ts";
import type { Extension, ExtensionDetail, Level } from "../net/tools_api.ts";
import { keyOf, manifestIn } from "../store/extension_facts.ts";
import { Grants, useGrants } from "./extension_grants.tsx";
import { toolsPlace } from "../store/tools_place.ts";
import { ConflictView } from "./conflict_view.tsx";
import { Failure } from "./panel.tsx";
import { useDetail } from "./extension_detail.ts";
import { Item, LevelChoice, useAttempt, useDraft } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";
import { Problem } from "../ui/problem.tsx";

const NEW = "new-extension";
const EXAMPLE = JSON.stringify({ name: "my-extension", version: "1.0.0", permissions: {} }, null, 2);

export function ExtensionForm({ tools, close }: { tools: Tools; close: () => void }) {
  const id = useId();
  const { api, instanceId } = tools;
  const [level, setLevel] = useState<Level>(instanceId ? "instance" : "user");
  const [manifest, setManifest] = useDraft(NEW, "manifest", EXAMPLE);
  const [source, setSource] = useDraft(NEW, "source");
  const { problem, isBusy, attempt } = useAttempt(tools);
  const grants = useGrants(manifest);
  const submit = async (event: Event) => {
    event.preventDefault();
    let made = "";
    const isLoaded = await attempt(async () => {
      const written = { manifest: manifestIn(manifest), source, permissions: grants.granted() };
      made = keyOf(await api.loadExtension(level, written));
    });
    if (!isLoaded) return;
    toolsPlace.forget(NEW);
    toolsPlace.open({ kind: "extension", key: made });
  };
  return (
    <Item title={t("extensions.add")} close={close}>
      <form class="tools-form" onSubmit={submit}>
        <p class="muted">{t("extensions.add-about")}</p>
        <TextOrFile
          label={t("extensions.manifest")}
          accept=".json,application/json"
          text={manifest}
          write={setManifest}
        />
        <TextOrFile label={t("extensions.source")} accept=".js,.mjs,text/javascript" text={source} write={setSource} />
        <LevelChoice form={id} instanceId={instanceId} level={level} choose={setLevel} />
        <Grants grants={grants} />
        <Problem text={problem} />
        <p class="panel-actions">
          <button type="submit" class="button is-primary" disabled={isBusy}>{t("extensions.load")}</button>
          <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
        </p>
      </form>
    </Item>
  );
}

interface EditorProps {
  tools: Tools;
  extension: Extension;
  close: () => void;
}

export function ExtensionEditor({ tools, extension, close }: EditorProps) {
  const { detail, problem, again } = useDetail(tools.api, extension);
  const title = t("extensions.edit-title", { name: extension.name });
  return (
    <Item title={title} backTo={extension.name} close={close}>
      {problem && <Failure text={problem} again={again} />}
      {!problem && !detail && <p class="muted">{t("common.loading")}</p>}
      {detail && <Fields tools={tools} detail={detail} close={close} />}
    </Item>
  );
}

function Fields({ tools, detail, close }: { tools: Tools; detail: ExtensionDetail; close: () => void }) {
  const form = `edit ${keyOf(detail)}`;
  const [start, noteStart] = useDraft(form, "start", JSON.stringify([detail.revision, shown(detail)]));
  const [revision, before] = JSON.parse(start) as [string, string]; // of the version that the person edits
  const [manifest, setManifest] = useDraft(form, "manifest", before);
  const [source, setSource] = useDraft(form, "source", detail.source);
  const [theirs, setTheirs] = useState<ExtensionDetail | null>(null);
  const { problem, isBusy, attempt } = useAttempt(tools);
  const isOther = manifest !== before;
  const grants = useGrants(manifest, detail.granted);
  const writing = (write: (text: string) => void) => (text: string) => {
    noteStart(start);
    write(text);
  };
  const save = async (revision: string, withManifest: boolean) => {
    let isConflict = false;
    const isDone = await attempt(async () => {
      const change = withManifest
        ? { source, manifest: manifestIn(manifest), permissions: grants.granted() }
        : { source };
      try {
        await tools.api.changeExtension(detail, { ...change, revision });
      } catch (error) {
        if (!(error instanceof ApiError && error.code === "extension_conflict")) throw error;
        isConflict = true;
        setTheirs(await tools.api.extension(detail));
      }
    });
    if (!isDone || isConflict) return;
    toolsPlace.forget(form);
    close();
  };
  const submit = (event: Event) => {
    event.preventDefault();
    save(revision, isOther);
  };
  const giveUp = () => {
    toolsPlace.forget(form);
    close();
  };
  if (theirs) {
    return (
      <ConflictView
        title={t("extensions.conflict")}
        text={t(isOther ? "extensions.conflict-grants" : "extensions.conflict-text")}
        diffs={diffsOf(theirs, isOther ? manifest : shown(theirs), source)}
        nothing={t("extensions.conflict-same")}
        problem={problem}
        isSaving={isBusy}
        keepMine={() => save(theirs.revision, isOther)}
        takeTheirs={giveUp}
        cancel={() => setTheirs(null)}
      />
    );
  }
  return (
    <form class="tools-form" onSubmit={submit}>
      {detail.revision !== revision && <p class="file-notice" role="status">{t("extensions.changed-meanwhile")}</p>}
      <TextOrFile
        label={t("extensions.manifest")}
        accept=".json,application/json"
        text={manifest}
        write={writing(setManifest)}
      />
      <TextOrFile
        label={t("extensions.source")}
        accept=".js,.mjs,text/javascript"
        text={source}
        write={writing(setSource)}
      />
      {isOther && <Grants grants={grants} />}
      <Problem text={problem} />
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isBusy}>{t("common.save")}</button>
        <button type="button" class="button" onClick={giveUp}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}

/** What a person's texts change of the stored version, each text that differs. */
const diffsOf = (theirs: ExtensionDetail, manifest: string, source: string) =>
  [
    { name: t("extensions.manifest"), ...lineDiff(shown(theirs), manifest) },
    { name: t("extensions.source"), ...lineDiff(theirs.source, source) },
  ].filter(({ lines }) => lines.length).map(({ name, lines }) => ({ lines, label: t("files.diff-of", { name }) }));

const shown = ({ manifest }: ExtensionDetail): string => JSON.stringify(manifest, null, 2);

interface TextProps {
  label: string;
  accept: string;
  text: string;
  write: (text: string) => void;
}

const FEWEST_ROWS = 5;
const MOST_ROWS = 16;
const LARGEST = 2_000_000; // bytes of a file that is read at all; the server allows less

/** A text of a program: typed, pasted, or read from a file. */
function TextOrFile({ label, accept, text, write }: TextProps) {
  const id = useId();
  const file = useRef<HTMLInputElement>(null);
  const [problem, setProblem] = useState("");
  const rows = Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, text.split("\n").length + 1));
  const read = async () => {
    const [picked] = file.current!.files ?? [];
    file.current!.value = ""; // the same file can be picked again
    if (!picked) return;
    try {
      if (picked.size > LARGEST) throw new Error(t("extensions.file-too-large"));
      write(await picked.text());
      setProblem("");
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <div class="tools-source">
      <p class="panel-line">
        <label for={id} class="field-label">{label}</label>
        <button
          type="button"
          class="quiet"
          aria-label={t("extensions.pick-for", { label })}
          onClick={() => file.current!.click()}
        >
          {t("extensions.pick")}
        </button>
      </p>
      <input ref={file} type="file" hidden accept={accept} onChange={read} />
      <textarea
        id={id}
        class="field is-code"
        rows={rows}
        required
        dir="ltr"
        spellcheck={false}
        value={text}
        onInput={(event) => write(event.currentTarget.value)}
      />
      <Problem text={problem} />
    </div>
  );
}
