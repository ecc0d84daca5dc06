// How much a model thinks, and the basic parameters of its answers. What is not set is the agent's affair.

import { useEffect, useId, useRef, useState } from "preact/hooks";
import { type MessageKey, t } from "../lib/i18n.ts";
import type { ModelFacts } from "../store/models.ts";
import type { ModelChoice } from "../store/types.ts";
import { Fold } from "./fold.tsx";
import { effortLabel } from "./model_facts.ts";

interface Props {
  model: ModelFacts;
  choice: ModelChoice;
  /** Store another choice; resolves to whether it was taken. */
  choose: (wanted: ModelChoice) => Promise<boolean>;
}

/** Keys that move the focus among models elsewhere in the popover belong to the field here. */
const keepKeys = (event: KeyboardEvent): void => {
  if (event.key !== "Escape") event.stopPropagation();
};

export function EffortChoice({ model, choice, choose }: Props) {
  const name = useId();
  if (!model.reasoning_efforts.length) return null;
  return (
    <fieldset class="segments" onKeyDown={keepKeys}>
      <legend>{t("choice.effort")}</legend>
      <div class="segment-row">
        {["", ...model.reasoning_efforts].map((effort) => (
          <label key={effort} class="segment">
            <input
              type="radio"
              name={name}
              value={effort}
              checked={(choice.reasoning_effort ?? "") === effort}
              onChange={() => choose({ ...choice, reasoning_effort: effort || null })}
            />
            <span>{effort ? effortLabel(effort) : t("choice.default")}</span>
          </label>
        ))}
      </div>
    </fieldset>
  );
}

type Parameter = "temperature" | "top_p" | "max_output_tokens";

interface Range {
  name: Parameter;
  label: MessageKey;
  help: MessageKey;
  min: number;
  max: number;
  step: number;
}

const RANGES: readonly Range[] = [
  { name: "temperature", label: "choice.temperature", help: "choice.temperature-help", min: 0, max: 2, step: 0.1 },
  { name: "top_p", label: "choice.top-p", help: "choice.top-p-help", min: 0.01, max: 1, step: 0.01 },
  {
    name: "max_output_tokens",
    label: "choice.max-output",
    help: "choice.max-output-help",
    min: 1,
    max: 10_000_000,
    step: 1,
  },
];

export function Parameters({ model, choice, choose }: Props) {
  const shown = RANGES.filter(({ name }) => model.parameters.includes(name));
  const [wasSet] = useState(RANGES.some(({ name }) => choice[name] !== null));
  if (!shown.length) return null;
  const count = shown.filter(({ name }) => choice[name] !== null).length;
  return (
    <Fold
      icon="sliders"
      class="parameters"
      label={t("choice.parameters")}
      note={count > 0 && t("choice.parameters-set", { count })}
      isOpen={wasSet}
      onKeyDown={keepKeys}
    >
      {() =>
        shown.map((range) => {
          const max = range.name === "max_output_tokens" ? model.max_output_tokens ?? range.max : range.max;
          return (
            <Field
              key={`${model.name} ${range.name}`}
              {...range}
              max={max}
              value={choice[range.name]}
              set={(value) => choose({ ...choice, [range.name]: value })}
            />
          );
        })}
    </Fold>
  );
}

interface FieldProps extends Range {
  value: number | null;
  set: (value: number | null) => Promise<boolean>;
}

/** One number: stored when the field is left or Enter is pressed, never while one types. */
function Field({ label, help, min, max, step, value, set }: FieldProps) {
  const id = useId();
  const input = useRef<HTMLInputElement>(null);
  const stored = value === null ? "" : String(value);
  const [text, setText] = useState(stored);
  const [error, setError] = useState("");
  const shown = useRef(stored);
  useEffect(() => {
    if (shown.current !== stored) setText(stored); // not as it appears: a person may have typed before this runs
    shown.current = stored;
  }, [stored]);
  const store = () => {
    const { validity, value: typed, valueAsNumber } = input.current!;
    const wanted = typed.trim() === "" && !validity.badInput ? null : valueAsNumber;
    const isInside = wanted === null || (wanted >= min && wanted <= max);
    setError(isInside ? "" : t("choice.out-of-range", { min, max }));
    if (isInside && wanted !== value) set(wanted);
  };
  const reset = () => {
    setError("");
    set(null);
    input.current!.focus(); // the button goes away
  };
  return (
    <div class="parameter">
      <label for={id}>{t(label)}</label>
      <input
        id={id}
        ref={input}
        type="number"
        inputMode="decimal"
        min={min}
        max={max}
        step={step}
        placeholder={t("choice.default")}
        value={text}
        aria-describedby={`${id}-help`}
        aria-invalid={error !== ""}
        onInput={(event) => setText(event.currentTarget.value)}
        onChange={store}
        onKeyDown={(event) => {
          if (event.key !== "Enter") return;
          event.preventDefault(); // the field stands within the form of the message
          store();
        }}
      />
      {value !== null && <button type="button" class="quiet" onClick={reset}>{t("choice.reset")}</button>}
      <p id={`${id}-help`} class={error ? "is-error" : "muted"} role={error ? "alert" : undefined}>
        {error || t(help)}
      </p>
    </div>
  );
}
