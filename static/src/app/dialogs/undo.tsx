// What an undo would do, before it is done: which files change, which were changed by others since, what cannot be undone, and
// effects of actions, each undone by itself. A redo asks the same way where files have changed since.

import { useState } from "preact/hooks";
import { diffLines } from "../lib/diff.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { UndoEffect, UndoFile, UndoPreview } from "../net/undo_api.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { chosenOf, isSomething } from "../store/undo_verbs.ts";
import { DiffView } from "../ui/diff.tsx";
import { Problem } from "../ui/problem.tsx";
import { Dialog } from "./dialog.tsx";

const FATES = { created: "undo.created", updated: "undo.updated", deleted: "undo.deleted" } as const;

export function Undo({ preview, isRedo, undoEffect, close }: DialogProps<"undo">) {
  const [files, setFiles] = useState(true);
  const [messages, setMessages] = useState(preview.leaf_id !== null);
  const [overwritten, setOverwritten] = useState<ReadonlySet<number>>(new Set());
  const hasFiles = preview.file_count + preview.conflict_count > 0;
  const isPossible = isSomething(preview) && !preview.is_busy;
  const isChosen = isRedo || (files && hasFiles) || messages;
  const label = t(isRedo ? "undo.redo" : "undo.undo");
  const choose = ({ id }: UndoFile, isOverwritten: boolean) => {
    const next = new Set(overwritten);
    if (isOverwritten) next.add(id);
    else next.delete(id);
    setOverwritten(next);
  };
  const submit = () => {
    if (!isPossible || !isChosen) return;
    close({ files: files && hasFiles, messages, overwrite: chosenOf(preview.files, ({ id }) => overwritten.has(id)) });
  };
  const title = isRedo ? t("undo.redo-title") : t("undo.title-more", { count: preview.turn_count });
  const actions = isPossible && <button type="submit" class="button is-primary" disabled={!isChosen}>{label}</button>;
  return (
    <Dialog title={title} actions={actions} onSubmit={submit} close={close} isWide>
      {preview.is_busy && <p role="status">{t("undo.busy")}</p>}
      {!isSomething(preview) && <p>{t("undo.nothing")}</p>}
      {!preview.keeps_files && <p class="muted">{t("undo.not-kept")}</p>}
      {hasFiles && !isRedo && <Tick isOn={files} set={setFiles}>{t("undo.files", { count: preview.file_count })}</Tick>}
      {preview.leaf_id !== null && !isRedo && <Tick isOn={messages} set={setMessages}>{t("undo.messages")}</Tick>}
      <Changing preview={preview} />
      {files && <Conflicts preview={preview} overwritten={overwritten} choose={choose} />}
      <Left preview={preview} />
      {undoEffect && <Effects effects={preview.effects} undo={undoEffect} />}
    </Dialog>
  );
}

function Tick({ isOn, set, children }: { isOn: boolean; set: (isOn: boolean) => void; children: string }) {
  return (
    <label class="ticked">
      <input type="checkbox" class="tick" checked={isOn} onChange={(event) => set(event.currentTarget.checked)} />
      <span>{children}</span>
    </label>
  );
}

function Changing({ preview }: { preview: UndoPreview }) {
  const changing = preview.files.filter((file) => !file.hindrance);
  if (!changing.length) return null;
  return (
    <details class="undo-files">
      <summary>{t("undo.show-files", { count: preview.file_count })}</summary>
      <ul>
        {changing.map((file) => (
          <li key={file.id}>
            <bdi>{withoutTricks(file.path)}</bdi> <span class="muted">{t(FATES[file.fate])}</span>
          </li>
        ))}
      </ul>
      {preview.has_more && <p class="muted">{t("undo.more-files")}</p>}
    </details>
  );
}

interface ConflictsProps {
  preview: UndoPreview;
  overwritten: ReadonlySet<number>;
  choose: (file: UndoFile, isOverwritten: boolean) => void;
}

function Conflicts({ preview, overwritten, choose }: ConflictsProps) {
  const conflicts = preview.files.filter((file) => file.hindrance === "changed");
  if (!conflicts.length) return null;
  return (
    <section class="undo-conflicts">
      <h3>{t("undo.conflicts", { count: preview.conflict_count })}</h3>
      <p class="muted">{t("undo.conflicts-text")}</p>
      {conflicts.map((file) => (
        <Conflict
          key={file.id}
          file={file}
          isOverwritten={overwritten.has(file.id)}
          choose={(isOverwritten) => choose(file, isOverwritten)}
        />
      ))}
    </section>
  );
}

interface ConflictProps {
  file: UndoFile;
  isOverwritten: boolean;
  choose: (isOverwritten: boolean) => void;
}

function Conflict({ file, isOverwritten, choose }: ConflictProps) {
  const path = withoutTricks(file.path);
  const lines = diffLines(file.changes?.diff ?? "");
  const option = (isOverwriting: boolean, key: MessageKey) => (
    <label class="ticked">
      <input
        type="radio"
        class="tick"
        name={`undo-${file.id}`}
        checked={isOverwritten === isOverwriting}
        onChange={() => choose(isOverwriting)}
      />
      <span>{t(key)}</span>
    </label>
  );
  return (
    <fieldset class="undo-conflict">
      <legend class="visually-hidden">{t("undo.choice-of", { path })}</legend>
      <p class="undo-path">
        <bdi>{path}</bdi>
      </p>
      {lines.length
        ? <DiffView lines={lines} label={t("calls.diff-of", { path })} />
        : <p class="muted">{t("undo.no-difference")}</p>}
      {option(false, "undo.keep")}
      {option(true, "undo.overwrite")}
    </fieldset>
  );
}

function Left({ preview }: { preview: UndoPreview }) {
  const left = preview.files.filter((file) => file.hindrance && file.hindrance !== "changed");
  if (!left.length) return null;
  return (
    <section class="undo-left">
      <h3>{t("undo.cannot", { count: preview.left_count })}</h3>
      <ul>
        {left.map((file) => (
          <li key={file.id}>
            <bdi>{withoutTricks(file.path)}</bdi>{" "}
            <span class="muted">{t(file.hindrance === "too_large" ? "undo.too-large" : "undo.no-access")}</span>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Effects({ effects, undo }: { effects: UndoEffect[]; undo: (effect: UndoEffect) => Promise<void> }) {
  if (!effects.length) return null;
  return (
    <section class="undo-effects">
      <h3>{t("undo.effects")}</h3>
      <p class="muted">{t("undo.effects-text")}</p>
      <ul>
        {effects.map((effect) => <Effect key={effect.id} effect={effect} undo={() => undo(effect)} />)}
      </ul>
    </section>
  );
}

/** Two presses: what happens outside cannot be brought back by a redo. */
function Effect({ effect, undo }: { effect: UndoEffect; undo: () => Promise<void> }) {
  const [step, setStep] = useState<"" | "sure" | "running" | "done">("");
  const [error, setError] = useState("");
  const { action } = effect;
  const isDone = step === "done" || effect.undo_status === "done";
  const run = async () => {
    if (step !== "sure") return setStep("sure");
    setStep("running");
    try {
      await undo();
      setStep("done");
    } catch (problem) {
      setError((problem as Error).message);
      setStep("");
    }
  };
  const state = isDone ? "undo.effect-done" : step === "running" ? "undo.effect-running" : "undo.effect-none";
  const isOpen = effect.can_undo && !isDone && step !== "running";
  return (
    <li>
      <code>{action}</code> {isOpen
        ? (
          <button type="button" class={step ? "button is-danger" : "button"} onClick={run}>
            {t(step ? "undo.effect-sure" : "undo.effect", { action })}
          </button>
        )
        : <span class="muted" role="status">{t(state)}</span>}
      <Problem text={error} />
    </li>
  );
}
