// Under a message: what one can do with it, its versions, and what it took. One answer has one foot, however many turns it took.

import { useState } from "preact/hooks";
import { fullTime, timeLabel, usageFacts } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { isCompact } from "../lib/media.ts";
import type { Pending } from "../store/rows.ts";
import { openQuestions } from "../store/runs.ts";
import { turnFacts, turnOf } from "../store/turn_sum.ts";
import type { Limit, Message, TurnFacts } from "../store/types.ts";
import { Icon, IconButton } from "./icon.tsx";
import { FeedbackButtons } from "./feedback.tsx";
import { lazy } from "./lazy.tsx";
import { actionsOf, type MessageAction } from "./message_actions.ts";
import type { Parts } from "./parts_context.ts";
import { MenuButton } from "./popover.tsx";
import { Siblings } from "./siblings.tsx";

const Grip = lazy(async () => (await import("../later/views.ts")).Grip);
const LimitNote = lazy(async () => (await import("../later/views.ts")).LimitNote);

const PENDING = {
  behind: "message.queued-behind",
  queued: "message.sent",
  accepted: "message.sent",
  sending: "message.sending",
  waiting: "message.will-be-sent",
  after: "message.sent-after",
} as const;

interface PendingProps {
  context: Parts;
  message: Message;
  pending: Exclude<Pending, "">;
  error: string;
  limit: Limit | null;
}

/** How a message is on its way, and how to take it back. */
export function PendingFoot({ context: { app }, message, pending, error, limit }: PendingProps) {
  const { sending } = app;
  return (
    <div class="message-foot">
      {limit ? <LimitNote limit={limit} isMessage /> : (
        <span class="muted">
          {error
            ? t(pending === "waiting" ? "message.not-yet-sent" : "message.not-sent", { reason: error })
            : t(message.turn?.delivery === "steer" ? "message.steers" : PENDING[pending as keyof typeof PENDING])}
        </span>
      )}
      {(pending === "refused" || pending === "waiting" || pending === "after") && (
        <>
          {!limit?.passes && pending !== "after" && (
            <button
              type="button"
              class="quiet"
              onClick={() => sending.resend(message)}
            >
              {t("common.try-again")}
            </button>
          )}
          <button type="button" class="quiet" onClick={() => sending.takeBack(message)}>
            {t("message.take-back")}
          </button>
        </>
      )}
      {(pending === "behind" || pending === "queued") && (
        <>
          <button type="button" class="quiet" onClick={() => sending.editWaiting(message)}>
            {t("message.edit-waiting")}
          </button>
          <button type="button" class="quiet" onClick={() => sending.unqueue(message)}>{t("message.dont-send")}</button>
          <Grip move={(by) => sending.move(message, by)} />
        </>
      )}
    </div>
  );
}

interface FootProps {
  context: Parts;
  message: Message;
  earlier: readonly Message[];
  isContinued: boolean;
}

export function MessageFoot({ context, message, earlier, isContinued }: FootProps) {
  for (const item of [...earlier, message]) context.conversation.revision(item.id); // each announces its own changes
  if (isContinued) return null; // the end of the answer has it
  if (message.isLive) return <div class="message-foot" />;
  if (isAsked(context, message)) return null; // what it asks comes first
  const whole = [...earlier, message];
  const actions = actionsOf(context, message, whole);
  const switches = whole.filter((item) => item.siblings.length > 1);
  const turn = message.role === "assistant" ? turnOf(whole) : null;
  return (
    <>
      {message.role === "assistant" && <ChangedLine context={context} whole={whole} />}
      <div class={message.role === "assistant" ? "message-foot" : "message-foot is-quiet"}>
        {switches.map((item) => <Siblings key={item.id} context={context} message={item} />)}
        {isCompact.value ? <More actions={actions} /> : (
          <>
            {actions.filter(({ isRare }) => !isRare).map((action) => <Action key={action.icon} {...action} />)}
            <More actions={actions.filter(({ isRare }) => isRare)} />
          </>
        )}
        {message.role === "assistant" && context.conversation.instance.id && (
          <FeedbackButtons context={context} message={message} />
        )}
        {turn && <Facts context={context} turn={turn} at={message.createdAt} />}
        {!!message.metadata.schedule && <span class="meta">{t("message.scheduled")}</span>}
        {message.createdAt && !turn && (
          <time class="meta when" dateTime={message.createdAt} title={fullTime(message.createdAt)}>
            {timeLabel(message.createdAt)}
          </time>
        )}
      </div>
    </>
  );
}

/** Whether this is what the conversation waits with: a person is to decide. */
const isAsked = ({ conversation }: Parts, message: Message): boolean =>
  conversation.messages.at(-1) === message && openQuestions(conversation).length > 0;

/** How many files the answer changed, as the server counted them; it opens the panel at them. Of several turns some may be the same. */
function ChangedLine({ context, whole }: { context: Parts; whole: readonly Message[] }) {
  const turns = whole.flatMap(({ turn }) => (turn?.changed_file_count ? [turn] : []));
  if (!turns.length) return null;
  const { app, conversation } = context;
  return (
    <p class="changed-line">
      <Icon name="file" />
      <span>
        {turns.length > 1
          ? t("message.several-files-changed")
          : t("message.files-changed", { count: turns[0].changed_file_count! })}
      </span>
      <button type="button" class="quiet" onClick={() => app.showChanges(turns.map((turn) => turn.id))}>
        {t("message.review")}
      </button>
      {!conversation.instance.isReadOnly && (
        <button
          type="button"
          class="quiet"
          onClick={() => app.undoing.ask(turns[0].id)}
        >
          {t("message.undo")}
        </button>
      )}
    </p>
  );
}

const DONE_MS = 1_400;

/** A symbol whose name is seen when one comes near it with the pointer or the keyboard. */
function Action({ icon, label, run, done }: MessageAction) {
  const [note, setNote] = useState("");
  const onClick = async () => {
    if (!(await run()) || !done) return;
    setNote(done);
    setTimeout(() => setNote(""), DONE_MS);
  };
  return (
    <IconButton
      class="is-named"
      icon={note ? "check" : icon}
      label={label}
      title={undefined}
      data-note={note || undefined}
      onClick={onClick}
    />
  );
}

/** The same, where there is no room for a row of symbols or no pointer to ask what they mean. */
function More({ actions }: { actions: readonly MessageAction[] }) {
  if (!actions.length) return null;
  const label = t("message.more");
  return (
    <MenuButton
      label={label}
      button={{ class: "icon-button", "aria-label": label, title: label, children: <Icon name="more" /> }}
      entries={() => [...actions]}
    />
  );
}

/** What the answer took; it opens to the figures behind it and those of the whole conversation. */
function Facts({ context, turn, at }: { context: Parts; turn: TurnFacts; at: string | null }) {
  const [isOpen, setOpen] = useState(false);
  const [usage, setUsage] = useState("");
  const { short, long } = turnFacts(turn);
  const shown = [at && timeLabel(at), short].filter(Boolean).join(" · ");
  if (!shown) return null;
  const toggle = async () => {
    setOpen(!isOpen);
    if (isOpen) return;
    try {
      setUsage(usageFacts(await context.app.api.usage(context.conversation.instance.id)));
    } catch {
      setUsage(""); // the turn's own figures are there all the same
    }
  };
  return (
    <>
      <button type="button" class="meta facts" title={t("message.facts")} aria-expanded={isOpen} onClick={toggle}>
        {shown}
      </button>
      <p class="facts-more" hidden={!isOpen}>{usage ? t("message.facts-and-usage", { facts: long, usage }) : long}</p>
    </>
  );
}
