// All calls that wait for this person's decision, in every conversation: the newest first, those of one conversation together.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { timeLabel } from "../lib/format.ts";
import { formatCount, type MessageKey, t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { follow } from "../lib/store.ts";
import type { App } from "../store/app.ts";
import type { Approval } from "../store/approvals.ts";
import type { Decision } from "../store/deciding.ts";
import { AgentName } from "./agent_mark.tsx";
import { ApprovalCard, sourcesIn } from "./approval_card.tsx";
import { Skeleton } from "./conversation_list.tsx";
import { useApp } from "./context.ts";
import { FollowLink } from "./follow_link.tsx";
import { ListButtons } from "./head.tsx";
import { Icon } from "./icon.tsx";
import { ShowMore } from "./show_more.tsx";

export function ApprovalsPage({ isCovered = false }: { isCovered?: boolean }) {
  const app = useApp();
  follow(app.place);
  const approvals = follow(app.approvals);
  const body = useRef<HTMLDivElement>(null);
  const title = useRef<HTMLHeadingElement>(null);
  useEffect(() => title.current!.focus(), []);
  const [decided, setDecided] = useState<readonly Decided[]>([]);
  const keepFocus = useNextFocus(body, title, (each) => setDecided((others) => [...others, each]));
  const groups = groupsOf(approvals.items);
  return (
    <section id="main" class="main approvals" aria-labelledby="title" inert={isCovered}>
      <header class="main-head">
        <ListButtons />
        <div class="head-title">
          <h1 id="title" tabIndex={-1} ref={title}>{t("list.approvals")}</h1>
          {approvals.count > 0 && <span class="count">{formatCount(approvals.count)}</span>}
        </div>
      </header>
      <div id="scroller" class="scroller" tabIndex={0} role="region" aria-label={t("approvals.waiting")}>
        <div class="column" ref={body}>
          <State />
          {groups.map((items) => (
            <Group
              key={items[0].instance_id}
              items={items}
              decide={(item, decision) => keepFocus(app, item, decision)}
            />
          ))}
          {decided.length > 0 && <DecidedList app={app} decided={decided} />}
          <ShowMore
            id="more-approvals"
            label={t("common.show-more")}
            isShown={approvals.hasMore}
            load={() => approvals.more()}
            rows={body}
          />
        </div>
      </div>
    </section>
  );
}

/** A call that was decided here. */
interface Decided {
  item: Approval;
  decision: Decision;
}

function outcomeOf({ approved, editedInput, always, deniesAll }: Decision): MessageKey {
  if (!approved) return deniesAll ? "approvals.was-declined-all" : "approvals.was-declined";
  if (always) return "approvals.was-allowed-always";
  return editedInput ? "approvals.was-allowed-edited" : "approvals.was-allowed";
}

/** What became of the calls that were decided while one was here. */
function DecidedList({ app, decided }: { app: App; decided: readonly Decided[] }) {
  return (
    <section class="approvals-decided" aria-labelledby="approvals-decided">
      <h2 id="approvals-decided">{t("approvals.decided")}</h2>
      <ul>
        {decided.map(({ item, decision }) => (
          <li key={item.call_id}>
            <Icon name={decision.approved ? "check" : "close"} />
            <div>
              <p>{t(outcomeOf(decision))}</p>
              <p class="muted" dir="auto">{withoutTricks(item.sentence || item.tool_title || item.tool)}</p>
              {decision.reason && <p class="muted" dir="auto">{t("approvals.quoted", { words: decision.reason })}</p>}
            </div>
            <FollowLink
              href={app.router.address({ page: "conversation", id: item.instance_id, place: null })}
              go={() => app.place.open(item.instance_id)}
            >
              {t("approvals.open")}
            </FollowLink>
          </li>
        ))}
      </ul>
    </section>
  );
}

/** Conversations in the order of their newest call. */
function groupsOf(items: readonly Approval[]): Approval[][] {
  const groups = new Map<string, Approval[]>();
  for (const item of items) {
    const found = groups.get(item.instance_id);
    if (found) found.push(item);
    else groups.set(item.instance_id, [item]);
  }
  return [...groups.values()];
}

/** What stands in the place of calls: they are on their way, could not be read, or there are none. */
function State() {
  const { approvals } = useApp();
  const { items, isLoaded, error } = follow(approvals);
  if (error) {
    return (
      <div class="approvals-state is-failed" role="alert">
        <p>{t("approvals.not-loaded")}</p>
        <p class="muted">{error}</p>
        <button type="button" class="button" onClick={() => approvals.refresh()}>{t("common.try-again")}</button>
      </div>
    );
  }
  if (!isLoaded) return <Skeleton />;
  if (items.length) return null;
  return (
    <div class="approvals-state">
      <Icon name="check" />
      <h2>{t("approvals.empty")}</h2>
      <p class="muted">{t("approvals.empty-about")}</p>
    </div>
  );
}

interface GroupProps {
  items: Approval[];
  decide: (item: Approval, decision: Decision) => Promise<boolean>;
}

function Group({ items, decide }: GroupProps) {
  const app = useApp();
  const [{ instance_id: id, title, agent }] = items;
  return (
    <section class="approvals-group" aria-labelledby={`approvals-${id}`}>
      <header>
        <h2 id={`approvals-${id}`}>
          <FollowLink
            href={app.router.address({ page: "conversation", id, place: null })}
            dir="auto"
            go={() => app.place.open(id)}
          >
            {title || t("conversation.new")}
          </FollowLink>
        </h2>
        <AgentName agent={app.agentOf({ agent })} />
      </header>
      <ul>
        {items.map((item) => (
          <Item
            key={item.call_id}
            app={app}
            item={item}
            decide={(wanted) => decide(item, wanted)}
          />
        ))}
      </ul>
    </section>
  );
}

function Item({ app, item, decide }: { app: App; item: Approval; decide: (decision: Decision) => Promise<boolean> }) {
  const place = { messageId: item.message_id, sessionId: "" };
  return (
    <li class="approval" data-call={item.call_id}>
      <ApprovalCard
        tool={item.tool}
        callId={item.call_id}
        title={item.tool_title || item.tool}
        sentence={item.sentence}
        risk={item.risk}
        because={sourcesIn(item.because)}
        why={item.key}
        offers={item.offers}
        rule={item.rule}
        choices={item.choices}
        input={item.input}
        schema={item.input_schema}
        mayEdit={item.may_edit}
        expiresAt={item.expires_at}
        isReadOnly={false}
        decide={decide}
      />
      <p class="approval-foot">
        <span>{t("approvals.asked", { when: timeLabel(item.requested_at) })}</span>
        <FollowLink
          href={app.router.address({ page: "conversation", id: item.instance_id, place })}
          go={() => app.place.open(item.instance_id, { place })}
        >
          {t("approvals.open")}
        </FollowLink>
      </p>
    </li>
  );
}

/**
 * Decides, and takes the focus to the call that stands where the decided one stood, or to the heading when none is left: the
 * button that was pressed is gone.
 */
function useNextFocus(
  body: { current: HTMLElement | null },
  heading: { current: HTMLElement | null },
  note: (decided: Decided) => void,
) {
  const left = useRef<{ id: string; index: number } | null>(null);
  const cards = () => [...body.current!.querySelectorAll<HTMLElement>("[data-call]")];
  useLayoutEffect(() => {
    const shown = cards();
    if (!left.current || shown.some((card) => card.dataset.call === left.current!.id)) return;
    const next = shown[Math.min(left.current.index, shown.length - 1)];
    left.current = null;
    if (document.activeElement === document.body) (next?.querySelector("button") ?? heading.current)?.focus();
  });
  return async (app: App, item: Approval, decision: Decision): Promise<boolean> => {
    left.current = { id: item.call_id, index: cards().findIndex((card) => card.dataset.call === item.call_id) };
    const isStored = await app.deciding.decide(item.instance_id, item.call_id, item.input, decision);
    if (isStored) {
      app.announcer.say(t(decision.approved ? "approvals.allowed" : "approvals.declined"));
      app.approvals.drop(item.call_id);
      note({ item, decision });
      if (decision.always || decision.deniesAll) app.approvals.refreshSoon(); // others are settled as well
    } else app.approvals.refresh(); // another window may have decided
    return isStored;
  };
}
