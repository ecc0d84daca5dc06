// The messages of a conversation: keyed by their ids, so that each keeps its elements; older and newer ones load by themselves
// as one scrolls; the end is followed while one is there.

import { computed } from "@preact/signals-core";
import type { RefObject } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { begin, pending } from "../lib/busy.ts";
import { onContentClick, tellCopied } from "../lib/clipboard.ts";
import { t } from "../lib/i18n.ts";
import { idle } from "../lib/idle.ts";
import { follow } from "../lib/store.ts";
import type { App } from "../store/app.ts";
import type { Conversation } from "../store/conversation.ts";
import { STEER } from "../store/fold.ts";
import { OpenCalls } from "../store/open_calls.ts";
import { type Row, rowsOf } from "../store/rows.ts";
import type { DataPart, Message } from "../store/types.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { LoadMore } from "./load_more.tsx";
import { MessageView } from "./message.tsx";
import type { Parts } from "./parts_context.ts";
import { Reader } from "./reader.ts";
import { StatusLine } from "./status_line.tsx";
import { Welcome } from "./welcome.tsx";

const LooseRuns = lazy(async () => (await import("../later/calls.ts")).LooseRuns);
const SummaryLine = lazy(async () => (await import("../later/views.ts")).SummaryLine);

export function Timeline() {
  const app = useApp();
  const { conversation } = app;
  const scroller = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const reader = useMemo(() => new Reader(conversation), [conversation]);
  const copy = async (text: string, button: HTMLElement) => {
    if (await app.copy(text)) tellCopied(button);
  };
  const preview = async (button: HTMLElement) => (await pending(import("../later/views.ts"))).openPreview(app, button);
  useLayoutEffect(() => reader.attach(scroller.current!, list.current!), [reader]);
  return (
    <div class="stage">
      <div
        id="scroller"
        class="scroller"
        tabIndex={0}
        role="region"
        aria-label={t("message.messages")}
        ref={scroller}
        onClick={(event) => onContentClick(event, { copy, preview })}
      >
        <div class="column">
          <List app={app} conversation={conversation} reader={reader} scroller={scroller} list={list} />
          <StatusLine app={app} conversation={conversation} reader={reader} />
        </div>
      </div>
      <ToEnd app={app} conversation={conversation} reader={reader} />
    </div>
  );
}

/** The id of a message, and of those that it took in. */
const idsIn = ({ id, parts }: Message): string[] => [
  id,
  ...parts.filter((part) => part.type === STEER).map((part) => (part as DataPart).id ?? ""),
];

interface ListProps {
  app: App;
  conversation: Conversation;
  reader: Reader;
  scroller: RefObject<HTMLElement | null>;
  list: RefObject<HTMLOListElement | null>;
}

function List({ app, conversation, reader, scroller, list }: ListProps) {
  follow(app.place);
  follow(conversation);
  follow(reader);
  const outbox = follow(app.outbox);
  const rows = rowsOf({
    messages: conversation.messages,
    queued: conversation.queued,
    entries: outbox.entries,
    compactions: follow(app.summaries).compactions,
    isElsewhere: conversation.place !== null,
    running: conversation.running,
    answerOf: (requestId) => conversation.streams.get(requestId)?.message,
  });
  useLayoutEffect(() => {
    const known = new Set([...conversation.messages, ...conversation.queued].flatMap(idsIn));
    outbox.settle(known, conversation.readAt);
    reader.drawn();
    if (app.place.reveal) reader.reveal(app.place.reveal);
  });
  useLayoutEffect(() => reader.toEnd(), [app.place.endWishes]);
  const drawn = useDrawn(rows, conversation.place !== null || app.place.reveal !== null);
  const isEmpty = rows.length === 0 && conversation.isLoaded;
  return (
    <>
      <LoadMore
        id="older"
        label="message.earlier"
        failed="message.earlier-failed"
        isThere={conversation.hasMore && drawn.length === rows.length}
        scroller={scroller}
        load={() => conversation.loadOlder()}
      />
      {isEmpty && <Welcome app={app} conversation={conversation} />}
      {(conversation.hasMore || conversation.hasNewer) && <p class="print-note">{t("conversation.print-part")}</p>}
      <Rows app={app} conversation={conversation} reader={reader} rows={drawn} list={list} />
      {conversation.delegated && <LooseRuns app={app} conversation={conversation} reader={reader} />}
      <LoadMore
        id="newer"
        label="message.later"
        failed="message.later-failed"
        isThere={conversation.hasNewer}
        scroller={scroller}
        load={() => conversation.loadNewer()}
      />
    </>
  );
}

const FIRST_ROWS = 4; // what is seen of a conversation that opens
const MORE_ROWS = 2; // in one idle moment

/** The last rows at first, and those above when the page is idle: laying out long answers takes time. `isWhole`: one reads elsewhere. */
function useDrawn(rows: readonly Row[], isWhole: boolean): readonly Row[] {
  const [count, setCount] = useState(isWhole ? Infinity : FIRST_ROWS);
  const isCut = count < rows.length && !isWhole;
  useEffect(() => {
    if (!rows.length) return;
    if (!isCut) return setCount(Infinity); // what comes later is drawn at once
    const end = begin();
    let isGone = false;
    idle().then(() => {
      if (!isGone) setCount(count + MORE_ROWS);
      end();
    });
    return () => {
      isGone = true;
      end();
    };
  }, [count, isCut, rows.length > 0]);
  return isCut ? rows.slice(-count) : rows;
}

function Rows({ app, conversation, reader, rows, list }: Omit<ListProps, "scroller"> & { rows: readonly Row[] }) {
  const context = useMemo<Parts>(
    () => ({ app, conversation, reader, openCalls: new OpenCalls(app.api, conversation) }),
    [conversation],
  );
  const editing = useMemo(() => computed(() => follow(app.composer).editing?.id), []); // not each letter that is typed
  const lastId = conversation.messages.at(-1)?.id;
  return (
    <ol id="messages" class="messages" ref={list}>
      {rows.map((row) =>
        row.kind === "summary"
          ? (
            <SummaryLine
              key={`summary ${row.compaction.id}`}
              context={context}
              compaction={row.compaction}
              isUsed={row.isUsed}
            />
          )
          : (
            <MessageView
              key={row.message.id}
              context={context}
              message={row.message}
              pending={row.pending}
              error={row.error}
              limit={row.limit}
              isFirst={row.isFirst}
              isContinued={row.isContinued}
              earlier={row.earlier}
              isLast={row.message.id === lastId}
              isEdited={row.message.id === editing.value}
              isFound={row.message.id === reader.foundId}
              hasWords={row.message.id === reader.foundId && reader.hasWords}
            />
          )
      )}
    </ol>
  );
}

/** The way back down, while one reads further up. */
function ToEnd({ app, conversation, reader }: { app: App; conversation: Conversation; reader: Reader }) {
  follow(conversation);
  follow(reader);
  const toEnd = async () => {
    try {
      await conversation.toEnd();
    } catch (error) {
      return app.notices.fail(error);
    }
    app.place.scrollToEnd();
    reader.focus(); // the button goes away: the focus must not
  };
  return (
    <button
      id="to-end"
      type="button"
      class={reader.hasNews ? "to-end has-news" : "to-end"}
      hidden={reader.isFollowing && !conversation.hasNewer}
      onClick={toEnd}
    >
      <Icon name="down" />
      <span>{t("message.to-end")}</span>
    </button>
  );
}
