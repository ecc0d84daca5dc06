// Arguments of a call that a person changes before it is allowed. What does not fit is said beside its field.

import { useEffect, useId, useMemo, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { type Choice, chosenIn, edited, type Field, fieldsOf } from "../store/arguments.ts";
import { humanised } from "../store/tool_words.ts";
import type { JsonObject } from "../store/types.ts";
import { ArgumentsTable } from "./arguments_table.tsx";

interface Props {
  input: unknown;
  schema: JsonObject;
  mayEdit: boolean | string[];
  isBusy: boolean;
  submit: (input: JsonObject) => void;
  cancel: () => void;
  /** Where it is no change of what a model wrote. */
  submitLabel?: string;
  cancelLabel?: string;
  /** It was asked for by pressing a button. */
  takesFocus?: boolean;
}

const FEWEST_ROWS = 2;
const MOST_ROWS = 12;
const ONE_LINE = 60;

export function ArgumentsForm(props: Props) {
  const { input, schema, mayEdit, isBusy, submit, cancel, submitLabel, cancelLabel, takesFocus = true } = props;
  const form = useRef<HTMLFormElement>(null);
  const fields = useMemo(() => fieldsOf(input, schema, mayEdit), []);
  const [texts, setTexts] = useState<ReadonlyMap<string, string>>(new Map());
  const [problems, setProblems] = useState<ReadonlyMap<string, string>>(new Map());
  const focusFirst = (selector: string) => form.current?.querySelector<HTMLElement>(selector)?.focus();
  useEffect(() => {
    if (takesFocus) focusFirst("input, textarea, select");
  }, []);
  const onSubmit = (event: Event) => {
    event.preventDefault();
    const result = edited(input, fields, texts);
    setProblems(result.problems);
    if (!result.problems.size) return submit(result.input);
    setTimeout(() => focusFirst("[aria-invalid=true]"));
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key !== "Escape" || !takesFocus) return; // one that is simply there is not left by a key
    event.preventDefault(); // it ends the edit, nothing around it
    event.stopPropagation();
    cancel();
  };
  return (
    <form class="arguments-form" noValidate ref={form} onSubmit={onSubmit} onKeyDown={onKeyDown}>
      <ArgumentsTable input={withoutFields(input, fields)} />
      {fields.map((field) => (
        <FieldRow
          key={field.name}
          field={field}
          text={texts.get(field.name) ?? field.text}
          problem={problems.get(field.name) ?? ""}
          write={(text) => setTexts(new Map(texts).set(field.name, text))}
        />
      ))}
      <p class="question-buttons">
        <button type="submit" class="button is-primary" disabled={isBusy}>
          {submitLabel ?? t("approvals.allow-edited")}
        </button>
        <button type="button" class="button" disabled={isBusy} onClick={cancel}>
          {cancelLabel ?? t("common.cancel")}
        </button>
      </p>
    </form>
  );
}

/** What may not be changed is shown beside what may. */
function withoutFields(input: unknown, fields: readonly Field[]): unknown {
  if (typeof input !== "object" || input === null) return undefined;
  const names = new Set(fields.map((field) => field.name));
  return Object.fromEntries(Object.entries(input).filter(([name]) => !names.has(name)));
}

interface RowProps {
  field: Field;
  text: string;
  problem: string;
  write: (text: string) => void;
}

function FieldRow({ field, text, problem, write }: RowProps) {
  const id = useId();
  const common = {
    id,
    class: "field",
    "aria-invalid": problem !== "",
    "aria-describedby": problem ? `${id}-problem` : undefined,
    "aria-required": field.isRequired,
  };
  if (field.kind === "choices") {
    return (
      <fieldset class="argument-field" aria-describedby={problem ? `${id}-problem` : undefined}>
        <legend class="field-label" dir="auto">{humanised(field.name)}</legend>
        <Ticks field={field} text={text} write={write} isWrong={problem !== ""} />
        {problem && <p id={`${id}-problem`} class="is-error">{problem}</p>}
      </fieldset>
    );
  }
  return (
    <div class="argument-field">
      <label for={id} class="field-label" dir="auto">{humanised(field.name)}</label>
      <Control field={field} text={text} write={write} common={common} />
      {problem && <p id={`${id}-problem`} class="is-error">{problem}</p>}
    </div>
  );
}

interface TicksProps {
  field: Field;
  text: string;
  write: (text: string) => void;
  isWrong: boolean;
}

/** Any number of several values. */
function Ticks({ field: { choices }, text, write, isWrong }: TicksProps) {
  const chosen = new Set(chosenIn(text).map((value) => JSON.stringify(value)));
  const set = (key: string, isChosen: boolean) => {
    const keys = choices.map(({ value }) => JSON.stringify(value));
    write(`[${keys.filter((other) => (other === key ? isChosen : chosen.has(other))).join(",")}]`);
  };
  return (
    <>
      {choices.map((choice) => {
        const key = JSON.stringify(choice.value);
        return (
          <label class="ticked" key={key}>
            <input
              type="checkbox"
              class="tick"
              aria-invalid={isWrong}
              checked={chosen.has(key)}
              onChange={(event) => set(key, event.currentTarget.checked)}
            />
            <span dir="auto">{titleOf(choice)}</span>
          </label>
        );
      })}
    </>
  );
}

interface ControlProps {
  field: Field;
  text: string;
  write: (text: string) => void;
  common: Record<string, unknown>;
}

function Control({ field, text, write, common }: ControlProps) {
  const { kind } = field;
  if (kind === "choice" || kind === "boolean") {
    const choices = kind === "boolean" ? [true, false].map((value) => ({ value, title: "" })) : field.choices;
    const canBeEmpty = !field.isRequired || field.isNullable || text === "";
    return (
      <select {...common} value={text} onChange={(event) => write(event.currentTarget.value)}>
        {canBeEmpty && <option value="">{emptyText(field)}</option>}
        {choices.map((choice) => {
          const value = JSON.stringify(choice.value);
          return <option key={value} value={value}>{titleOf(choice)}</option>;
        })}
      </select>
    );
  }
  const placeholder = field.isRequired ? undefined : emptyText(field);
  const onInput = (event: { currentTarget: { value: string } }) => write(event.currentTarget.value);
  if (kind === "number") {
    return (
      <input
        {...common}
        type="text"
        inputMode="decimal"
        autocomplete="off"
        placeholder={placeholder}
        value={text}
        onInput={onInput}
      />
    );
  }
  const isLong = kind === "json" || field.text.length > ONE_LINE || field.text.includes("\n");
  if (!isLong) {
    return (
      <input
        {...common}
        type="text"
        dir="auto"
        autocomplete="off"
        placeholder={placeholder}
        value={text}
        onInput={onInput}
      />
    );
  }
  const lines = field.text.split("\n").length;
  const rows = Math.min(MOST_ROWS, Math.max(FEWEST_ROWS, lines, Math.ceil(field.text.length / ONE_LINE)));
  const look = kind === "json" ? "field is-code" : "field";
  return <textarea {...common} class={look} rows={rows} dir="auto" spellcheck={false} value={text} onInput={onInput} />;
}

/** What an empty field stands for. */
function emptyText({ schema, isNullable, choices }: Field): string {
  const value = schema.default;
  if (value === undefined || value === null || isNullable) return t("calls.empty");
  const choice = choices.find((each) => each.value === value);
  return t("calls.default", { value: choice ? titleOf(choice) : choiceText(value) });
}

const titleOf = ({ value, title }: Choice): string => title ? withoutTricks(title) : choiceText(value);

function choiceText(choice: unknown): string {
  if (typeof choice === "boolean") return t(choice ? "calls.yes" : "calls.no");
  return typeof choice === "string" ? choice : JSON.stringify(choice);
}
