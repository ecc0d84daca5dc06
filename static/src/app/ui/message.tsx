// One message: who speaks, its parts, and under it what one can do with it. A chunk draws the message that it changes and reads
// no other one.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { isLongText } from "../lib/long_text.ts";
import { follow } from "../lib/store.ts";
import { isOwn } from "../store/instances.ts";
import type { Pending } from "../store/rows.ts";
import { textOf } from "../store/text_of.ts";
import type { Limit, Message } from "../store/types.ts";
import { AgentMark } from "./agent_mark.tsx";
import { memo } from "./memo.ts";
import { MessageFoot, PendingFoot } from "./message_foot.tsx";
import { MessageParts } from "./parts.tsx";
import { PersonMark } from "./person_mark.tsx";
import type { Parts } from "./parts_context.ts";

export interface MessageProps {
  context: Parts;
  message: Message;
  pending: Pending;
  error: string;
  limit: Limit | null;
  isFirst: boolean;
  isContinued: boolean;
  earlier: readonly Message[];
  isLast: boolean;
  isEdited: boolean;
  isFound: boolean;
  hasWords: boolean;
}

/** What a person has opened in a message; it outlives the views inside. */
export interface Opened {
  calls: Set<string>;
}

function MessageItem(props: MessageProps) {
  const { context, message, pending, earlier } = props;
  context.conversation.revision(message.id); // draws it again when it changes
  const opened = useRef<Opened>({ calls: new Set() });
  return (
    <li class={classOf(props)} data-id={message.id}>
      <Head {...props} />
      <WrittenBy context={context} message={message} />
      <Body context={context} message={message} isLast={props.isLast} opened={opened.current} />
      {pending
        ? <PendingFoot context={context} message={message} pending={pending} error={props.error} limit={props.limit} />
        : <MessageFoot context={context} message={message} earlier={earlier} isContinued={props.isContinued} />}
    </li>
  );
}

export const MessageView = memo(MessageItem);

function classOf({ message, pending, isFirst, isContinued, isEdited, isFound, hasWords }: MessageProps): string {
  const marks = {
    "is-live": message.isLive,
    "is-pending": pending !== "",
    "is-continuation": !isFirst,
    "is-continued": isContinued,
    "is-edited": isEdited,
    "is-found": isFound,
    "has-words": hasWords,
  };
  const set = Object.entries(marks).filter(([, isSet]) => isSet).map(([name]) => name);
  return ["message", `is-${message.role}`, ...set].join(" ");
}

const WRITTEN = { staff: "message.by-staff", you: "message.by-you", owner: "message.by-owner" } as const;
const EDITED = {
  staff: "message.edited-staff",
  you: "message.edited-you",
  owner: "message.edited-owner",
} as const;

/** Under the head of an answer that a person wrote or changed in the model's place: who, and when. */
function WrittenBy({ context, message }: Pick<MessageProps, "context" | "message">) {
  const { writtenBy } = message.metadata;
  if (!writtenBy || message.role !== "assistant") return null;
  const who = writtenBy === "staff" ? "staff" : isOwn(context.conversation.instance) ? "you" : "owner";
  const key = (message.siblings.length > 1 ? EDITED : WRITTEN)[who];
  return (
    <p class="written-by" title={message.createdAt ? fullTime(message.createdAt) : undefined}>
      {t(key, { when: message.createdAt ? timeLabel(message.createdAt) : "" })}
    </p>
  );
}

/** Who speaks: shown above an answer, spoken above every message. */
function Head({ context, message, pending, isFirst }: MessageProps) {
  if (message.role !== "assistant") {
    if (message.role === "user" && follow(context.app.people).areSeveral) {
      return <PersonHead {...{ context, message, pending }} />;
    }
    return <h2 class="visually-hidden">{t(wordsOf(message.role, context))}</h2>;
  }
  const { app, conversation } = context;
  const agent = app.agentOf(conversation.instance);
  if (!isFirst) return <h2 class="visually-hidden">{t("message.answer-continued")}</h2>;
  return (
    <>
      <h2 class="visually-hidden">{t("message.answer-of", { agent: agent.title })}</h2>
      <p class="message-head" aria-hidden="true">
        <AgentMark agent={agent} />
        <span dir="auto">{agent.title}</span>
      </p>
    </>
  );
}

/** Who reads by a link did not say what stands there. */
function wordsOf(role: Message["role"], { app }: Parts) {
  if (role !== "user") return "message.system";
  return app.boot.shared ? "message.asked" : "message.you-said";
}

/** Where several people write: who wrote this. */
function PersonHead({ context, message, pending }: Pick<MessageProps, "context" | "message" | "pending">) {
  const { name, isYou } = context.app.people.authorOf(message, pending !== "");
  return (
    <>
      <h2 class="visually-hidden">{isYou ? t("message.you-said") : t("message.person-said", { name })}</h2>
      <p class="message-head is-person" aria-hidden="true">
        <PersonMark name={name} />
        <span dir="auto">{isYou ? t("message.you") : name}</span>
      </p>
    </>
  );
}

interface BodyProps {
  context: Parts;
  message: Message;
  isLast: boolean;
  opened: Opened;
}

function Body({ context, message, isLast, opened }: BodyProps) {
  const parts = <MessageParts context={context} message={message} isLast={isLast} opened={opened} />;
  if (message.role === "user" && isLongText(textOf(message))) return <LongBody>{parts}</LongBody>;
  return <div class="message-body">{parts}</div>;
}

/** A pasted log is not in the way: its beginning is shown, the rest on demand. */
function LongBody({ children }: { children: ComponentChildren }) {
  const [isWhole, setWhole] = useState(false);
  return (
    <div class={isWhole ? "message-body" : "message-body is-cut"}>
      {children}
      <button type="button" class="quiet" aria-expanded={isWhole} onClick={() => setWhole(!isWhole)}>
        {t(isWhole ? "message.show-less" : "common.show-all")}
      </button>
    </div>
  );
}
