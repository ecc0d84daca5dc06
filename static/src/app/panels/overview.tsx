// What a conversation is about, in a few sentences, and what it has changed of what is remembered.

import { useEffect, useRef, useState } from "preact/hooks";
import { timeLabel } from "../lib/format.ts";
import { diffLines } from "../lib/diff.ts";
import { t } from "../lib/i18n.ts";
import {
  changesText,
  documentFacts,
  lineCounts,
  originOf,
  type Overview,
  spokenCounts,
  stateOf,
} from "../store/overview_facts.ts";
import { useApp } from "../ui/context.ts";
import { DiffView } from "../ui/diff.tsx";
import { Editor } from "../ui/editor.tsx";
import { Problem } from "../ui/problem.tsx";
import { useReturnFocus } from "../ui/return_focus.ts";
import { Failure } from "./panel.tsx";
import { type Reading, useReading } from "../ui/reading.ts";
import type { PanelProps } from "./registry.ts";

const AGAIN_MS = 3_000; // while it is being written: the notification of its end may be lost

interface Read {
  sessionId: string;
  summary: Overview | null;
}

export function OverviewPanel({ conversation }: PanelProps) {
  const { api, announcer } = useApp();
  const { id } = conversation.instance;
  const reading = useReading(conversation, async (signal): Promise<Read> => {
    const sessionId = id ? (await api.instance(id) as { session_id?: string | null }).session_id ?? "" : "";
    return { sessionId, summary: sessionId ? await api.overview(sessionId, signal) as Overview : null };
  }, { isBranchDependent: true });
  useEffect(() => conversation.events.on("listed", () => reading.soon()), []);
  const summary = reading.value?.summary ?? null;
  const state = summary ? stateOf(summary) : "";
  useEffect(() => {
    if (!state) return;
    reading.soon(AGAIN_MS);
    return () => announcer.say(reading.value?.summary?.error || reading.value?.summary?.text || "");
  }, [state, summary]);
  if (!id) return <p class="muted">{t("panel.not-begun")}</p>;
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("panel.overview-loading")}</p>;
  }
  if (!summary) return <p class="muted">{t("panel.nothing-said")}</p>;
  return (
    <div class="overview">
      <About reading={reading as Reading<Read>} sessionId={reading.value.sessionId} summary={summary} />
      <h2>{t("panel.changed-here")}</h2>
      <p class="muted">{changesText(summary)}</p>
      {summary.documents.map((document) => (
        <ChangedText key={`${document.of} ${document.label} ${document.key}`} document={document} />
      ))}
    </div>
  );
}

interface AboutProps {
  reading: Reading<Read>;
  sessionId: string;
  summary: Overview;
}

function About({ reading, sessionId, summary }: AboutProps) {
  const { api, dialogs } = useApp();
  const [isEditing, setEditing] = useState(false);
  const [problem, setProblem] = useState("");
  const editButton = useReturnFocus<HTMLButtonElement>(isEditing);
  const askButton = useRef<HTMLButtonElement>(null);
  const isBusy = stateOf(summary) !== "";
  const attempt = async (verb: () => Promise<unknown>) => {
    try {
      await verb();
      setProblem("");
    } catch (error) {
      setProblem((error as Error).message);
    }
    await reading.again();
  };
  const store = async (text: string): Promise<string> => {
    try {
      reading.set({ sessionId, summary: await api.writeOverview(sessionId, text) as Overview });
      return "";
    } catch (error) {
      return (error as Error).message;
    }
  };
  const remove = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("panel.delete-overview-title"),
      text: t("panel.delete-overview-text"),
      confirm: t("common.delete"),
      isDanger: true,
    });
    if (!isSure) return;
    await attempt(() => api.deleteOverview(sessionId));
    askButton.current?.focus(); // the button that was pressed is gone
  };
  if (isEditing) {
    return (
      <section class="overview-about" aria-label={t("panel.in-short")}>
        <h2>{t("panel.in-short")}</h2>
        <Editor label={t("panel.about-label")} text={summary.text} save={store} done={() => setEditing(false)} />
      </section>
    );
  }
  return (
    <section class="overview-about" aria-label={t("panel.in-short")}>
      <h2>{t("panel.in-short")}</h2>
      {summary.text
        ? <p class="overview-text" dir="auto">{summary.text}</p>
        : <p class="muted">{t("panel.no-overview")}</p>}
      {summary.text && <p class="muted">{originOf(summary, timeLabel(summary.written_at ?? ""))}</p>}
      {isBusy && <p class="muted">{stateOf(summary)}</p>}
      <Problem text={problem || summary.error} />
      {/* The key: a line that comes above must not take this one's place, and the focus with it. */}
      <p class="panel-actions" key="actions">
        <button
          type="button"
          class="button"
          ref={askButton}
          aria-disabled={isBusy}
          onClick={() => !isBusy && attempt(() => api.askOverview(sessionId))}
        >
          {t(summary.text ? "panel.write-again" : "panel.have-it-written")}
        </button>
        <button type="button" class="button" ref={editButton} onClick={() => setEditing(true)}>
          {t(summary.text ? "common.edit" : "panel.write-yourself")}
        </button>
        {summary.text && <button type="button" class="button" onClick={remove}>{t("common.delete")}</button>}
      </p>
    </section>
  );
}

function ChangedText({ document }: { document: Overview["documents"][number] }) {
  const [isOpen, setOpen] = useState(false);
  const { name, note } = documentFacts(document);
  const counts = lineCounts(document);
  return (
    <details class="context-piece" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        <span class="context-label">
          <span dir="auto">{name}</span>
          {note && <span class="muted">{` ${note}`}</span>}
        </span>
        {counts && (
          <span class="context-tokens">
            <span aria-hidden="true">{counts}</span>
            <span class="visually-hidden">{spokenCounts(document)}</span>
          </span>
        )}
      </summary>
      <div class="overview-diff">
        {isOpen && document.patch && (
          <DiffView
            lines={diffLines(document.patch)}
            label={t("panel.diff-of", { name })}
          />
        )}
        {isOpen && document.is_cut && (
          <p class="muted">{t(document.patch ? "panel.diff-cut" : "panel.diff-too-long")}</p>
        )}
      </div>
    </details>
  );
}
