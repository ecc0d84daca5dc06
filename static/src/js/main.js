// Entry of the chat page: reads what the server embedded, builds the parts, binds the keys.

import { Api } from "../app/net/api.ts";
import { Composer } from "./composer.js";
import { onContentClick } from "./copying.js";
import { ConnectionBar } from "./connection.js";
import { ContextView } from "./context_view.js";
import { ConversationMenu } from "./conversation_menu.js";
import { FindBar } from "./find_bar.js";
import { MemoryView } from "./memory_view.js";
import { Menu } from "./menu.js";
import { OverviewView } from "./overview_view.js";
import { Page } from "./page.js";
import { Panel } from "./panel.js";
import { PlaceBar } from "./place_bar.js";
import { SessionSwitcher } from "./session_switcher.js";
import { Sidebar } from "./sidebar.js";
import { fromInstance } from "../app/store/instances.ts";
import { Speaker } from "./speaker.js";
import { Timeline } from "./timeline.js";
import { bindThemeButton } from "./preferences.js";
import { notice } from "./dialogs.js";
import { showModel } from "./model_notice.js";

const at = (id) => document.getElementById(id);

function start(boot) {
  const api = new Api(boot.urls.api);
  let page = null;
  const composer = new Composer(
    {
      form: at("composer"),
      input: at("composer-input"),
      send: at("send"),
      stop: at("stop"),
      attach: at("attach"),
      fileInput: at("file-input"),
      files: at("composer-files"),
      editBar: at("edit-bar"),
      editCancel: at("edit-cancel"),
      note: at("composer-note"),
      commands: at("commands"),
    },
    api,
    {
      send: (message) => page.sending.send(message),
      stop: () => page.stop(),
      editLast: () => page.sending.editLast(),
      command: (command) => page.command(command),
    },
  );
  const timeline = new Timeline(
    {
      scroller: at("scroller"),
      list: at("messages"),
      status: at("status"),
      more: at("older"),
      newer: at("newer"),
      down: at("to-end"),
    },
    { act: (...args) => page.act(...args), filesBase: boot.urls.files },
  );
  const menu = new ConversationMenu(api, {
    rename: (item) => page.rename(item),
    remove: (item) => page.remove(item),
    changed: (raw) => page.onChanged(fromInstance(raw)),
    say: (text) => page.speaker.say(text),
  });
  const sidebar = new Sidebar(
    {
      list: at("conversations"),
      search: at("search"),
      more: at("more-conversations"),
      empty: at("no-conversations"),
      archive: at("archive-head"),
      hits: { list: at("hits"), note: at("hits-note"), more: at("more-hits"), heading: at("hits-heading") },
    },
    api,
    {
      base: boot.urls.home,
      open: (id) => page.open(id),
      openHit: (hit) => page.openHit(hit),
      menu: (item, button) => menu.open(item, button),
      changed: () => page?.onListChanged(),
    },
    boot.instances,
  );
  const find = new FindBar(
    {
      bar: at("find-bar"),
      input: at("find"),
      close: at("find-close"),
      button: at("find-open"),
      list: at("find-hits"),
      note: at("find-note"),
      more: at("more-find-hits"),
      heading: at("find-count"),
    },
    api,
    { base: boot.urls.home, open: (hit, keepsFocus) => page.openHit(hit, keepsFocus) },
  );
  const guarded = (action) => () => action().catch((error) => notice(error.message));
  const placeBar = new PlaceBar(at("place"), {
    base: boot.urls.home,
    goOn: guarded(() => page.conversation.goOnHere()),
    back: guarded(() => page.conversation.backToNewest()),
    restore: guarded(async () =>
      page.onChanged(fromInstance(await api.changeInstance(page.conversation.instance.id, { archived: false })))
    ),
    openOrigin: ({ id, messageId }) => page.open(id, true, { messageId, sessionId: "" }),
  });
  page = new Page(boot, api, {
    composer,
    timeline,
    sidebar,
    find,
    placeBar,
    sessions: new SessionSwitcher(at("histories"), api),
    panel: makePanel(api),
    connection: new ConnectionBar(at("connection")),
    speaker: new Speaker(at("live")),
    elements: {
      title: at("title"),
      more: at("conversation-more"),
      welcome: at("welcome"),
      readOnly: { note: at("read-only"), form: at("composer"), skip: document.querySelector(".skip") },
    },
  });
  bindPage(page, composer, sidebar);
  bindMenus(page, sidebar, find, menu);
  showModel({ banner: at("banner"), name: at("model-name") }, boot.model);
  page.start();
  document.documentElement.dataset.ready = "1";
}

function makePanel(api) {
  const elements = {
    panel: at("panel"),
    close: at("panel-close"),
    tabs: [at("tab-context"), at("tab-memory"), at("tab-overview")],
    openers: [...document.querySelectorAll("[data-panel]")],
    behind: [at("main"), document.querySelector(".sidebar")],
  };
  return new Panel(elements, {
    context: new ContextView(at("panel-context"), api),
    memory: new MemoryView(at("panel-memory"), api),
    overview: new OverviewView(at("panel-overview"), api),
  });
}

function bindPage(page, composer, sidebar) {
  composer.acceptDrops(at("main"));
  bindThemeButton(at("theme"));
  at("messages").addEventListener("click", (event) => onContentClick(event, (text, button) => page.copy(text, button)));
  for (const link of document.querySelectorAll("[data-link=new]")) follow(link, () => page.newConversation());
  for (const link of document.querySelectorAll("[data-link=list]")) {
    follow(link, () => {
      history.pushState(null, "", page.base);
      page.showList();
      sidebar.refresh();
    });
  }
  for (const button of document.querySelectorAll("[data-suggestion]")) {
    button.addEventListener("click", () => composer.fill(button.textContent.trim()));
  }
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
      event.preventDefault();
      if (!matchMedia("(min-width: 760px)").matches) page.showList();
      sidebar.focusSearch();
    } else if (
      event.key === "Escape" && !event.defaultPrevented &&
      !document.querySelector("dialog[open], [popover]:popover-open") && page.conversation?.running
    ) {
      page.stop();
    }
  });
}

function bindMenus(page, sidebar, find, menu) {
  const search = { icon: "search", label: "Search in this conversation", run: () => find.open() };
  at("conversation-more").addEventListener(
    "click",
    ({ currentTarget }) => menu.open(page.conversation.instance, currentTarget, [search]),
  );
  const file = /** @type {HTMLInputElement} */ (at("import-file"));
  file.addEventListener("change", () => {
    if (file.files[0]) page.branching.importFile(file.files[0]);
    file.value = "";
  });
  const listMenu = new Menu("Conversations");
  at("list-more").addEventListener("click", ({ currentTarget }) =>
    listMenu.open(currentTarget, [
      { icon: "box", label: "Archived conversations", run: () => sidebar.showArchive(true) },
      { icon: "open", label: "Import a conversation", run: () => file.click() },
    ]));
}

function follow(link, go) {
  link.addEventListener("click", (event) => {
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.button !== 0) return;
    event.preventDefault();
    go();
  });
}

const boot = at("boot");
if (boot) start(JSON.parse(boot.textContent));
