// Several histories in one conversation: a quiet button in its head, and beside it the list of them.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { App } from "../store/app.ts";
import type { History } from "../store/histories.ts";
import { useApp } from "./context.ts";
import { Icon, IconButton } from "./icon.tsx";
import { Popover } from "./popover.tsx";

const nameOf = (history?: History): string => history?.name || t("histories.history-untitled");

export function HistoriesButton() {
  const app = useApp();
  const histories = follow(app.histories);
  const { instance } = follow(app.conversation);
  if (!instance.id || !instance.keepsSessions) return null;
  const { isLoaded, current } = histories;
  const shown = !isLoaded ? t("histories.histories-short") : current ? nameOf(current) : t("histories.history-none");
  return (
    <Popover
      label={t("histories.histories")}
      role="dialog"
      onOpen={() => histories.refresh()}
      button={{
        id: "histories",
        class: "button histories-button",
        title: t("histories.histories"),
        children: (
          <>
            <span dir="auto">{shown}</span>
            <Icon name="down-small" />
          </>
        ),
      }}
    >
      {(close) => (
        <>
          <ul class="histories">
            {histories.items.map((history) => <Row key={history.id} app={app} history={history} close={close} />)}
          </ul>
          <button
            type="button"
            class="button"
            data-option
            onClick={() => {
              close();
              create(app);
            }}
          >
            <Icon name="plus" />
            {t("histories.history-new")}
          </button>
        </>
      )}
    </Popover>
  );
}

function Row({ app, history, close }: { app: App; history: History; close: () => void }) {
  const name = nameOf(history);
  const after = (ask: typeof rename) => () => {
    close(); // a dialog closes it anyway; this way the focus comes back to the button
    ask(app, history);
  };
  const choose = () => {
    close();
    app.histories.switchTo(history);
  };
  return (
    <li class="history">
      <button
        type="button"
        class="history-name"
        data-option
        aria-current={history.is_current ? "true" : undefined}
        onClick={choose}
      >
        <span class="history-title" dir="auto">{name}</span>
        <span class="muted">{t("histories.history-count", { count: history.message_count })}</span>
        {history.summary && <span class="history-about" dir="auto">{history.summary}</span>}
      </button>
      <IconButton icon="edit" label={t("histories.history-rename", { name })} onClick={after(rename)} />
      <IconButton icon="bin" label={t("histories.history-delete", { name })} onClick={after(remove)} />
    </li>
  );
}

async function askName(app: App, title: string, confirm: string, value: string): Promise<string | null> {
  return await app.dialogs.ask("ask-name", { title, label: t("histories.history-name"), confirm, value });
}

async function create(app: App): Promise<void> {
  const name = await askName(app, t("histories.history-new"), t("histories.history-start"), "");
  if (name !== null) await app.histories.create(name);
}

async function rename(app: App, history: History): Promise<void> {
  const name = await askName(app, t("histories.history-rename-title"), t("common.rename"), history.name);
  if (name !== null) await app.histories.rename(history, name);
}

async function remove(app: App, history: History): Promise<void> {
  const isSure = await app.dialogs.ask("confirm", {
    title: t("histories.history-delete-title"),
    text: t("histories.history-delete-text", { name: nameOf(history) }),
    confirm: t("common.delete"),
    isDanger: true,
  });
  if (isSure) await app.histories.remove(history);
}
