// An extension that a person writes, pastes or picks: a new one, or a new version. Whoever loads it grants what its manifest
// asks for, so the form says so.

import { useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import type { Extension, ExtensionDetail, Level } from "../net/tools_api.ts";
import { keyOf, manifestIn } from "../store/extension_facts.ts";
import { toolsPlace } from "../store/tools_place.ts";
import { Failure } from "./panel.tsx";
import { useDetail } from "./extension_view.tsx";
import { Item, LevelChoice, useAttempt, useDraft } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";

const NEW = "new-extension";
const EXAMPLE = JSON.stringify({ name: "my-extension", version: "1.0.0", permissions: {} }, null, 2);

export function ExtensionForm({ tools, close }: { tools: Tools; close: () => void }) {
  const id = useId();
  const { api, instanceId } = tools;
  const [level, setLevel] = useState<Level>(instanceId ? "instance" : "user");
  const [manifest, setManifest] = useDraft(NEW, "manifest", EXAMPLE);
  const [source, setSource] = useDraft(NEW, "source");
  const { problem, isBusy, attempt } = useAttempt(tools);
  const submit = async (event: Event) => {
    event.preventDefault();
    let made = "";
    const isLoaded = await attempt(async () => {
      made = keyOf(await api.loadExtension(level, { manifest: manifestIn(manifest), source }));
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
        <p class="muted">{t("extensions.grants")}</p>
        <p class="is-error" role="alert">{problem}</p>
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
  const before = JSON.stringify(detail.manifest, null, 2);
  const [manifest, setManifest] = useDraft(form, "manifest", before);
  const [source, setSource] = useDraft(form, "source", detail.source);
  const { problem, isBusy, attempt } = useAttempt(tools);
  const isOther = manifest !== before;
  const submit = async (event: Event) => {
    event.preventDefault();
    const isStored = await attempt(() =>
      tools.api.changeExtension(detail, isOther ? { source, manifest: manifestIn(manifest) } : { source })
    );
    if (!isStored) return;
    toolsPlace.forget(form);
    close();
  };
  const giveUp = () => {
    toolsPlace.forget(form);
    close();
  };
  return (
    <form class="tools-form" onSubmit={submit}>
      <TextOrFile
        label={t("extensions.manifest")}
        accept=".json,application/json"
        text={manifest}
        write={setManifest}
      />
      <TextOrFile label={t("extensions.source")} accept=".js,.mjs,text/javascript" text={source} write={setSource} />
      {isOther && <p class="muted">{t("extensions.grants")}</p>}
      <p class="is-error" role="alert">{problem}</p>
      <p class="panel-actions">
        <button type="submit" class="button is-primary" disabled={isBusy}>{t("common.save")}</button>
        <button type="button" class="button" onClick={giveUp}>{t("common.cancel")}</button>
      </p>
    </form>
  );
}

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
      {problem && <p class="is-error" role="alert">{problem}</p>}
    </div>
  );
}
