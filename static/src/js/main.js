// Entry of the chat page: reads what the server embedded, builds the parts, binds the keys.

import { Api } from "./api.js";
import { Composer } from "./composer.js";
import { onContentClick } from "./copying.js";
import { ConnectionBar } from "./connection.js";
import { Page } from "./page.js";
import { Sidebar } from "./sidebar.js";
import { Speaker } from "./speaker.js";
import { Timeline } from "./timeline.js";
import { bindThemeButton } from "./preferences.js";
import { showModel } from "./model_notice.js";

const at = (id) => document.getElementById(id);

function start(boot) {
  const api = new Api(boot.urls.api);
  let page = null;
  const composer = new Composer(
    {
      form: at("composer"), input: at("composer-input"), send: at("send"), stop: at("stop"), attach: at("attach"),
      fileInput: at("file-input"), files: at("composer-files"), editBar: at("edit-bar"), editCancel: at("edit-cancel"), note: at("composer-note"),
    },
    api,
    { send: (message) => page.send(message), stop: () => page.stop(), editLast: () => page.editLast() },
  );
  const timeline = new Timeline(
    { scroller: at("scroller"), list: at("messages"), status: at("status"), more: at("older"), down: at("to-end") },
    { act: (...args) => page.act(...args), filesBase: boot.urls.files },
  );
  const sidebar = new Sidebar(
    { list: at("conversations"), search: at("search"), more: at("more-conversations"), empty: at("no-conversations") },
    api,
    {
      base: boot.urls.home,
      open: (id) => page.open(id),
      rename: (item) => page.rename(item),
      remove: (item) => page.remove(item),
      changed: () => page?.onListChanged(),
    },
    boot.instances,
  );
  page = new Page(boot, api, {
    composer, timeline, sidebar,
    connection: new ConnectionBar(at("connection")),
    speaker: new Speaker(at("live")),
    elements: { title: at("title"), welcome: at("welcome"), readOnly: at("read-only") },
  });
  bindPage(page, composer, sidebar);
  showModel({ banner: at("banner"), name: at("model-name") }, boot.model);
  page.start();
  document.documentElement.dataset.ready = "1";
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
    } else if (event.key === "Escape" && !event.defaultPrevented && !document.querySelector("dialog[open], [popover]:popover-open") && page.conversation?.running) {
      page.stop();
    }
  });
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
