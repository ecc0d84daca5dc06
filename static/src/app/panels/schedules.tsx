// The schedules of a conversation: a list, one of them, or a form; one at a time, because the panel is narrow.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { follow } from "../lib/store.ts";
import { type Schedule, SchedulesApi } from "../net/schedules_api.ts";
import { isOnItsWay, nameOf, nextText, standingOf, timesText } from "../store/schedule_facts.ts";
import { schedulesPlace, type SchedulesView } from "../store/schedules_place.ts";
import { useApp } from "../ui/context.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { Failure } from "./panel.tsx";
import { type Reading, useReading } from "../ui/reading.ts";
import type { PanelProps } from "./registry.ts";
import { ScheduleForm } from "./schedule_form.tsx";
import { ScheduleView } from "./schedule_view.tsx";

const LOOK_MS = 2_000; // while a run is on its way
const REST_MS = 60_000; // times pass by themselves

/** What all parts of the view need. */
export interface Schedules {
  api: SchedulesApi;
  reading: Reading<Schedule[]>;
}

export function SchedulesPanel({ conversation }: PanelProps) {
  const { id } = conversation.instance;
  return id ? <Begun conversation={conversation} /> : <p class="muted">{t("schedules.not-begun")}</p>;
}

function Begun({ conversation }: PanelProps) {
  const app = useApp();
  const { id } = conversation.instance;
  const [api] = useState(() => new SchedulesApi(app.api, id));
  const reading = useReading(conversation, (signal) => api.list(signal));
  const isBusy = reading.value?.some(({ last_run }) => isOnItsWay(last_run)) ?? false;
  useEffect(() => {
    if (reading.value) reading.watch(isBusy ? LOOK_MS : REST_MS);
  }, [reading.value]);
  useEffect(() => schedulesPlace.enter(id), []);
  const { view, instanceId } = follow(schedulesPlace);
  const last = useRef<SchedulesView>({ kind: "list" }); // the row that gets the focus when its item is closed
  const shown: SchedulesView = instanceId === id ? view : { kind: "list" };
  if (shown.kind !== "list") last.current = shown;
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("schedules.loading")}</p>;
  }
  return (
    <>
      <Problem text={reading.error} />
      <Shown schedules={{ api, reading }} list={reading.value} view={shown} last={last.current} />
    </>
  );
}

interface ShownProps {
  schedules: Schedules;
  list: Schedule[];
  view: SchedulesView;
  last: SchedulesView;
}

function Shown({ schedules, list, view, last }: ShownProps) {
  const close = () => schedulesPlace.open({ kind: "list" });
  if (view.kind === "new") return <ScheduleForm schedules={schedules} close={close} />;
  const schedule = "key" in view ? list.find((each) => each.id === view.key) : undefined;
  if (!schedule) return <List list={list} last={last} />;
  if (view.kind === "edit") {
    const back = () => schedulesPlace.open({ kind: "item", key: schedule.id });
    return <ScheduleForm key={schedule.id} schedules={schedules} schedule={schedule} close={back} />;
  }
  return <ScheduleView key={schedule.id} schedules={schedules} schedule={schedule} close={close} />;
}

function List({ list, last }: { list: Schedule[]; last: SchedulesView }) {
  const element = useRef<HTMLElement>(null);
  useEffect(() => {
    if (last.kind === "list" || document.activeElement !== document.body) return;
    const id = "key" in last ? last.key : last.kind;
    const rows = [...element.current!.querySelectorAll<HTMLElement>("[data-row]")];
    const row = rows.find((item) => item.dataset.row === id);
    (row ?? document.getElementById("panel-schedules"))?.focus({ preventScroll: !row });
  }, []);
  return (
    <section aria-label={t("schedules.title")} ref={element}>
      <p class="muted">{t(list.length ? "schedules.about" : "schedules.none")}</p>
      <ul class="tools-rows">
        {list.map((schedule) => <Row key={schedule.id} schedule={schedule} />)}
      </ul>
      <p class="panel-actions">
        <button type="button" class="button" data-row="new" onClick={() => schedulesPlace.open({ kind: "new" })}>
          <Icon name="plus" />
          {t("schedules.add")}
        </button>
      </p>
    </section>
  );
}

function Row({ schedule }: { schedule: Schedule }) {
  const { text, mood } = standingOf(schedule);
  return (
    <li>
      <button
        type="button"
        class="tools-row"
        data-row={schedule.id}
        onClick={() => schedulesPlace.open({ kind: "item", key: schedule.id })}
      >
        <Icon name="calendar" />
        <span class="tools-row-text">
          <bdi class="tools-name">{withoutTricks(nameOf(schedule))}</bdi>
          <span class="muted">{`${timesText(schedule)} · ${nextText(schedule)}`}</span>
        </span>
        <span class={`tools-state ${mood}`}>{text}</span>
      </button>
    </li>
  );
}
