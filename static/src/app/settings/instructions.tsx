// The section "Instructions": what a person has every agent read, or some: who they are, and how to answer.

import { useState } from "preact/hooks";
import { formatCount, t } from "../lib/i18n.ts";
import { estimateTokens } from "../lib/tokens.ts";
import {
  changePreferences,
  type Preferences,
  type PreferencesChange,
  readPreferences,
} from "../net/preferences_api.ts";
import { Failure } from "../panels/panel.tsx";
import { useApp } from "../ui/context.ts";
import { Field, SavingState, useSaving } from "./field.tsx";
import { useSection } from "./reading.ts";

type Text = "about_me" | "how_to_answer";

const WORDS = {
  about_me: { label: "settings.about-me", about: "settings.about-me-about" },
  how_to_answer: { label: "settings.how-to-answer", about: "settings.how-to-answer-about" },
} as const;

interface Props {
  preferences: Preferences;
  change: (wanted: PreferencesChange) => Promise<unknown>;
}

export function InstructionsSection() {
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
      <p class="settings-intro">{t("settings.instructions-about")}</p>
      <TextField {...props} field="about_me" />
      <TextField {...props} field="how_to_answer" />
      <Readers {...props} />
    </>
  );
}

function TextField({ preferences, change, field }: Props & { field: Text }) {
  const saving = useSaving();
  const [text, write] = useState(preferences[field]);
  const id = `settings-${field.replaceAll("_", "-")}`;
  const tokens = estimateTokens(text.trim());
  const most = preferences.max_tokens;
  return (
    <Field id={id} label={t(WORDS[field].label)} about={t(WORDS[field].about)} saving={saving}>
      <textarea
        id={id}
        class="field"
        rows={6}
        maxLength={20_000}
        dir="auto"
        aria-describedby={`${id}-about ${id}-count ${id}-error`}
        value={text}
        onInput={(event) => write(event.currentTarget.value)}
        onChange={() => saving.save(() => change({ [field]: text }))}
      />
      <p id={`${id}-count`} class={tokens > most ? "settings-count is-error" : "settings-count"}>
        {t("settings.tokens", { used: formatCount(tokens), count: most })}
      </p>
    </Field>
  );
}

/** All agents, or those that are ticked. */
function Readers({ preferences: { read_by: readers }, change }: Props) {
  const { agents } = useApp();
  const saving = useSaving();
  const [isChoosing, setChoosing] = useState(readers !== null);
  const [ticked, setTicked] = useState<readonly string[]>(readers ?? []);
  const store = (names: string[] | null) => saving.save(() => change({ read_by: names }));
  const tick = (name: string, isTicked: boolean) => {
    const others = ticked.filter((each) => each !== name);
    const names = isTicked ? [...others, name] : others;
    setTicked(names);
    store(names);
  };
  const radio = (isForSome: boolean, label: string, choose: () => void) => (
    <label class="ticked">
      <input type="radio" class="tick" name="settings-readers" checked={isChoosing === isForSome} onChange={choose} />
      <span>{label}</span>
    </label>
  );
  return (
    <fieldset class="settings-field" aria-describedby="settings-readers-error">
      <legend class="settings-label">{t("settings.readers")}</legend>
      {radio(false, t("settings.readers-all"), () => {
        setChoosing(false);
        setTicked([]);
        if (readers !== null) store(null);
      })}
      {radio(true, t("settings.readers-some"), () => setChoosing(true))}
      {isChoosing && (
        <div class="settings-ticks" role="group" aria-label={t("settings.readers-some")}>
          {agents.map(({ name, title }) => (
            <label key={name} class="ticked">
              <input
                type="checkbox"
                class="tick"
                checked={ticked.includes(name)}
                onChange={(event) => tick(name, event.currentTarget.checked)}
              />
              <span dir="auto">{title}</span>
            </label>
          ))}
        </div>
      )}
      <p class="settings-result">
        <SavingState saving={saving} id="settings-readers-error" />
      </p>
    </fieldset>
  );
}
