// The section "You": name, language, time zone, theme, size of text.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { changeLook, currentTextSize, TEXT_SIZES, type TextSize } from "../lib/look.ts";
import { browserZone } from "../lib/own_zone.ts";
import { currentTheme, type Theme, THEMES } from "../lib/theme.ts";
import {
  changePreferences,
  type Preferences,
  type PreferencesChange,
  readPreferences,
} from "../net/preferences_api.ts";
import { Failure } from "../panels/panel.tsx";
import { useApp } from "../ui/context.ts";
import { Choice, Field, useSaving } from "./field.tsx";
import { useSection } from "./reading.ts";

const THEME_LABELS = { system: "menu.theme-system", light: "menu.theme-light", dark: "menu.theme-dark" } as const;
const SIZE_LABELS = {
  "": "settings.size-standard",
  small: "settings.size-small",
  large: "settings.size-large",
  larger: "settings.size-larger",
} as const;

export function YouSection() {
  const { api } = useApp();
  const reading = useSection((signal) => readPreferences(api, signal));
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("common.loading")}</p>;
  }
  const change = async (wanted: PreferencesChange) => reading.set(await changePreferences(api, wanted));
  const props = { preferences: reading.value, change };
  return (
    <>
      <NameField {...props} />
      <LanguageField {...props} />
      <ZoneField {...props} />
      <ThemeField {...props} />
      <SizeField {...props} />
    </>
  );
}

interface Props {
  preferences: Preferences;
  change: (wanted: PreferencesChange) => Promise<unknown>;
}

function NameField({ preferences, change }: Props) {
  const app = useApp();
  const saving = useSaving();
  const store = async (name: string) => {
    if (await saving.save(() => change({ name }))) app.person.call(name.trim().replace(/\s+/g, " "));
  };
  return (
    <Field
      id="settings-name"
      label={t("settings.name")}
      about={t("settings.name-about", { user: app.boot.user })}
      saving={saving}
    >
      <input
        id="settings-name"
        class="field"
        type="text"
        maxLength={80}
        dir="auto"
        autocomplete="name"
        placeholder={app.boot.user}
        aria-describedby="settings-name-about settings-name-error"
        defaultValue={preferences.name}
        onChange={(event) => store(event.currentTarget.value)}
      />
    </Field>
  );
}

function LanguageField({ preferences, change }: Props) {
  const saving = useSaving();
  const store = async (language: string) => {
    if (await saving.save(() => change({ language }))) location.reload(); // every text is another one
  };
  return (
    <Field id="settings-language" label={t("settings.language")} saving={saving}>
      <select
        id="settings-language"
        class="field"
        aria-describedby="settings-language-error"
        value={preferences.language}
        onChange={(event) => store(event.currentTarget.value)}
      >
        <option value="">{t("settings.language-browser")}</option>
        {preferences.languages.map(({ code, name }) => <option key={code} value={code} lang={code}>{name}</option>)}
      </select>
    </Field>
  );
}

function ZoneField({ preferences, change }: Props) {
  const saving = useSaving();
  const store = async (zone: string) => {
    if (await saving.save(() => change({ zone }))) changeLook({ zone });
  };
  const known = Intl.supportedValuesOf("timeZone");
  const zones = [...new Set(["UTC", ...known, ...(preferences.zone ? [preferences.zone] : [])])].sort();
  return (
    <Field id="settings-zone" label={t("settings.zone")} about={t("settings.zone-about")} saving={saving}>
      <select
        id="settings-zone"
        class="field"
        aria-describedby="settings-zone-about settings-zone-error"
        value={preferences.zone}
        onChange={(event) => store(event.currentTarget.value)}
      >
        <option value="">{t("settings.zone-browser", { zone: browserZone() })}</option>
        {zones.map((zone) => <option key={zone} value={zone}>{zone.replaceAll("_", " ")}</option>)}
      </select>
    </Field>
  );
}

function ThemeField({ change }: Props) {
  const saving = useSaving();
  const [chosen, choose] = useState<Theme>(currentTheme());
  const store = (theme: Theme) => {
    choose(theme);
    changeLook({ theme });
    saving.save(() => change({ theme: theme === "system" ? "" : theme }));
  };
  const options = THEMES.map((value) => ({ value, label: t(THEME_LABELS[value]) }));
  return (
    <Choice
      name="settings-theme"
      legend={t("menu.theme")}
      options={options}
      chosen={chosen}
      choose={store}
      saving={saving}
    />
  );
}

function SizeField({ change }: Props) {
  const saving = useSaving();
  const [chosen, choose] = useState<TextSize>(currentTextSize());
  const store = (textSize: TextSize) => {
    choose(textSize);
    changeLook({ textSize });
    saving.save(() => change({ text_size: textSize }));
  };
  const options = TEXT_SIZES.map((value) => ({ value, label: t(SIZE_LABELS[value]) }));
  return (
    <Choice
      name="settings-size"
      legend={t("settings.size")}
      options={options}
      chosen={chosen}
      choose={store}
      saving={saving}
    />
  );
}
