// A new schedule, or other times and words for one: a prompt, and when. The next times are shown while one chooses.

import { useEffect, useId, useState } from "preact/hooks";
import { Due } from "../lib/busy.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import type { Schedule } from "../net/schedules_api.ts";
import { daysText } from "../store/schedule_facts.ts";
import { newTimes, type TimesDraft, timesFrom, timesOf, type Unit, type Way } from "../store/schedule_times.ts";
import { type ScheduleDraft, schedulesPlace } from "../store/schedules_place.ts";
import { NextTimes } from "./schedule_view.tsx";
import type { Schedules } from "./schedules.tsx";
import { Item, useAttempt } from "./tools_pieces.tsx";
import { Problem } from "../ui/problem.tsx";

const PAUSE_MS = 300; // after the last key
const DAYS = ["*", "1-5", "1", "2", "3", "4", "5", "6", "0"];
const WAYS: Record<Way, MessageKey> = {
  clock: "schedules.way-clock",
  interval: "schedules.way-interval",
  once: "schedules.way-once",
  cron: "schedules.way-cron",
};
const UNITS: Record<Unit, MessageKey> = {
  minutes: "schedules.unit-minutes",
  hours: "schedules.unit-hours",
  days: "schedules.unit-days",
};

interface Props {
  schedules: Schedules;
  schedule?: Schedule;
  close: () => void;
}

export function ScheduleForm({ schedules, schedule, close }: Props) {
  const id = useId();
  const key = schedule?.id ?? "new";
  const [draft, setDraft] = useState(() => schedulesPlace.drafts.get(key) ?? draftOf(schedule));
  const { problem, isBusy, attempt } = useAttempt(schedules, "panel-schedules");
  const times = timesFrom(draft.times);
  const write = (change: Partial<ScheduleDraft>) => {
    const next = { ...draft, ...change };
    schedulesPlace.drafts.set(key, next);
    setDraft(next);
  };
  const leave = () => {
    schedulesPlace.drafts.delete(key);
    close();
  };
  const submit = async (event: Event) => {
    event.preventDefault();
    if (!times) return;
    const sent = { prompt: draft.prompt, title: draft.title, times };
    let made = "";
    const isDone = await attempt(async () => {
      const { api } = schedules;
      made = (schedule ? await api.change(schedule.id, sent) : await api.create(sent)).id;
    });
    if (!isDone) return;
    schedulesPlace.drafts.delete(key);
    schedulesPlace.open({ kind: "item", key: made });
  };
  return (
    <Item title={t(schedule ? "schedules.edit" : "schedules.add")} backTo={t("schedules.all")} close={close}>
      <form class="tools-form" onSubmit={submit}>
        <p class="muted">{t("schedules.add-about")}</p>
        <label for={`${id}-prompt`} class="field-label">{t("schedules.prompt")}</label>
        <textarea
          id={`${id}-prompt`}
          class="field"
          required
          rows={4}
          maxLength={20_000}
          dir="auto"
          value={draft.prompt}
          onInput={(event) => write({ prompt: event.currentTarget.value })}
        />
        <label for={`${id}-title`} class="field-label">{t("schedules.title-label")}</label>
        <input
          id={`${id}-title`}
          class="field"
          type="text"
          maxLength={100}
          dir="auto"
          autocomplete="off"
          value={draft.title}
          onInput={(event) => write({ title: event.currentTarget.value })}
        />
        <TimesFields id={id} times={draft.times} write={(change) => write({ times: { ...draft.times, ...change } })} />
        <Preview schedules={schedules} times={times && JSON.stringify(times)} />
        <Problem text={problem} />
        <p class="panel-actions">
          <button type="submit" class="button is-primary" disabled={isBusy || !times}>
            {t(schedule ? "schedules.save" : "schedules.add-confirm")}
          </button>
          <button type="button" class="button" onClick={leave}>{t("common.cancel")}</button>
        </p>
      </form>
    </Item>
  );
}

const draftOf = (schedule?: Schedule): ScheduleDraft => ({
  prompt: schedule?.prompt ?? "",
  title: schedule?.title ?? "",
  times: schedule ? timesOf(schedule) : newTimes(),
});

interface TimesProps {
  id: string;
  times: TimesDraft;
  write: (change: Partial<TimesDraft>) => void;
}

function TimesFields({ id, times, write }: TimesProps) {
  return (
    <>
      <label for={`${id}-way`} class="field-label">{t("schedules.way")}</label>
      <select
        id={`${id}-way`}
        class="field"
        value={times.way}
        onChange={(event) => write({ way: event.currentTarget.value as Way })}
      >
        {Object.entries(WAYS).map(([way, key]) => <option key={way} value={way}>{t(key)}</option>)}
      </select>
      {times.way === "clock" && <ClockFields id={id} times={times} write={write} />}
      {times.way === "interval" && <IntervalFields id={id} times={times} write={write} />}
      {times.way === "once" && (
        <Field
          id={`${id}-once`}
          label={t("schedules.at")}
          type="datetime-local"
          value={times.instant}
          write={(instant) => write({ instant })}
        />
      )}
      {times.way === "cron" && (
        <>
          <Field
            id={`${id}-cron`}
            label={t("schedules.cron")}
            type="text"
            value={times.cron}
            write={(cron) => write({ cron })}
          />
          <p class="muted">{t("schedules.cron-about")}</p>
        </>
      )}
      {times.way !== "interval" && <ZoneField id={id} times={times} write={write} />}
    </>
  );
}

function ClockFields({ id, times, write }: TimesProps) {
  return (
    <>
      <Field
        id={`${id}-clock`}
        label={t("schedules.clock")}
        type="time"
        value={times.clock}
        write={(clock) => write({ clock })}
      />
      <label for={`${id}-days`} class="field-label">{t("schedules.days")}</label>
      <select
        id={`${id}-days`}
        class="field"
        value={times.days}
        onChange={(event) => write({ days: event.currentTarget.value })}
      >
        {DAYS.map((days) => <option key={days} value={days}>{daysText(days)}</option>)}
      </select>
    </>
  );
}

function IntervalFields({ id, times, write }: TimesProps) {
  return (
    <>
      <Field
        id={`${id}-every`}
        label={t("schedules.every-count")}
        type="number"
        value={times.every}
        write={(every) => write({ every })}
      />
      <label for={`${id}-unit`} class="field-label">{t("schedules.unit")}</label>
      <select
        id={`${id}-unit`}
        class="field"
        value={times.unit}
        onChange={(event) => write({ unit: event.currentTarget.value as Unit })}
      >
        {Object.entries(UNITS).map(([unit, key]) => <option key={unit} value={unit}>{t(key)}</option>)}
      </select>
    </>
  );
}

function ZoneField({ id, times, write }: TimesProps) {
  const [zones] = useState(() => Intl.supportedValuesOf("timeZone"));
  return (
    <>
      <Field
        id={`${id}-zone`}
        label={t("schedules.zone")}
        type="text"
        list={`${id}-zones`}
        value={times.zone}
        write={(zone) => write({ zone })}
      />
      <datalist id={`${id}-zones`}>{zones.map((zone) => <option key={zone} value={zone} />)}</datalist>
    </>
  );
}

interface FieldProps {
  id: string;
  label: string;
  type: "text" | "time" | "number" | "datetime-local";
  value: string;
  list?: string;
  write: (text: string) => void;
}

function Field({ id, label, type, value, list, write }: FieldProps) {
  return (
    <>
      <label for={id} class="field-label">{label}</label>
      <input
        id={id}
        class="field"
        type={type}
        required
        dir="ltr"
        list={list}
        min={type === "number" ? 1 : undefined}
        maxLength={type === "text" ? 100 : undefined}
        autocomplete="off"
        spellcheck={false}
        value={value}
        onInput={(event) => write(event.currentTarget.value)}
      />
    </>
  );
}

/** The next times of what is chosen, by the server: it knows the zones and their changes. `times`: as JSON. */
function Preview({ schedules: { api }, times }: { schedules: Schedules; times: string | null }) {
  const [next, setNext] = useState<string[]>([]);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (!times) return setNext([]);
    const abort = new AbortController();
    const read = async () => {
      try {
        const found = await api.preview(JSON.parse(times), abort.signal);
        setNext(found);
        setProblem("");
      } catch (error) {
        if (abort.signal.aborted) return;
        setNext([]);
        setProblem(messageOf(error));
      }
    };
    const due = new Due();
    due.set(read, PAUSE_MS);
    return () => {
      due.clear();
      abort.abort();
    };
  }, [times]);
  return (
    <div class="schedule-preview" aria-live="polite">
      {problem ? <p class="is-error">{problem}</p> : <NextTimes next={next} />}
    </div>
  );
}
