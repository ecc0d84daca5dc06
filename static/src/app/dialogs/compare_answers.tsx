// Two answers to one question side by side, each drawn as in the conversation, with what it took; one is chosen to go on from.

import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { duration, evenMoney, fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import type { App } from "../store/app.ts";
import { Conversation } from "../store/conversation.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { OpenCalls } from "../store/open_calls.ts";
import { fromPage } from "../store/path.ts";
import { turnOf } from "../store/turn_sum.ts";
import type { Instance, Message } from "../store/types.ts";
import type { Opened } from "../ui/message.tsx";
import { MessageParts } from "../ui/parts.tsx";
import type { Parts } from "../ui/parts_context.ts";
import { Problem } from "../ui/problem.tsx";
import { Reader } from "../ui/reader.ts";
import { Dialog } from "./dialog.tsx";

type Answer = readonly Message[];

const AROUND = 21; // messages; an answer that waited for decisions is several

/** An answer is its message and those that take it up below. */
async function readAnswer(app: App, instanceId: string, id: string): Promise<Answer> {
  const { messages } = fromPage(await app.api.messages(instanceId, { around: id, limit: AROUND }));
  const from = messages.findIndex((message) => message.id === id);
  const end = messages.findIndex((message, at) => at > from && message.role !== "assistant");
  return messages.slice(from, end < 0 ? undefined : end);
}

export function CompareAnswers({ app, instance, ids, current, close }: DialogProps<"compare-answers">) {
  const at = ids.indexOf(current);
  const [pair, setPair] = useState<readonly string[]>(() => at > 0 ? [ids[at - 1], ids[at]] : [ids[0], ids[1]]);
  const context = useMemo(() => readingContext(app, instance), []);
  const choose = (side: number, id: string) => setPair(pair.map((each, index) => index === side ? id : each));
  return (
    <Dialog title={t("branches.compare")} close={close} isWide>
      <div class="compare">
        {pair.map((id, side) => (
          <Side
            key={side}
            {...{ context, ids, id, current }}
            other={pair[1 - side]}
            choose={(chosen) => choose(side, chosen)}
            use={instance.isReadOnly ? null : () => close(id)}
          />
        ))}
      </div>
    </Dialog>
  );
}

/** Messages are only read here: nothing in them asks, and none is part of what is shown. */
function readingContext(app: App, instance: Instance): Parts {
  const conversation = new Conversation(app.api, { ...instance, isReadOnly: true });
  return { app, conversation, reader: new Reader(conversation), openCalls: new OpenCalls(app.api, conversation) };
}

interface SideProps {
  context: Parts;
  ids: readonly string[];
  id: string;
  other: string;
  current: string;
  choose: (id: string) => void;
  /** Null for who only reads. */
  use: (() => void) | null;
}

function Side({ context, ids, id, other, current, choose, use }: SideProps) {
  const heading = useId();
  const { answer, problem } = useAnswer(context, id);
  const nameOf = (each: string) => t("branches.answer", { number: ids.indexOf(each) + 1, count: ids.length });
  return (
    <section class="compare-side" aria-labelledby={heading}>
      <header>
        <h3 id={heading} class={ids.length > 2 ? "visually-hidden" : undefined}>{nameOf(id)}</h3>
        {ids.length > 2 && (
          <select
            class="field"
            aria-label={t("branches.choose-answer")}
            value={id}
            onChange={(event) => choose(event.currentTarget.value)}
          >
            {ids.map((each) => <option key={each} value={each} disabled={each === other}>{nameOf(each)}</option>)}
          </select>
        )}
        <p class="muted">{answer ? factsOf(context.app, answer, context.conversation.instance.agent) : "\u00a0"}</p>
      </header>
      <div class="compare-answer" tabIndex={0} role="group" aria-labelledby={heading}>
        <Problem text={problem} />
        {!answer && !problem && <p class="muted">{t("common.loading")}</p>}
        {answer?.map((message) => <Shown key={message.id} context={context} message={message} />)}
      </div>
      <p class="compare-foot">
        {id === current
          ? <span class="muted">{t("branches.shown-now")}</span>
          : use && answer && <button type="button" class="button" onClick={use}>{t("branches.use")}</button>}
      </p>
    </section>
  );
}

function useAnswer({ app, conversation }: Parts, id: string) {
  const [read, setRead] = useState<{ id: string; answer?: Answer; problem?: string }>({ id });
  useEffect(() => {
    let isOld = false;
    const take = (found: { answer?: Answer; problem?: string }) => isOld || setRead({ id, ...found });
    readAnswer(app, conversation.instance.id, id).then(
      (answer) => take({ answer }),
      (error) => take({ problem: messageOf(error) }),
    );
    return () => void (isOld = true);
  }, [id]);
  return read.id === id ? read : { id };
}

function Shown({ context, message }: { context: Parts; message: Message }) {
  const opened = useRef<Opened>({ calls: new Set() });
  return (
    <div class="message is-assistant">
      <div class="message-body">
        <MessageParts context={context} message={message} isLast={false} opened={opened.current} />
      </div>
    </div>
  );
}

/** Which model, how long, at what cost; of an answer that a person wrote, when. */
function factsOf(app: App, answer: Answer, agent: string): string {
  const turn = turnOf(answer);
  const { metadata, createdAt } = answer[0];
  const isWritten = Boolean(metadata.writtenBy);
  const models = app.models.of(agent);
  const titleOf = (name: string) => models.find((model) => model.name === name)?.title || name;
  const facts = [
    isWritten ? t("branches.by-hand") : turn?.model && turn.model.split(", ").map(titleOf).join(", "),
    !isWritten && (turn?.duration_ms ?? 0) > 0 && duration(turn!.duration_ms!),
    !isWritten && Number(turn?.cost) > 0 && evenMoney(turn!.cost!),
    createdAt && (turn && !isWritten ? timeLabel(createdAt) : fullTime(createdAt)),
  ];
  return facts.filter(Boolean).join(" · ");
}
