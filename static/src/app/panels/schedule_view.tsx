// One schedule: what it does and when, what a person can do about it, and how its last runs went.

import { useEffect, useState } from "preact/hooks";
import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { ownZone } from "../lib/own_zone.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Schedule, ScheduleRun } from "../net/schedules_api.ts";
import { madeBy, nameOf, runStanding, runTimes, standingOf, timesText } from "../store/schedule_facts.ts";
import { schedulesPlace } from "../store/schedules_place.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";
import type { Schedules } from "./schedules.tsx";
import { Item, useAttempt } from "./tools_pieces.tsx";

interface Props {
  schedules: Schedules;
  schedule: Schedule;
  close: () => void;
}

export function ScheduleView({ schedules, schedule, close }: Props) {
  const attempt = useAttempt(schedules, "panel-schedules");
  const { text, mood } = standingOf(schedule);
  return (
    <Item title={nameOf(schedule).slice(0, 100)} backTo={t("schedules.all")} close={close}>
      <p>
        <span class={`tools-state ${mood}`} role="status">{text}</span>
      </p>
      {schedule.error && <p class="is-error" dir="auto">{withoutTricks(schedule.error)}</p>}
      <p>{timesText(schedule)}</p>
      {schedule.prompt
        ? <p class="block-text" dir="auto">{withoutTricks(schedule.prompt)}</p>
        : <p>{t("schedules.method", { method: schedule.method ?? "" })}</p>}
      <p class="muted">{madeBy(schedule)}</p>
      <Problem text={attempt.problem} />
      <Verbs schedules={schedules} schedule={schedule} attempt={attempt} close={close} />
      <NextTimes next={schedule.next} />
      {schedule.skipped > 0 && <p class="muted">{t("schedules.skipped", { count: schedule.skipped })}</p>}
      <Runs schedules={schedules} schedule={schedule} />
    </Item>
  );
}

interface VerbsProps extends Props {
  attempt: ReturnType<typeof useAttempt>;
}

function Verbs({ schedules: { api }, schedule, attempt: { attempt, isBusy }, close }: VerbsProps) {
  const { dialogs } = useApp();
  const { id, status } = schedule;
  const remove = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("schedules.delete-title", { name: nameOf(schedule).slice(0, 60) }),
      text: t("schedules.delete-text"),
      confirm: t("schedules.delete"),
      isDanger: true,
    });
    if (isSure && await attempt(() => api.remove(id))) close();
  };
  const button = (label: string, press: () => unknown) => (
    <button type="button" class="button" disabled={isBusy} onClick={press}>{label}</button>
  );
  return (
    <p class="panel-actions">
      {status === "active" && button(t("schedules.pause"), () => attempt(() => api.change(id, { paused: true })))}
      {(status === "paused" || status === "broken") &&
        button(t("schedules.resume"), () => attempt(() => api.change(id, { paused: false })))}
      {schedule.can_edit && button(t("schedules.edit"), () => schedulesPlace.open({ kind: "edit", key: id }))}
      {button(t("schedules.run-now"), () => attempt(() => api.run(id)))}
      {schedule.can_delete && button(t("schedules.delete"), remove)}
    </p>
  );
}

/** The next times in the person's own zone. */
export function NextTimes({ next }: { next: string[] }) {
  if (!next.length) return null;
  return (
    <section aria-label={t("schedules.next")}>
      <h3 class="tools-heading">{t("schedules.next")}</h3>
      <ol class="schedule-times">
        {next.map((time) => (
          <li key={time}>
            <time dateTime={time}>{fullTime(time)}</time>
          </li>
        ))}
      </ol>
      <p class="muted">{t("schedules.next-in-zone", { zone: ownZone() })}</p>
    </section>
  );
}

function Runs({ schedules: { api }, schedule }: Pick<Props, "schedules" | "schedule">) {
  const [runs, setRuns] = useState<ScheduleRun[] | null>(null);
  const { last_run } = schedule;
  useEffect(() => {
    const abort = new AbortController();
    api.runs(schedule.id, abort.signal).then(setRuns, () => undefined); // the list says that it cannot be read
    return () => abort.abort();
  }, [last_run?.id, last_run?.status]);
  if (!runs) return null;
  return (
    <section aria-label={t("schedules.runs")}>
      <h3 class="tools-heading">{t("schedules.runs")}</h3>
      {!runs.length && <p class="muted">{t("schedules.no-runs")}</p>}
      <ul class="schedule-runs">
        {runs.map((run) => <Run key={run.id} run={run} />)}
      </ul>
    </section>
  );
}

function Run({ run }: { run: ScheduleRun }) {
  const { text, mood } = runStanding(run);
  return (
    <li>
      <span class={`tools-state ${mood}`}>{text}</span>
      <span class="schedule-run">
        <span>{runTimes(run)}{run.test && ` · ${t("schedules.run-test")}`}</span>
        {run.status === "left_out" && <span class="muted">{t("schedules.run-left-out-why")}</span>}
        {run.error && <span class="is-error" dir="auto">{withoutTricks(run.error)}</span>}
      </span>
    </li>
  );
}
