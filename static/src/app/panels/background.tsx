// The background work of a conversation: agents that work for it as a tree, fibers of its agent as a list, or one of these.

import { useEffect, useRef, useState } from "preact/hooks";
import { timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { follow } from "../lib/store.ts";
import { BackgroundApi, type Fiber, MOST, type Work } from "../net/background_api.ts";
import {
  attemptsText,
  fiberStanding,
  groupsOf,
  isUnderWay,
  joined,
  nameOfFiber,
  runGoesOn,
  sinceOf,
  tookText,
  treeOf,
} from "../store/background_facts.ts";
import { backgroundPlace } from "../store/background_place.ts";
import { useApp } from "../ui/context.ts";
import { Elapsed } from "../ui/elapsed.tsx";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { FiberView } from "./fiber_view.tsx";
import { Failure } from "./panel.tsx";
import { type Reading, useReading } from "../ui/reading.ts";
import type { PanelProps } from "./registry.ts";
import { RunTree } from "./run_tree.tsx";

const LOOK_MS = 5_000; // for what happens without a word: another attempt, a worker that was lost
const REST_MS = 60_000;

/** What all parts of the view need. */
export interface Background {
  api: BackgroundApi;
  reading: Reading<Work>;
  /** Whether the person may only look. */
  isReadOnly: boolean;
}

export function BackgroundPanel({ conversation }: PanelProps) {
  const { id } = conversation.instance;
  return id ? <Begun conversation={conversation} /> : <p class="muted">{t("panel.not-begun")}</p>;
}

function Begun({ conversation }: PanelProps) {
  const app = useApp();
  const { id, isReadOnly } = conversation.instance;
  const [api] = useState(() => new BackgroundApi(app.api, id));
  const reading = useReading(conversation, (signal) => api.read(signal));
  useLive(conversation, reading);
  useEffect(() => backgroundPlace.enter(id), []);
  const { openId, instanceId } = follow(backgroundPlace);
  const last = useRef(""); // the row that gets the focus when its item is closed
  const shownId = instanceId === id ? openId : "";
  if (shownId) last.current = shownId;
  const work = reading.value;
  if (!work) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("background.loading")}</p>;
  }
  const background = { api, reading, isReadOnly };
  const fiber = work.fibers.find((each) => each.id === shownId);
  return (
    <>
      <Problem text={reading.error} />
      {fiber
        ? <FiberView key={fiber.id} background={background} fiber={fiber} close={() => backgroundPlace.open("")} />
        : <Lists background={background} work={work} instanceId={id} last={last.current} />}
    </>
  );
}

/** Read again when the line tells of a change, and now and then: sooner while something is under way. */
function useLive({ events, instance }: PanelProps["conversation"], reading: Reading<Work>): void {
  useEffect(() => {
    const off = [
      events.on("listed", ({ id }) => id === instance.id && reading.soon()),
      events.on("run", ({ event }) => event.kind !== "chunk" && reading.soon()),
    ];
    return () => off.forEach((stop) => stop());
  }, []);
  useEffect(() => {
    const { fibers, tree } = reading.value ?? { fibers: [], tree: { items: [] } };
    const isBusy = fibers.some(isUnderWay) || tree.items.some(runGoesOn);
    if (reading.value) reading.watch(isBusy ? LOOK_MS : REST_MS);
  }, [reading.value]);
}

interface ListsProps {
  background: Background;
  work: Work;
  instanceId: string;
  last: string;
}

function Lists({ background, work: { fibers, tree }, instanceId, last }: ListsProps) {
  const { panel } = useApp();
  const element = useRef<HTMLDivElement>(null);
  const { shown } = follow(backgroundPlace);
  useEffect(() => {
    if (!last || document.activeElement !== document.body) return;
    const rows = [...element.current!.querySelectorAll<HTMLElement>("[data-row]")];
    const row = rows.find((item) => item.dataset.row === last);
    (row ?? document.getElementById("panel-background"))?.focus({ preventScroll: !row });
  }, []);
  const { attention, underWay, ended } = groupsOf(fibers);
  const nodes = treeOf(tree.items, instanceId);
  return (
    <div class="tools-lists" ref={element}>
      <p class="muted">{t(fibers.length || nodes.length ? "background.about" : "background.none")}</p>
      <Rows title={t("background.attention")} fibers={attention} />
      <RunTree background={background} nodes={nodes} isComplete={tree.is_complete} />
      <Rows title={t("background.under-way")} fibers={underWay} />
      <Rows title={t("background.ended")} fibers={ended.slice(0, shown)} left={ended.length - shown} />
      {fibers.length >= MOST && <p class="muted">{t("background.newest-only")}</p>}
      <section aria-label={t("background.schedules")}>
        <p class="muted">{t("background.schedules-about")}</p>
        <p class="panel-actions">
          <button type="button" class="button" onClick={() => panel.open("schedules")}>
            <Icon name="calendar" />
            {t("background.schedules")}
          </button>
        </p>
      </section>
    </div>
  );
}

function Rows({ title, fibers, left = 0 }: { title: string; fibers: Fiber[]; left?: number }) {
  const list = useRef<HTMLUListElement>(null);
  if (!fibers.length) return null;
  const more = () => {
    const { length } = fibers;
    backgroundPlace.showMore();
    setTimeout(() => list.current?.querySelectorAll<HTMLElement>("[data-row]")[length]?.focus());
  };
  return (
    <section aria-label={title}>
      <h2 class="tools-heading">{title}</h2>
      <ul class="tools-rows" ref={list}>
        {fibers.map((fiber) => <Row key={fiber.id} fiber={fiber} />)}
      </ul>
      {left > 0 && (
        <p class="panel-actions">
          <button type="button" class="button" onClick={more}>{t("background.show-more", { count: left })}</button>
        </p>
      )}
    </section>
  );
}

function Row({ fiber }: { fiber: Fiber }) {
  const { text, mood } = fiberStanding(fiber);
  const times = joined([timeLabel(fiber.created_at), tookText(fiber), fiber.attempts > 1 ? attemptsText(fiber) : ""]);
  return (
    <li>
      <button type="button" class="tools-row" data-row={fiber.id} onClick={() => backgroundPlace.open(fiber.id)}>
        <Icon name="chart" />
        <span class="tools-row-text">
          <bdi class="tools-name">{withoutTricks(nameOfFiber(fiber))}</bdi>
          <span class="muted">
            {times} {fiber.status === "running" && <Elapsed since={sinceOf(fiber)} />}
          </span>
        </span>
        <span class={`tools-state ${mood}`}>{text}</span>
      </button>
    </li>
  );
}
