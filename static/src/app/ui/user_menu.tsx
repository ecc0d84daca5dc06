// The menu with the person's name: memory, theme, keys, the archive, import, signing out.

import { useRef, useState } from "preact/hooks";
import { csrfToken } from "../lib/csrf.ts";
import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import { currentTheme, setTheme, type Theme, THEMES } from "../lib/theme.ts";
import { useApp } from "./context.ts";
import { Icon } from "./icon.tsx";
import { Popover } from "./popover.tsx";

const THEME_LABELS = { system: "list.theme-system", light: "list.theme-light", dark: "list.theme-dark" } as const;

export function UserMenu() {
  const app = follow(useApp());
  const { user } = app.boot;
  const file = useRef<HTMLInputElement>(null);
  const importFile = () => {
    const [chosen] = file.current!.files ?? [];
    if (chosen) app.branching.importFile(chosen);
    file.current!.value = "";
  };
  const label = t("list.user-menu", { name: user });
  return (
    <>
      <Popover
        label={label}
        role="menu"
        button={{
          id: "user-menu",
          class: "user-button",
          "aria-label": label,
          children: (
            <>
              <Icon name="person" />
              <span class="user-name" dir="auto">{user}</span>
              <Icon name="more" />
            </>
          ),
        }}
      >
        {(close) => {
          const item = (icon: string, text: string, run: () => unknown, isApart = false) => (
            <button
              type="button"
              role="menuitem"
              tabIndex={-1}
              class={isApart ? "is-apart" : undefined}
              onClick={() => {
                close();
                run();
              }}
            >
              <Icon name={icon} />
              {text}
            </button>
          );
          return (
            <>
              {item("memory", t("list.memory"), () => app.panel.open("memory"))}
              {item("box", t("list.archive-show"), () => app.list.showArchive(true))}
              {item("open", t("list.import"), () => file.current!.click())}
              {item("keys", t("common.shortcuts"), () => app.showShortcuts())}
              <ThemeChoice />
              <SignOut action={app.boot.urls.logout} />
            </>
          );
        }}
      </Popover>
      <input
        id="import-file"
        type="file"
        accept=".jsonl,.ndjson,application/x-ndjson"
        hidden
        aria-label={t("list.import-file")}
        ref={file}
        onChange={importFile}
      />
    </>
  );
}

function ThemeChoice() {
  const [chosen, choose] = useState<Theme>(currentTheme());
  return (
    <div role="group" class="is-apart menu-group" aria-label={t("list.theme")}>
      <p class="menu-heading" aria-hidden="true">{t("list.theme")}</p>
      {THEMES.map((theme) => (
        <button
          key={theme}
          type="button"
          role="menuitemradio"
          aria-checked={theme === chosen}
          tabIndex={-1}
          onClick={() => {
            setTheme(theme);
            choose(theme);
          }}
        >
          <span class="tick">{theme === chosen && <Icon name="check" />}</span>
          {t(THEME_LABELS[theme])}
        </button>
      ))}
    </div>
  );
}

/** A form of the server's: signing out is a request that changes something. */
function SignOut({ action }: { action: string }) {
  return (
    <form method="post" action={action} role="none" class="is-apart">
      <input type="hidden" name="csrfmiddlewaretoken" value={csrfToken()} />
      <button type="submit" role="menuitem" tabIndex={-1}>
        <Icon name="out" />
        {t("list.sign-out")}
      </button>
    </form>
  );
}
