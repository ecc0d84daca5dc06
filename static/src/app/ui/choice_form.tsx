// A question of the agent's with choices: one or several of them, or an answer in own words.

import { useId, useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { ChoiceQuestion } from "../store/types.ts";

interface Props {
  questions: readonly ChoiceQuestion[];
  isBusy: boolean;
  answer: (answers: string[][]) => void;
  decline: () => void;
}

interface Given {
  chosen: readonly string[];
  own: string;
}

const NOTHING: Given = { chosen: [], own: "" };
const LONGEST = 4_000;

/** The texts of an answer: of a question that takes one, the own words count before what was chosen. */
export function answerOf(question: ChoiceQuestion, { chosen, own }: Given): string[] {
  const words = own.trim() ? [own.trim()] : [];
  if (question.multiple) return [...new Set([...chosen, ...words])];
  return words.length ? words : [...chosen];
}

export function ChoiceForm({ questions, isBusy, answer, decline }: Props) {
  const [given, setGiven] = useState<readonly Given[]>(questions.map(() => NOTHING));
  const [isChecked, setChecked] = useState(false);
  const form = useRef<HTMLFormElement>(null);
  const answers = questions.map((question, at) => answerOf(question, given[at]));
  const onSubmit = (event: Event) => {
    event.preventDefault();
    setChecked(true);
    const missing = answers.findIndex((texts) => !texts.length);
    if (missing < 0) return answer(answers);
    form.current!.querySelectorAll("fieldset")[missing].querySelector<HTMLElement>("input, textarea")?.focus();
  };
  return (
    <form class="choices" noValidate ref={form} onSubmit={onSubmit}>
      {questions.map((question, at) => (
        <Question
          key={at}
          question={question}
          given={given[at]}
          isMissing={isChecked && !answers[at].length}
          give={(next) => setGiven(given.map((each, index) => (index === at ? next : each)))}
        />
      ))}
      <p class="question-buttons">
        <button type="submit" class="button is-primary" disabled={isBusy}>{t("approvals.answer")}</button>
        <button type="button" class="button" disabled={isBusy} onClick={decline}>{t("approvals.no-answer")}</button>
      </p>
    </form>
  );
}

interface QuestionProps {
  question: ChoiceQuestion;
  given: Given;
  isMissing: boolean;
  give: (given: Given) => void;
}

function Question({ question, given, isMissing, give }: QuestionProps) {
  const id = useId();
  const options = question.options ?? [];
  const isMultiple = question.multiple === true;
  const choose = (label: string, isChosen: boolean) => {
    if (!isMultiple) return give({ chosen: [label], own: "" });
    give({ ...given, chosen: isChosen ? [...given.chosen, label] : given.chosen.filter((each) => each !== label) });
  };
  const hasWords = question.custom !== false || !options.length;
  return (
    <fieldset aria-describedby={isMissing ? `${id}-missing` : undefined}>
      <legend dir="auto">
        {question.header && <span class="choices-header">{withoutTricks(question.header)}</span>}
        {withoutTricks(question.question)}
      </legend>
      {options.map(({ label, description }) => (
        <label key={label} class="choice" dir="auto">
          <input
            type={isMultiple ? "checkbox" : "radio"}
            name={id}
            checked={given.chosen.includes(label)}
            onChange={(event) => choose(label, event.currentTarget.checked)}
          />
          <span>
            <span class="choice-label">{withoutTricks(label)}</span>
            {description && <span class="muted">{withoutTricks(description)}</span>}
          </span>
        </label>
      ))}
      {hasWords && (
        <textarea
          class="field"
          rows={1}
          dir="auto"
          maxLength={LONGEST}
          aria-label={t(options.length ? "approvals.other" : "approvals.own-words")}
          placeholder={t(options.length ? "approvals.other" : "approvals.own-words")}
          value={given.own}
          onInput={(event) => {
            const own = event.currentTarget.value;
            give({ chosen: own.trim() && !isMultiple ? [] : given.chosen, own });
          }}
        />
      )}
      {isMissing && <p id={`${id}-missing`} class="is-error" role="alert">{t("approvals.answer-missing")}</p>}
    </fieldset>
  );
}
