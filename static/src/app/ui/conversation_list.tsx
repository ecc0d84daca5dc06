// The list of conversations: pinned ones first, then projects, then by day; with its states, and the focus where it was.

import type { ComponentChildren, RefObject } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";
import { dayGroup } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { ConversationList } from "../store/list.ts";
import { isSelectable } from "../store/selection.ts";
import type { Instance } from "../store/types.ts";
import { useApp } from "./context.ts";
import { ConversationRow } from "./conversation_row.tsx";
import { dropTarget } from "./dragging.ts";
import { ProjectGroups } from "./project_groups.tsx";
import { ShowMore } from "./show_more.tsx";

/** Groups of the list by their headings, in their order. */
function groupsOf({ items, pinned, query, isWhole }: ConversationList): Map<string, Instance[]> {
  const groups = new Map<string, Instance[]>();
  const put = (group: string, item: Instance) => {
    const found = groups.get(group);
    if (found) found.push(item);
    else groups.set(group, [item]);
  };
  if (query) items.forEach((item) => put(t("list.titles"), item));
  else {
    const ids = new Set(pinned.map((item) => item.id));
    pinned.forEach((item) => put(t("list.pinned"), item));
    for (const item of items) {
      if (!ids.has(item.id) && !(isWhole && item.projectId)) put(dayGroup(item.activeAt), item);
    }
  }
  return groups;
}

/** `fallback` gets the focus when the row that had it is gone and no other is left. */
export function Conversations({ fallback }: { fallback: RefObject<HTMLElement | null> }) {
  const app = useApp();
  const list = follow(app.list);
  const { desk } = follow(app.threads);
  if (desk) follow(desk);
  const noteOf = (item: Instance) =>
    list.parentId ? desk?.noteOf(item) ?? "" : app.agents.length > 1 ? app.agentOf(item).title : "";
  const element = useRef<HTMLDivElement>(null);
  useKeptFocus(element, fallback);
  const groups = [...groupsOf(list)];
  const hasPinned = list.isWhole && list.pinned.length > 0;
  const inside = list.isWhole
    ? list.projects.filter(({ id }) => list.unfolded.has(id)).flatMap(({ id }) => list.ofProject(id))
    : [];
  const selected = follow(app.selection).ids;
  const select = (item: Instance, isRange: boolean) => {
    if (!isRange) return app.selection.toggle(item.id);
    const all = groups.map(([, items]) => items);
    const shown = [...hasPinned ? all.splice(0, 1) : [], inside, ...all].flat();
    app.selection.extendTo(item.id, shown.filter(isSelectable).map(({ id }) => id));
  };
  const row = (item: Instance) => (
    <ConversationRow
      key={item.id}
      app={app}
      item={item}
      isCurrent={item.id === list.currentId}
      note={noteOf(item)}
      isSelected={selected.has(item.id)}
      select={select}
    />
  );
  return (
    <>
      <div id="conversations" ref={element} aria-busy={list.isLoading}>
        {hasPinned && <Group name={groups[0][0]}>{groups[0][1].map(row)}</Group>}
        {list.isWhole && <ProjectGroups key="projects" row={row} />}
        {groups.slice(hasPinned ? 1 : 0).map(([name, items]) => (
          <Group key={name} name={name} isTarget={list.isWhole && list.projects.length > 0}>{items.map(row)}</Group>
        ))}
      </div>
      <Nothing isEmpty={!groups.length && !(list.isWhole && list.inside.length)} />
      <ShowMore
        id="more-conversations"
        label={t("common.show-more")}
        isShown={list.hasMore}
        load={() => list.loadMore()}
        rows={element}
      />
    </>
  );
}

/** `isTarget`: what is dropped there is in no project any more. */
function Group({ name, isTarget, children }: { name: string; isTarget?: boolean; children: ComponentChildren }) {
  const app = useApp();
  const id = useId();
  return (
    <section aria-labelledby={id} {...(isTarget ? dropTarget(app, null) : {})}>
      <h2 id={id}>{name}</h2>
      <ul>{children}</ul>
    </section>
  );
}

/** What stands in the place of conversations. */
function Nothing({ isEmpty }: { isEmpty: boolean }) {
  const app = useApp();
  const list = follow(app.list);
  const search = follow(app.search);
  if (!isEmpty) return null;
  if (list.error) {
    return (
      <div class="rows-error" role="alert">
        <p>{t("list.not-loaded")}</p>
        <p class="muted">{list.error.message}</p>
        <button type="button" class="button" onClick={() => list.refresh()}>{t("common.try-again")}</button>
      </div>
    );
  }
  if (list.isLoading) return <Skeleton />;
  if (list.query && (search.isLoading || search.hits.length || search.error)) return null;
  const here = list.isArchive ? "list.archive-empty" : list.parentId ? "list.no-threads" : "list.empty";
  return <p id="no-conversations" class="muted">{t(list.query ? "list.no-match" : here)}</p>;
}

const WIDTHS = ["long", "short", "middle", "long", "middle"];

/** The shape of rows that are on their way. */
export function Skeleton() {
  return (
    <div class="skeleton" role="status">
      <span class="visually-hidden">{t("common.loading")}</span>
      {WIDTHS.map((width, index) => <span key={index} class={`skeleton-line is-${width}`} aria-hidden="true" />)}
    </div>
  );
}

/** Where the focus was in a row, so that it comes back when the row moves, or goes to the next one when it is gone. */
interface Kept {
  id: string;
  isLink: boolean;
  index: number;
}

function useKeptFocus(element: RefObject<HTMLElement | null>, fallback: RefObject<HTMLElement | null>): void {
  const kept = useRef<Kept | null>(null);
  const [, listen] = useState(0);
  useLayoutEffect(() => {
    const root = element.current!;
    const rows = () => [...root.querySelectorAll<HTMLElement>("[data-instance]")];
    const onFocus = (event: FocusEvent) => {
      const row = (event.target as HTMLElement).closest<HTMLElement>("[data-instance]");
      if (!row) return void (kept.current = null);
      const isLink = (event.target as HTMLElement).tagName === "A";
      kept.current = { id: row.dataset.instance!, isLink, index: rows().indexOf(row) };
    };
    const onElsewhere = (event: FocusEvent) => {
      if (!root.contains(event.target as Node) && !(event.target as HTMLElement).closest("dialog")) kept.current = null;
    };
    root.addEventListener("focusin", onFocus);
    document.addEventListener("focusin", onElsewhere);
    listen(1);
    return () => {
      root.removeEventListener("focusin", onFocus);
      document.removeEventListener("focusin", onElsewhere);
    };
  }, []);
  useLayoutEffect(() => {
    const last = kept.current;
    if (!last || document.activeElement !== document.body) return;
    const rows = [...element.current!.querySelectorAll<HTMLElement>("[data-instance]")];
    const same = rows.find((row) => row.dataset.instance === last.id);
    const next = same ?? rows[Math.min(last.index, rows.length - 1)];
    (next?.querySelector<HTMLElement>(same && !last.isLink ? "button" : "a") ?? fallback.current)?.focus();
  });
}
