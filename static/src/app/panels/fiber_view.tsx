// One piece of background work: how it stands and why, what a person can do about it, what it gave, and what happened.

import { useEffect, useState } from "preact/hooks";
import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { messageOf } from "../net/api.ts";
import type { Fiber, FiberEnd, FiberEntry } from "../net/background_api.ts";
import {
  attemptsText,
  dueText,
  entryText,
  fiberStanding,
  isUnderWay,
  joined,
  nameOfFiber,
  reasonText,
  sinceOf,
  tookText,
  waitText,
} from "../store/background_facts.ts";
import { useApp } from "../ui/context.ts";
import { Elapsed } from "../ui/elapsed.tsx";
import { JobProgress } from "../ui/job_progress.tsx";
import { Problem } from "../ui/problem.tsx";
import { Value } from "../ui/value.tsx";
import type { Background } from "./background.tsx";
import { Item, Part, useAttempt } from "./tools_pieces.tsx";

interface Props {
  background: Background;
  fiber: Fiber;
}

export function FiberView({ background, fiber, close }: Props & { close: () => void }) {
  const attempt = useAttempt(background, "panel-background");
  const { text, mood } = fiberStanding(fiber);
  const why = joined([reasonText(fiber), dueText(fiber)]);
  return (
    <Item title={nameOfFiber(fiber)} backTo={t("background.all")} close={close}>
      <p>
        <span class={`tools-state ${mood}`} role="status">{text}</span>
      </p>
      {why && <p dir="auto">{withoutTricks(why)}</p>}
      {fiber.error && <p class="is-error" dir="auto">{withoutTricks(fiber.error.message || fiber.error.code)}</p>}
      <Waits fiber={fiber} />
      <p class="muted">
        {joined([fullTime(fiber.started_at ?? fiber.created_at), tookText(fiber), attemptsText(fiber)])}{" "}
        {fiber.status === "running" && <Elapsed since={sinceOf(fiber)} />}
      </p>
      <Problem text={attempt.problem} />
      {!background.isReadOnly && <Verbs background={background} fiber={fiber} attempt={attempt} />}
      {fiber.progress && (
        <section aria-label={t("background.progress")}>
          <h3 class="tools-heading">{t("background.progress")}</h3>
          <JobProgress progress={fiber.progress} />
        </section>
      )}
      {fiber.result !== null && <Part title={t("background.result")}>{() => <Value value={fiber.result} />}</Part>}
      {Object.keys(fiber.metadata).length > 0 && (
        <Part title={t("background.metadata")}>{() => <Value value={fiber.metadata} />}</Part>
      )}
      <Part title={t("background.journal")}>{() => <Journal background={background} fiber={fiber} />}</Part>
    </Item>
  );
}

function Waits({ fiber: { waits } }: { fiber: Fiber }) {
  if (!waits.length) return null;
  return (
    <section aria-label={t("background.waits-for")}>
      <h3 class="tools-heading">{t("background.waits-for")}</h3>
      <ul class="tools-words">
        {waits.map((wait) => <li key={waitText(wait)} dir="auto">{withoutTricks(waitText(wait))}</li>)}
      </ul>
    </section>
  );
}

interface Question {
  title: string;
  text: string;
  confirm: string;
  isDanger?: boolean;
}

interface VerbsProps extends Props {
  attempt: ReturnType<typeof useAttempt>;
}

function Verbs({ background: { api }, fiber, attempt: { attempt, isBusy } }: VerbsProps) {
  const { dialogs } = useApp();
  const { id } = fiber;
  const name = nameOfFiber(fiber).slice(0, 60);
  const asked = async (question: Question, verb: () => Promise<unknown>) => {
    if (await dialogs.ask("confirm", question)) await attempt(verb);
  };
  const stop = () => {
    const question = { title: t("background.stop-title", { name }), text: t("background.stop-text") };
    return asked({ ...question, confirm: t("background.stop"), isDanger: true }, () => api.cancel(id));
  };
  const restart = () => {
    const question = { title: t("background.restart-title", { name }), text: t("background.restart-text") };
    return asked({ ...question, confirm: t("background.restart") }, () => api.restart(id));
  };
  const resolve = (end: FiberEnd, question: Question) => asked(question, () => api.resolve(id, end));
  const done = { title: t("background.done-title", { name }), text: t("background.done-text") };
  const failed = { title: t("background.failed-title", { name }), text: t("background.failed-text") };
  const button = (label: string, press: () => unknown) => (
    <button type="button" class="button" disabled={isBusy} onClick={press}>{label}</button>
  );
  const [asDone, asFailed] = [t("background.mark-done"), t("background.mark-failed")];
  const canStop = isUnderWay(fiber) && !fiber.is_stopping;
  if (!canStop && !fiber.can_restart && !fiber.can_resolve) return null;
  return (
    <p class="panel-actions">
      {canStop && button(t("background.stop"), stop)}
      {fiber.can_restart && button(t("background.restart"), restart)}
      {fiber.can_resolve && button(asDone, () => resolve("completed", { ...done, confirm: asDone }))}
      {fiber.can_resolve && button(asFailed, () => resolve("failed", { ...failed, confirm: asFailed }))}
    </p>
  );
}

/** Read when it is opened, and again when the work has moved. */
function Journal({ background: { api }, fiber }: Props) {
  const [entries, setEntries] = useState<FiberEntry[] | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const abort = new AbortController();
    api.journal(fiber.id, abort.signal).then(
      (found) => {
        setEntries(found);
        setProblem("");
      },
      (error) => abort.signal.aborted || setProblem(messageOf(error)),
    );
    return () => abort.abort();
  }, [fiber.updated_at, fiber.status]);
  if (problem) return <Problem text={problem} />;
  if (!entries) return <p class="muted">{t("background.journal-loading")}</p>;
  return (
    <ol class="fiber-journal">
      {entries.map((entry, at) => (
        <li key={at}>
          <bdi>{withoutTricks(entryText(entry))}</bdi>
          <time class="muted" dateTime={entry.at}>{fullTime(entry.at)}</time>
        </li>
      ))}
    </ol>
  );
}
