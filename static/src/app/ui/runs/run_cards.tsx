// Agents that work for the conversation: a card for each, under the call that started it. It says how far the run is, asks what
// the agent asks, and opens to what the agent says. Loaded when the first of them begins.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { duration } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import { follow } from "../../lib/store.ts";
import { Conversation } from "../../store/conversation.ts";
import { type DelegatedRun, questionsOf } from "../../store/delegated.ts";
import { fromInstance, isOwn } from "../../store/instances.ts";
import { OpenCalls } from "../../store/open_calls.ts";
import type { ToolPart } from "../../store/types.ts";
import { AgentMark } from "../agent_mark.tsx";
import { Elapsed } from "../elapsed.tsx";
import { Icon } from "../icon.tsx";
import type { Opened } from "../message.tsx";
import { MessageParts } from "../parts.tsx";
import type { Parts } from "../parts_context.ts";
import { Question } from "../question.tsx";
import { RunVerbs } from "./run_verbs.tsx";

/** The runs of these calls. */
export function RunCards({ context, parts }: { context: Parts; parts: readonly ToolPart[] }) {
  const { delegated } = context.conversation;
  if (!delegated) return null;
  const ids = new Set(parts.map((part) => part.toolCallId));
  return <Cards context={context} runs={follow(delegated).of(ids)} />;
}

/** The runs that no call in sight stands for, below the messages. */
export function LooseRuns({ app, conversation, reader }: Omit<Parts, "openCalls">) {
  const openCalls = useMemo(() => new OpenCalls(app.api, conversation), [conversation]); // of cards, which have their own
  const { delegated } = follow(conversation);
  const runs = delegated ? follow(delegated).loose() : [];
  if (!runs.length) return null;
  return (
    <section class="loose-runs" aria-label={t("runs.others")}>
      <Cards context={{ app, conversation, reader, openCalls }} runs={runs} />
    </section>
  );
}

function Cards({ context, runs }: { context: Parts; runs: readonly DelegatedRun[] }) {
  if (!runs.length) return null;
  return (
    <ul class="runs">
      {runs.map((run) => <RunCard key={run.runId} context={context} run={run} />)}
    </ul>
  );
}

interface CardProps {
  context: Parts;
  run: DelegatedRun;
}

const NOTES = {
  running: "runs.running",
  completed: "runs.completed",
  error: "runs.error",
  aborted: "runs.aborted",
  interrupted: "runs.interrupted",
} as const;

function RunCard({ context, run }: CardProps) {
  const { app, conversation } = context;
  const [isOpen, setOpen] = useState(false);
  const agent = app.agentOf(run);
  const canStop = run.raw !== null && run.state === "running" && !conversation.instance.isReadOnly &&
    isOwn(conversation.instance);
  const name = run.name || agent.title;
  const questions = questionsOf(run);
  const asks = run.state === "running" && (questions.length > 0 || (run.raw?.question_count ?? 0) > 0);
  return (
    <li class={`run is-${run.state}`} data-run={run.runId}>
      <details open={isOpen} onToggle={(event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
        <summary>
          <AgentMark agent={{ ...agent, title: name, ...markOf(run) }} />
          <span class="run-name" dir="auto" title={name}>{name}</span>
          <span class="run-note">
            {asks ? t("runs.asks") : t(NOTES[run.state])}
            <Time run={run} />
          </span>
          <Icon name="chevron" />
        </summary>
        {isOpen && <Said context={context} run={run} name={name} />}
      </details>
      {run.state === "running" && run.progress && <Bar run={run} name={name} />}
      {run.milestones.length > 0 && (
        <ol class="run-milestones" aria-label={t("runs.milestones")}>
          {run.milestones.map((each) => <li key={each.sequence} dir="auto">{each.name}</li>)}
        </ol>
      )}
      {run.error && <p class={run.state === "error" ? "run-text is-error" : "run-text"} dir="auto">{run.error}</p>}
      {run.state === "interrupted" && run.childStillRunning && <p class="run-text">{t("runs.goes-on")}</p>}
      {asks && !isOpen && <Questions context={context} run={run} questions={questions} />}
      <RunVerbs
        class="run-buttons"
        name={name}
        childId={run.raw?.child_id}
        stop={canStop ? async () => await conversation.delegated?.stop(run) : null}
      />
    </li>
  );
}

/** The mark that the run was given, where the page has it. */
function markOf({ icon }: DelegatedRun) {
  return icon && document.getElementById(`i-${icon}`) ? { icon, icon_url: "" } : {};
}

function Time({ run }: { run: DelegatedRun }) {
  if (!run.startedAt) return null; // not read yet
  if (run.state === "running") {
    return (
      <>
        {" "}
        <Elapsed since={run.startedAt} />
      </>
    );
  }
  const ms = run.endedAt - run.startedAt;
  return ms > 0 ? <>{` · ${duration(ms)}`}</> : null;
}

/** How far it is: a bar where it is known, and what the agent says of it. */
function Bar({ run, name }: { run: DelegatedRun; name: string }) {
  const { fraction, message } = run.progress!;
  return (
    <p class="run-progress">
      {fraction !== null && <progress value={fraction} max={1} aria-label={t("runs.progress", { name })} />}
      {message && <span dir="auto">{message}</span>}
    </p>
  );
}

/** What the agent was given and what it says, as in a conversation of its own. */
function Said({ context, run, name }: CardProps & { name: string }) {
  const opened = useRef<Opened>({ calls: new Set() });
  const own = useOwn(context, run);
  const { message } = run;
  useEffect(() => own.conversation.changed(), [run]); // views of its calls follow that
  const hasParts = message.parts.some((part) => part.type !== "step-start");
  const input = run.input === undefined || run.input === null ? "" : inputText(run.input);
  return (
    <div class="run-body" role="group" aria-label={t("runs.said", { name })}>
      {input && (
        <details class="run-input">
          <summary>{t("runs.input")}</summary>
          <p class="plain" dir="auto">{input}</p>
        </details>
      )}
      {hasParts
        ? <MessageParts context={own} message={message} isLast={false} opened={opened.current} />
        : run.summary
        ? <p class="plain" dir="auto">{run.summary}</p>
        : <p class="muted">{t(run.state === "running" ? "runs.nothing-yet" : "runs.nothing")}</p>}
    </div>
  );
}

/** What it was given, in words: the one text of it, or all of it as JSON. */
function inputText(input: unknown): string {
  if (typeof input === "string") return input;
  const values = typeof input === "object" && input ? Object.values(input) : [];
  return values.length === 1 && typeof values[0] === "string" ? values[0] : JSON.stringify(input, null, 2);
}

/** What views inside need of the agent's own conversation: its calls are answered there. */
function useOwn(context: Parts, run: DelegatedRun): Parts {
  const childId = run.raw?.child_id ?? "";
  return useMemo(() => {
    const { api } = context.app;
    const instance = fromInstance({ id: childId, agent: run.agent, name: run.runId });
    const conversation = new Conversation(api, instance);
    return { ...context, conversation, openCalls: new OpenCalls(api, conversation) };
  }, [context.app, childId]);
}

function Questions({ context, run, questions }: CardProps & { questions: readonly ToolPart[] }) {
  const own = useOwn(context, run);
  if (!run.raw?.child_id) return null; // not read yet: it could not be answered
  if (!questions.length) return <p class="run-text">{t("runs.asks-elsewhere")}</p>;
  return <>{questions.map((part) => <Question key={part.toolCallId} context={own} part={part} />)}</>;
}
