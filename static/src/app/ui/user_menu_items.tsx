// What the menu with the person's name holds.

import { useState } from "preact/hooks";
import { csrfToken } from "../lib/csrf.ts";
import { t } from "../lib/i18n.ts";
import { changeLook } from "../lib/look.ts";
import { currentTheme, type Theme, THEMES } from "../lib/theme.ts";
import { changePreferences } from "../net/preferences_api.ts";
import type { App } from "../store/app.ts";
import { useApp } from "./context.ts";
import { exportConversations } from "./conversation_menu.tsx";
import { Icon } from "./icon.tsx";

const THEME_LABELS = { system: "menu.theme-system", light: "menu.theme-light", dark: "menu.theme-dark" } as const;

export function UserMenuItems({ close }: { close: () => void }) {
  const app = useApp();
  const item = (icon: string, text: string, run: () => unknown) => (
    <button
      type="button"
      role="menuitem"
      tabIndex={-1}
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
      {item("sliders", t("list.settings"), () => app.place.showSettings(""))}
      {item("memory", t("menu.memory"), () => app.place.showSettings("memory"))}
      {item("calendar", t("list.work"), () => app.place.showWork())}
      {item("box", t("menu.archive-show"), () => app.list.showArchive(true))}
      {item("bin", t("deleted.list"), () => app.place.showSettings("deleted"))}
      {item("open", t("imports.title"), () => importArchive(app))}
      {item("save", t("exports.title-all"), () => exportConversations(app))}
      {app.boot.urls.admin && item("shield", t("menu.administration"), () => location.assign(app.boot.urls.admin))}
      {app.boot.urls.docs && item("code", t("menu.api"), () => location.assign(app.boot.urls.docs))}
      {item("keys", t("keys.title"), () => app.showShortcuts())}
      <ThemeChoice />
      <SignOut action={app.boot.urls.logout} />
    </>
  );
}

/** Ask for an export, of this product or of another one. */
async function importArchive(app: App): Promise<void> {
  const { agents, api, conversation, dialogs, list } = app;
  const made = await dialogs.ask("import-archive", {
    api,
    agents,
    current: conversation.instance.agent,
    onAdded: () => list.refresh(),
  });
  if (made) await app.place.open(made.id);
}

function ThemeChoice() {
  const { api, notices } = useApp();
  const [chosen, choose] = useState<Theme>(currentTheme());
  return (
    <div role="group" class="is-apart menu-group" aria-label={t("menu.theme")}>
      <p class="menu-heading" aria-hidden="true">{t("menu.theme")}</p>
      {THEMES.map((theme) => (
        <button
          key={theme}
          type="button"
          role="menuitemradio"
          aria-checked={theme === chosen}
          tabIndex={-1}
          onClick={() => {
            changeLook({ theme });
            choose(theme);
            changePreferences(api, { theme: theme === "system" ? "" : theme }).catch(notices.fail);
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
        {t("menu.sign-out")}
      </button>
    </form>
  );
}
