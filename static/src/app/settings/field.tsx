// Fields of the settings: each is saved by itself, and says beside it that it was, or why not.

import type { ComponentChildren } from "preact";
import { useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import { Icon } from "../ui/icon.tsx";

export interface Saving {
  state: "" | "saving" | "saved";
  error: string;
  /** Resolves to whether it is stored. The last of several counts. */
  save: (write: () => Promise<unknown>) => Promise<boolean>;
}

export function useSaving(): Saving {
  const [state, setState] = useState<Saving["state"]>("");
  const [error, setError] = useState("");
  const last = useRef(0);
  const save = async (write: () => Promise<unknown>): Promise<boolean> => {
    const mine = ++last.current;
    setState("saving");
    setError("");
    try {
      await write();
    } catch (failure) {
      if (mine === last.current) {
        setState("");
        setError(messageOf(failure));
      }
      return false;
    }
    if (mine === last.current) setState("saved");
    return true;
  };
  return { state, error, save };
}

/** "Saved", or why it was not. `id`: for the description of the field. */
export function SavingState({ saving: { state, error }, id }: { saving: Saving; id: string }) {
  return (
    <>
      <span class="settings-state" role="status">
        {state === "saving" && t("settings.saving")}
        {state === "saved" && (
          <>
            <Icon name="check" />
            {t("settings.saved")}
          </>
        )}
      </span>
      <span id={id} class="is-error" role="alert">{error}</span>
    </>
  );
}

interface FieldProps {
  /** Of the control, which `label` names. */
  id: string;
  label: string;
  about?: string;
  saving: Saving;
  children: ComponentChildren;
}

/** A control below its name and what it does. The control is described by `id-about` and `id-error`. */
export function Field({ id, label, about, saving, children }: FieldProps) {
  return (
    <div class="settings-field">
      <label for={id} class="settings-label">{label}</label>
      {about && <p id={`${id}-about`} class="muted">{about}</p>}
      {children}
      <p class="settings-result">
        <SavingState saving={saving} id={`${id}-error`} />
      </p>
    </div>
  );
}

interface ChoiceProps<Value extends string> {
  name: string;
  legend: string;
  about?: string;
  options: readonly { value: Value; label: string }[];
  chosen: Value;
  choose: (value: Value) => void;
  saving: Saving;
}

/** One of a few, all of them in sight. */
export function Choice<Value extends string>(props: ChoiceProps<Value>) {
  const { name, legend, about, options, chosen, choose, saving } = props;
  return (
    <fieldset class="settings-field" aria-describedby={`${name}-error`}>
      <legend class="settings-label">{legend}</legend>
      {about && <p class="muted">{about}</p>}
      <div class="segment-row settings-segments">
        {options.map(({ value, label }) => (
          <label key={value} class="segment">
            <input type="radio" name={name} checked={value === chosen} onChange={() => choose(value)} />
            <span>{label}</span>
          </label>
        ))}
      </div>
      <p class="settings-result">
        <SavingState saving={saving} id={`${name}-error`} />
      </p>
    </fieldset>
  );
}
