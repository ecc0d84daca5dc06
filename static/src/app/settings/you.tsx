// The section "You": the theme.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { currentTheme, setTheme, type Theme, THEMES } from "../lib/theme.ts";

const THEME_LABELS = { system: "menu.theme-system", light: "menu.theme-light", dark: "menu.theme-dark" } as const;

export function YouSection() {
  const [chosen, choose] = useState<Theme>(currentTheme());
  return (
    <fieldset class="settings-field">
      <legend>{t("menu.theme")}</legend>
      {THEMES.map((theme) => (
        <label key={theme}>
          <input
            type="radio"
            name="theme"
            checked={theme === chosen}
            onChange={() => {
              setTheme(theme);
              choose(theme);
            }}
          />
          {t(THEME_LABELS[theme])}
        </label>
      ))}
    </fieldset>
  );
}
