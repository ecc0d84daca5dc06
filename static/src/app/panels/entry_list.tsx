// The entries of a block that holds documents: each with its text, its history, and what a person can do about it.

import { useEffect, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { Block, Entry, Remembered } from "../store/remembered.ts";
import { useApp } from "../ui/context.ts";
import { Editor } from "../ui/editor.tsx";
import { keepFocusIn, useReturnFocus } from "../ui/return_focus.ts";
import { ChangeList } from "./change_list.tsx";
import { EditVerbs } from "./edit_verbs.tsx";

interface Props {
  store: Remembered;
  block: Block;
  /** An entry has come or gone. */
  changed: () => Promise<void>;
}

interface Page {
  items: Entry[];
  next_after: string | null;
}

export function EntryList({ store, block, changed }: Props) {
  const [items, setItems] = useState<Entry[] | null>(null);
  const [next, setNext] = useState("");
  const [isElsewhere, setElsewhere] = useState(false);
  const [isAdding, setAdding] = useState(false);
  const addButton = useReturnFocus<HTMLButtonElement>(isAdding);
  const load = async (after = "") => {
    try {
      const page = await store.entries(after) as Page;
      setItems((known) => (after ? [...(known ?? []), ...page.items] : page.items));
      setNext(page.next_after ?? "");
    } catch {
      setElsewhere(true); // a provider of the site's own keeps them
    }
  };
  useEffect(() => void load(), [JSON.stringify(block)]); // the block says what its entries are, in one way or another
  const attempt = async (verb: () => Promise<unknown>): Promise<string> => {
    try {
      await verb();
    } catch (error) {
      return (error as Error).message;
    }
    await Promise.all([load(), changed()]);
    return "";
  };
  return (
    <div>
      <ul class="entries">
        {items?.map((entry) => (
          <Row
            key={entry.key}
            entry={entry}
            store={store}
            isWritable={block.writable}
            write={(text) => attempt(() => store.writeEntry(entry.key, text))}
            remove={() => attempt(() => store.deleteEntry(entry.key))}
          />
        ))}
        {items?.length === 0 && <li class="muted">{t("memory.no-entries")}</li>}
        {isElsewhere && <li class="muted">{block.content || t("memory.kept-elsewhere")}</li>}
      </ul>
      <p class="block-buttons">
        {next && <button type="button" class="quiet" onClick={() => load(next)}>{t("common.show-more")}</button>}
        {block.writable && !isAdding && (
          <button
            type="button"
            class="quiet"
            ref={addButton}
            aria-label={t("memory.add-entry-to", { label: store.label })}
            onClick={() => setAdding(true)}
          >
            {t("memory.add-entry")}
          </button>
        )}
      </p>
      {isAdding && (
        <Editor
          label={t("memory.entry-text")}
          nameLabel={t("memory.entry-name")}
          text=""
          save={(text, name) => attempt(() => store.writeEntry(name, text))}
          done={() => setAdding(false)}
        />
      )}
    </div>
  );
}

interface RowProps {
  entry: Entry;
  store: Remembered;
  isWritable: boolean;
  write: (text: string) => Promise<string>;
  remove: () => Promise<string>;
}

function Row(props: RowProps) {
  const [isOpen, setOpen] = useState(false);
  const { entry } = props;
  return (
    <li>
      <details class="entry" data-key={entry.key} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary dir="auto">{entry.title || entry.key}</summary>
        {isOpen && <Body {...props} />}
      </details>
    </li>
  );
}

function Body({ entry, store, isWritable, write, remove }: RowProps) {
  const { dialogs, notices } = useApp();
  const [isEditing, setEditing] = useState(false);
  const editButton = useReturnFocus<HTMLButtonElement>(isEditing);
  const label = entry.title || entry.key;
  const ask = async () => {
    const isSure = await dialogs.ask("confirm", {
      title: t("memory.delete-entry-title", { label }),
      text: t("memory.delete-entry-text"),
      confirm: t("common.delete"),
      isDanger: true,
    });
    const problem = isSure ? await remove() : "";
    if (problem) notices.show(problem);
    keepFocusIn(document.getElementById("panel-memory"));
  };
  if (isEditing) {
    return (
      <Editor
        label={t("memory.text-of", { label })}
        text={entry.content}
        save={write}
        done={() => setEditing(false)}
      />
    );
  }
  return (
    <div class="entry-body">
      {entry.description && <p class="muted">{entry.description}</p>}
      <p class="block-text" dir="auto">{entry.content}</p>
      {isWritable && (
        <>
          <EditVerbs label={label} editButton={editButton} edit={() => setEditing(true)} remove={ask} />
          <ChangeList
            store={store}
            subject={`entry:${store.label}/${entry.key}`}
            of={label}
            current={entry.content}
            restore={write}
          />
        </>
      )}
    </div>
  );
}
