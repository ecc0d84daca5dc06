// The section "Deleted": conversations that can be restored for a while, or deleted for good now.

import { useEffect, useState } from "preact/hooks";
import { fullTime, relativeTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { messageOf, type Schemas } from "../net/api.ts";
import { titleOf } from "../store/instances.ts";
import { useApp } from "../ui/context.ts";
import { Problem } from "../ui/problem.tsx";

type Deleted = Schemas["DeletedOut"];

const PAGE = 100; // of the API

export function DeletedSection() {
  const { api, conversations, list } = useApp();
  const count = follow(list).items.length; // one that is deleted or restored meanwhile is read
  const [items, setItems] = useState<readonly Deleted[] | null>(null);
  const [hasMore, setMore] = useState(false);
  const [problem, setProblem] = useState("");
  const read = async (before = "") => {
    try {
      const page = await api.deletedInstances(before);
      setItems((known) => before ? [...(known ?? []), ...page] : page);
      setMore(page.length === PAGE);
      setProblem("");
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  useEffect(() => void read(), [count]);
  const drop = ({ id }: Deleted) => setItems((known) => (known ?? []).filter((item) => item.id !== id));
  const restore = async (item: Deleted) => {
    if (await conversations.restore(item)) drop(item);
  };
  const remove = async (item: Deleted) => {
    if (!(await conversations.isSureToDelete(titleOf(item)))) return;
    try {
      await api.deleteInstance(item.id, { forever: true });
      drop(item);
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <>
      <p class="settings-intro">{t("deleted.about")}</p>
      <Problem text={problem} />
      {items?.length === 0 && <p>{t("deleted.none")}</p>}
      {items !== null && items.length > 0 && (
        <ul class="share-list" aria-label={t("deleted.list")}>
          {items.map((item) => <Row key={item.id} item={item} restore={restore} remove={remove} />)}
        </ul>
      )}
      {hasMore && (
        <button type="button" class="button" onClick={() => void read(items?.at(-1)?.deleted_at)}>
          {t("deleted.more")}
        </button>
      )}
    </>
  );
}

interface RowProps {
  item: Deleted;
  restore: (item: Deleted) => Promise<void>;
  remove: (item: Deleted) => Promise<void>;
}

function Row({ item, restore, remove }: RowProps) {
  const title = titleOf(item);
  return (
    <li>
      <span class="share-facts">
        <span dir="auto">{title}</span>
        <span class="muted">
          {t("deleted.ends", { when: relativeTime(item.deleted_at), end: fullTime(item.ends_at) })}
        </span>
      </span>
      <button type="button" class="quiet" aria-label={t("deleted.restore-of", { title })} onClick={() => restore(item)}>
        {t("deleted.restore")}
      </button>
      <button
        type="button"
        class="quiet is-danger"
        aria-label={t("deleted.forever-of", { title })}
        onClick={() => remove(item)}
      >
        {t("deleted.forever")}
      </button>
    </li>
  );
}
