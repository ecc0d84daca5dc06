// Beside the conversation: where one begins and finds conversations, and what belongs to the person.

import { useEffect, useRef, useState } from "preact/hooks";
import { formatCount, t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Hit } from "../store/hits.ts";
import { NewButton } from "./agent_picker.tsx";
import { useApp } from "./context.ts";
import { Conversations } from "./conversation_list.tsx";
import { FollowLink } from "./follow_link.tsx";
import { Hits, HitsNote } from "./hits.tsx";
import { Icon, IconButton } from "./icon.tsx";
import { lazy } from "./lazy.tsx";
import { moveFocus } from "./popover.tsx";
import { ShowMore } from "./show_more.tsx";
import { UserMenu } from "./user_menu.tsx";

const SearchFilters = lazy(async () => (await import("../later/views.ts")).SearchFilters);
const ThreadsHead = lazy(async () => (await import("../later/threads.ts")).ThreadsHead);
const SelectionBar = lazy(async () => (await import("../later/views.ts")).SelectionBar);

/** `isCovered`: something lies over it, so it takes no input. */
export function Sidebar({ isCovered }: { isCovered: boolean }) {
  const app = useApp();
  follow(app.place);
  const list = follow(app.list);
  const field = useRef<HTMLInputElement>(null);
  const rows = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!app.place.searchWishes) return;
    field.current!.focus();
    field.current!.select();
  }, [app.place.searchWishes]);
  const isDrawer = useDrawer(field);
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || event.defaultPrevented) return;
    if (app.selection.count) {
      event.preventDefault();
      return app.selection.clear();
    }
    if (!isDrawer()) return;
    event.preventDefault();
    app.place.toggleSidebar();
  };
  const onRowsKey = (event: KeyboardEvent) => {
    if ((event.target as HTMLElement).tagName !== "A") return;
    moveFocus(event, [...rows.current!.querySelectorAll<HTMLElement>("a")]);
  };
  return (
    <>
      <nav id="sidebar" class="sidebar" aria-label={t("list.title")} inert={isCovered} onKeyDown={onKeyDown}>
        <h1 class="visually-hidden list-title">{t("list.title")}</h1>
        <header class="sidebar-head">
          <FollowLink class="brand" href={app.router.base} data-link="list" go={() => app.place.showList()}>
            {app.boot.product}
          </FollowLink>
          <NewButton />
          <IconButton
            id="sidebar-hide"
            class="only-wide"
            icon="sidebar"
            label={t("list.hide")}
            aria-expanded="true"
            aria-controls="sidebar"
            onClick={() => app.place.toggleSidebar()}
          />
        </header>
        <SearchField
          field={field}
          first={() => rows.current!.querySelector<HTMLElement>("#conversations a, #hits a")}
        />
        <div class="rows" tabIndex={-1} ref={rows} onKeyDown={onRowsKey}>
          <ApprovalsLink />
          {list.isArchive && <ArchiveHead field={field} />}
          {list.parentId && <ThreadsHead field={field} />}
          {follow(app.selection).count > 0 && <SelectionBar />}
          <Conversations fallback={field} />
          <Found />
        </div>
        <footer class="sidebar-foot">
          <UserMenu />
        </footer>
      </nav>
      <div class="sidebar-veil" aria-hidden="true" onClick={() => app.place.toggleSidebar()} />
    </>
  );
}

const DRAWER = matchMedia("(min-width: 760px) and (max-width: 899px)"); // the list lies over the conversation

/** The list as a drawer: the focus goes into it when it opens, and back to the button that opened it. */
function useDrawer(field: { current: HTMLInputElement | null }): () => boolean {
  const app = useApp();
  follow(app.place);
  const { isSidebarHidden } = app.place;
  const wasHidden = useRef(isSidebarHidden);
  useEffect(() => {
    if (DRAWER.matches && wasHidden.current && !isSidebarHidden) field.current!.focus();
    wasHidden.current = isSidebarHidden;
  }, [isSidebarHidden]);
  return () => DRAWER.matches && !app.place.isSidebarHidden;
}

/** `first`: the first of what is found, where the down key and Enter lead. */
function SearchField({ field, first }: {
  field: { current: HTMLInputElement | null };
  first: () => HTMLElement | null;
}) {
  const { list, search } = useApp();
  const [text, setText] = useState("");
  const type = (typed: string) => {
    setText(typed);
    const query = typed.trim();
    if (query === list.query) return;
    list.search(query);
    search.type(query);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") {
      event.preventDefault();
      first()?.focus();
    } else if (event.key === "Enter" && text.trim() && !event.isComposing) {
      event.preventDefault();
      if (!list.isLoading && !search.isLoading) first()?.click(); // what is shown is of the present words
    } else if (event.key === "Escape" && text) {
      event.preventDefault();
      type("");
    }
  };
  return (
    <div class="search">
      <Icon name="search" />
      <input
        id="search"
        ref={field}
        type="search"
        placeholder={t("list.search")}
        aria-label={t("list.search-label")}
        title={t("list.search-help")}
        aria-keyshortcuts="Control+K Meta+K"
        autocomplete="off"
        spellcheck={false}
        value={text}
        onInput={(event) => type(event.currentTarget.value)}
        onKeyDown={onKeyDown}
      />
      <kbd aria-hidden="true">{t("list.search-key")}</kbd>
    </div>
  );
}

/** Above the list, while something waits for a decision in any conversation. */
function ApprovalsLink() {
  const app = useApp();
  follow(app.place);
  const { count } = follow(app.approvals);
  if (!count && app.place.view !== "approvals") return null;
  return (
    <FollowLink
      id="approvals-link"
      class="approvals-link"
      href={app.router.address({ page: "approvals" })}
      aria-current={app.place.view === "approvals" ? "page" : undefined}
      go={() => app.place.showApprovals()}
    >
      <Icon name="ask" />
      <span>{t("list.approvals")}</span>
      {count > 0 && (
        <span class="count">
          <span aria-hidden="true">{formatCount(count)}</span>
          <span class="visually-hidden">{t("list.is-waiting", { count })}</span>
        </span>
      )}
    </FollowLink>
  );
}

/** Above what is archived: the way back. It has the focus when it appears. */
function ArchiveHead({ field }: { field: { current: HTMLInputElement | null } }) {
  const { list } = useApp();
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => button.current!.focus(), []);
  const leave = () => {
    list.showArchive(false);
    field.current!.focus();
  };
  return (
    <div id="archive-head" class="archive-head">
      <h2>{t("list.archived")}</h2>
      <button type="button" class="quiet" ref={button} onClick={leave}>{t("list.all")}</button>
    </div>
  );
}

/** Messages that match what is searched for, below the titles. */
function Found() {
  const app = useApp();
  const search = follow(app.search);
  const list = useRef<HTMLUListElement>(null);
  const open = (hit: Hit) => {
    const place = { messageId: hit.messageId, sessionId: hit.isElsewhere ? hit.sessionId : "" };
    app.place.open(hit.instanceId, { place, query: search.query });
  };
  return (
    <>
      {search.query && <SearchFilters search={search} />}
      <h2 id="hits-heading" hidden={!search.hits.length && !search.error}>{t("list.messages")}</h2>
      <HitsNote id="hits-note" search={search} isQuiet />
      <Hits id="hits" search={search} open={open} labelledBy="hits-heading" listRef={list} />
      <ShowMore
        id="more-hits"
        label={t("list.more-messages")}
        isShown={search.hasMore}
        load={() => search.more()}
        rows={list}
      />
    </>
  );
}
