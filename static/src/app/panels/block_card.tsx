// One block of what is remembered: its text or its entries, its history, and what a person can do about them.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { isNearlyFull } from "../store/context_facts.ts";
import { type Block, nameOf, type Remembered } from "../store/remembered.ts";
import { useApp } from "../ui/context.ts";
import { Editor } from "../ui/editor.tsx";
import { keepFocusIn, useReturnFocus } from "../ui/return_focus.ts";
import { ChangeList } from "./change_list.tsx";
import { EditVerbs } from "./edit_verbs.tsx";
import { EntryList } from "./entry_list.tsx";

interface Props {
  block: Block;
  store: Remembered;
  /** Something else is stored than before. */
  changed: () => Promise<void>;
  /** What has the focus when a button is gone. */
  placeId?: string;
}

export function BlockCard({ block, store, changed, placeId = "panel-memory" }: Props) {
  const { dialogs, notices } = useApp();
  const [isEditing, setEditing] = useState(false);
  const editButton = useReturnFocus<HTMLButtonElement>(isEditing);
  const isText = !(block.is_skill || block.is_searchable);
  const entryCount = block.entry_count ?? 0;
  const hasEntries = !isText || entryCount > 0;
  const isPlain = !hasEntries || Boolean(block.content && block.isElsewhere);
  const facts = factsOf(block, isPlain);
  const canEdit = block.writable && isPlain && isText;
  const isKept = block.of !== "agent" || block.writable;
  const canDelete = isKept && Boolean(block.content || entryCount > 0);
  const label = nameOf(block.label);
  const write = async (text: string): Promise<string> => {
    try {
      await store.write(text);
    } catch (error) {
      return (error as Error).message;
    }
    await changed();
    return "";
  };
  const remove = async () => {
    const answer = await dialogs.ask("confirm", {
      title: t("memory.delete-block-title", { label }),
      text: t("memory.delete-text"),
      option: t("memory.delete-history-too"),
      confirm: t("common.delete"),
      isDanger: true,
    });
    if (!answer) return;
    await store.forget(answer.isTicked).catch(notices.fail);
    await changed();
    keepFocusIn(document.getElementById(placeId));
  };
  return (
    <article class="block">
      <h3 dir="auto">{label}</h3>
      {facts && <p class="muted">{facts}</p>}
      <div class="block-body">
        {isEditing
          ? (
            <Editor
              label={t("memory.text-of", { label })}
              text={block.content}
              save={write}
              done={() => setEditing(false)}
            />
          )
          : <Content block={block} isText={isText} hasEntries={hasEntries} />}
        {hasEntries && <EntryList store={store} block={block} changed={changed} />}
      </div>
      {!isEditing && (
        <EditVerbs
          label={label}
          editButton={editButton}
          edit={canEdit ? () => setEditing(true) : null}
          remove={canDelete ? remove : null}
          isEmpty={!block.content}
        />
      )}
      {isKept && !block.isNew && (
        <ChangeList store={store} subject={`block:${block.label}`} of={label} current={block.content} restore={write} />
      )}
    </article>
  );
}

function Content({ block, isText, hasEntries }: { block: Block; isText: boolean; hasEntries: boolean }) {
  if (block.content && isText) return <p class="block-text" dir="auto">{block.content}</p>;
  return hasEntries ? null : <p class="muted">{t("memory.empty")}</p>;
}

function factsOf(block: Block, isPlain: boolean): string {
  return [
    block.isElsewhere && t("memory.not-read"),
    isPlain && isNearlyFull(block) && t("memory.nearly-full"),
    Boolean(block.entry_count) && t("memory.entries", { count: block.entry_count ?? 0 }),
  ].filter(Boolean).join(" · ");
}
