// What is at work for the person in any conversation: what runs, what is planned, and what has ended of late.

import { useEffect, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { follow } from "../lib/store.ts";
import { messageOf } from "../net/api.ts";
import { WorkApi, type WorkItem, type WorkSection, type WorkVerb } from "../net/work_api.ts";
import { WorkList } from "../store/work.ts";
import { nameOf, problemOf, standingOf, timesText, verbText } from "../store/work_facts.ts";
import { AgentName } from "./agent_mark.tsx";
import { Skeleton } from "./conversation_list.tsx";
import { useApp } from "./context.ts";
import { Elapsed } from "./elapsed.tsx";
import { FollowLink } from "./follow_link.tsx";
import { ListButtons } from "./head.tsx";
import { Icon } from "./icon.tsx";
import { ShowMore } from "./show_more.tsx";

const SECTIONS: readonly WorkSection[] = ["now", "schedules", "ended"];
const HEADINGS = { now: "work.now", schedules: "work.schedules", ended: "work.ended" } as const;
const ICONS = { turn: "chat", schedule: "calendar", background: "chart" } as const;

export function WorkView({ isCovered = false }: { isCovered?: boolean }) {
  const app = useApp();
  follow(app.place);
  const [api] = useState(() => new WorkApi(app.api));
  const [lists] = useState(() => SECTIONS.map((section) => new WorkList(api, section)));
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current!.focus(), []);
  useEffect(() => {
    lists.forEach((list) => list.refresh());
    return () => lists.forEach((list) => list.stop());
  }, []);
  useEffect(() => {
    const soon = () => lists.forEach((list) => list.soon());
    const { events } = app.conversation; // its line also tells of the others
    const off = [
      events.on("listed", soon),
      events.on("spoken-end", soon),
      events.on("reconnected", soon),
      events.on("run", ({ event }) => event.kind !== "chunk" && soon()),
    ];
    return () => off.forEach((stop) => stop());
  }, [app.conversation]);
  const isEmpty = lists.every((list) => follow(list).isLoaded && !list.items.length && !list.error);
  return (
    <section id="main" class="main work" aria-labelledby="title" inert={isCovered}>
      <header class="main-head">
        <ListButtons />
        <div class="head-title">
          <h1 id="title" tabIndex={-1} ref={title}>{t("list.work")}</h1>
        </div>
      </header>
      <div id="scroller" class="scroller" tabIndex={0} role="region" aria-label={t("work.all")}>
        <div class="column">
          {isEmpty
            ? <Nothing />
            : lists.map((list) => <Section key={list.section} api={api} list={list} lists={lists} />)}
        </div>
      </div>
    </section>
  );
}

function Nothing() {
  return (
    <div class="approvals-state">
      <Icon name="calendar" />
      <h2>{t("work.empty")}</h2>
      <p class="muted">{t("work.empty-about")}</p>
    </div>
  );
}

function Section({ api, list, lists }: { api: WorkApi; list: WorkList; lists: readonly WorkList[] }) {
  const { items, isLoaded, error, section } = follow(list);
  const rows = useRef<HTMLUListElement>(null);
  if (isLoaded && !items.length && !error) return null;
  const heading = `work-${section}`;
  return (
    <section class="work-section" aria-labelledby={heading} data-section={section}>
      <h2 id={heading} tabIndex={-1}>{t(HEADINGS[section])}</h2>
      {error && (
        <p class="is-error" role="alert">
          {error} <button type="button" class="quiet" onClick={() => list.refresh()}>{t("common.try-again")}</button>
        </p>
      )}
      {!isLoaded && !error && <Skeleton />}
      <ul class="work-rows" ref={rows}>
        {items.map((item) => (
          <Row
            key={item.id}
            api={api}
            item={item}
            changed={() => lists.forEach((each) => each.refresh())}
          />
        ))}
      </ul>
      <ShowMore
        id={`more-${section}`}
        label={t("common.show-more")}
        isShown={list.hasMore}
        load={() => list.more()}
        rows={rows}
      />
    </section>
  );
}

function Row({ api, item, changed }: { api: WorkApi; item: WorkItem; changed: () => void }) {
  const app = useApp();
  const [problem, setProblem] = useState("");
  const [isBusy, setBusy] = useState(false);
  const { text, mood } = standingOf(item);
  const act = async (verb: WorkVerb) => {
    setBusy(true);
    setProblem("");
    try {
      await api.act(verb, item);
      app.announcer.say(t("work.done", { verb: verbText(verb), name: nameOf(item) }));
    } catch (error) {
      setProblem(messageOf(error));
    }
    setBusy(false);
    changed();
  };
  const times = timesText(item);
  const why = problem || problemOf(item);
  return (
    <li class="work-row" data-item={item.id} data-kind={item.kind}>
      <Icon name={ICONS[item.kind]} />
      <div class="work-text">
        <p class="work-name">
          <bdi>{withoutTricks(nameOf(item))}</bdi>
          <span class={`tools-state ${mood}`}>{text}</span>
        </p>
        <p class="work-facts">
          <FollowLink
            href={app.router.address({ page: "conversation", id: item.instance_id, place: null })}
            go={() => app.place.open(item.instance_id)}
            dir="auto"
          >
            {item.title || t("conversation.new")}
          </FollowLink>
          <AgentName agent={app.agentOf(item)} />
          {times && <span>{times}</span>}
          {item.kind !== "schedule" && !item.ended_at && item.since && <Elapsed since={Date.parse(item.since)} />}
        </p>
        {why && <p class="is-error" dir="auto">{withoutTricks(why)}</p>}
      </div>
      <p class="work-verbs">
        {item.verbs.map((verb) => (
          <button
            key={verb}
            type="button"
            class="button"
            aria-label={t("work.verb-of", { verb: verbText(verb), name: nameOf(item) })}
            disabled={isBusy}
            onClick={() => act(verb)}
          >
            {verbText(verb)}
          </button>
        ))}
      </p>
    </li>
  );
}
