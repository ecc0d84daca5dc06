// Who changed something that is remembered, when, from what to what. An earlier text can be set again.

import { useEffect, useState } from "preact/hooks";
import { fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { type Change, type Remembered, whoDid } from "../store/remembered.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";

interface Props {
  store: Remembered;
  /** What was changed, as the API names it. */
  subject: string;
  /** What it is called. */
  of: string;
  /** The present text. */
  current: string;
  /** Store an earlier text. Resolves to what went wrong, in words. */
  restore: (text: string) => Promise<string>;
}

interface Page {
  items: Change[];
  next_before: number | null;
}

export function ChangeList({ store, subject, of, current, restore }: Props) {
  const { notices } = useApp();
  const [isOpen, setOpen] = useState(false);
  const [items, setItems] = useState<Change[] | null>(null);
  const [next, setNext] = useState<number | null>(null);
  const [error, setError] = useState("");
  const load = async (before: number | null) => {
    try {
      const page = await store.changes(subject, before) as Page;
      setItems((known) => (before ? [...(known ?? []), ...page.items] : page.items));
      setNext(page.next_before);
      setError("");
    } catch (problem) {
      setError((problem as Error).message);
    }
  };
  useEffect(() => {
    if (isOpen) load(null);
  }, [isOpen, current]);
  const setAgain = async (text: string) => notices.show((await restore(text)) || t("memory.set-again-done"));
  return (
    <details class="change-list" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {t("memory.history")}
        <span class="visually-hidden">{t("memory.history-of", { label: of })}</span>
      </summary>
      <Problem text={error} />
      <ol class="changes">
        {items?.map((change) => <Row key={change.id} change={change} current={current} setAgain={setAgain} />)}
        {items?.length === 0 && <li class="muted">{t("memory.no-changes")}</li>}
      </ol>
      {next && <button type="button" class="quiet" onClick={() => load(next)}>{t("common.show-more")}</button>}
    </details>
  );
}

function Row({ change, current, setAgain }: { change: Change; current: string; setAgain: (text: string) => void }) {
  const text = (change.action === "delete" ? change.before : change.after) ?? "";
  const when = timeLabel(change.created_at);
  return (
    <li>
      <p>
        {whoDid(change)}{" "}
        <time class="muted" datetime={change.created_at} title={fullTime(change.created_at)}>{when}</time>
      </p>
      {text && <p class="block-text" dir="auto">{text}</p>}
      {text && text !== current && (
        <p>
          <button
            type="button"
            class="quiet"
            aria-label={t("memory.set-again-label", { when })}
            onClick={() => setAgain(text)}
          >
            {t("memory.set-again")}
          </button>
        </p>
      )}
    </li>
  );
}
