// The line in the transcript that says what was summarised: it opens, can be reworded, and can be undone.

import { useState } from "preact/hooks";
import { fullTime, timeLabel } from "../lib/format.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import { isOwn } from "../store/instances.ts";
import type { Compaction } from "../store/types.ts";
import { Editor } from "./editor.tsx";
import { Fold } from "./fold.tsx";
import { LiveText } from "./live_text.tsx";
import { memo } from "./memo.ts";
import type { Parts } from "./parts_context.ts";
import { useReturnFocus } from "./return_focus.ts";

interface Props {
  context: Parts;
  compaction: Compaction;
  isUsed: boolean;
}

const CAUSES: Record<string, MessageKey> = {
  manual: "summaries.manual",
  auto: "summaries.auto",
  overflow: "summaries.overflow",
  added: "summaries.added",
};

const causeOf = ({ trigger }: Compaction): string => (CAUSES[trigger] ? t(CAUSES[trigger]) : trigger);

function Line(props: Props) {
  const { compaction, isUsed } = props;
  const count = compaction.message_count;
  return (
    <li class={isUsed ? "summary-line" : "summary-line is-unused"} data-compaction={compaction.id} tabIndex={-1}>
      <h2 class="visually-hidden">{t("summaries.summary")}</h2>
      <Fold
        icon="fold"
        class="summary"
        label={t(isUsed ? "summaries.of" : "summaries.older-of", { count })}
        note={noteOf(compaction)}
      >
        {() => <Inside {...props} />}
      </Fold>
    </li>
  );
}

export const SummaryLine = memo(Line);

function Inside({ context: { app, conversation, reader }, compaction, isUsed }: Props) {
  const [isEditing, setEditing] = useState(false);
  const edit = useReturnFocus<HTMLButtonElement>(isEditing);
  const save = async (text: string) => (await app.summaries.reword(compaction.id, text)) ? "" : t("answer.not-stored");
  if (isEditing) {
    return (
      <Editor
        label={t("summaries.text")}
        text={compaction.summary}
        save={save}
        done={() => setEditing(false)}
      />
    );
  }
  const undo = async () => {
    const isSure = await app.dialogs.ask("confirm", {
      title: t("summaries.undo-title"),
      text: t("summaries.undo-text", { count: compaction.message_count }),
      confirm: t("common.undo"),
    });
    if (!isSure) return;
    await app.summaries.undo(compaction.id);
    reader.focus(); // the line is gone
  };
  return (
    <>
      <p class="muted">{t(isUsed ? "summaries.used" : "summaries.unused")}</p>
      <LiveText class="md summary-text" text={compaction.summary} isLive={false} paint={reader.paint} />
      <p class="muted summary-facts">{factsOf(compaction)}</p>
      {isOwn(conversation.instance) && !conversation.instance.isReadOnly && (
        <p class="summary-actions">
          <button type="button" class="button" ref={edit} onClick={() => setEditing(true)}>
            {t("summaries.edit")}
          </button>
          <button type="button" class="button" onClick={undo}>{t("common.undo")}</button>
        </p>
      )}
    </>
  );
}

function noteOf(compaction: Compaction): string {
  const { tokens_before: before, tokens_after: count, created_at, edited_at } = compaction;
  return [
    causeOf(compaction),
    timeLabel(created_at),
    before > 0 && t("summaries.tokens", { before, count }),
    edited_at && t("answer.edited"),
  ].filter(Boolean).join(" · ");
}

function factsOf(compaction: Compaction): string {
  const { tokens_before: before, tokens_after: count, created_at, edited_at, model_name: model } = compaction;
  const time = fullTime(created_at);
  return [
    model ? t("summaries.made-by", { time, model }) : t("summaries.made", { time }),
    before > 0 && t("summaries.sizes", { before, count }),
    edited_at && t("summaries.edited", { time: fullTime(edited_at) }),
  ].filter(Boolean).join(" ");
}
