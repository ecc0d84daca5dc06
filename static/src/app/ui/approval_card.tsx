// A call that asks for approval: in the tool's own words what would happen, its arguments, and the answers to it. Where the tool
// permits it, the arguments can be changed first. It knows of nothing around it.

import { useEffect, useRef, useState } from "preact/hooks";
import { relativeTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { askedKind } from "../store/asked.ts";
import type { Decision } from "../store/deciding.ts";
import { mayDecide } from "../store/instances.ts";
import type { People } from "../store/people.ts";
import { textIn } from "../store/tool_details.ts";
import type { ChoiceQuestion, Instance, JsonObject, Offer, Risk } from "../store/types.ts";
import { lazy } from "./lazy.tsx";
import { ArgumentsTable } from "./arguments_table.tsx";
import { Asked } from "./asked.tsx";
import { ChoiceForm } from "./choice_form.tsx";
import { DecisionButtons } from "./decision_buttons.tsx";

const ArgumentsForm = lazy(async () => (await import("../later/calls.ts")).ArgumentsForm);

export interface ApprovalCardProps {
  /** The tool's name, and the id of the call. */
  tool: string;
  callId: string;
  /** What the tool does, in a few words. */
  title: string;
  /** The tool's own sentence with the arguments in it; may be empty. */
  sentence: string;
  risk: Risk;
  /** Where the text comes from for which the injection guard asks. */
  because?: readonly string[];
  /** Why it is asked where no rule of the tool asks: `doom_loop`. */
  why?: string;
  /** The rules that an approval for always adds; none where it may not be given. */
  offers: readonly Offer[];
  /** The rule that asks; may be empty. */
  rule: string;
  /** Questions with choices, in place of arguments. */
  choices: readonly ChoiceQuestion[];
  input: unknown;
  /** JSON schema of the arguments; null where it is not known. */
  schema: JsonObject | null;
  /** Names of arguments that may be changed, or all of them (true), or none (false). */
  mayEdit: boolean | string[];
  /** When it can be answered no longer, ISO 8601. */
  expiresAt: string | null;
  isReadOnly: boolean;
  /** Whose decision it is, where several people are there; may be empty. */
  askedOf?: string;
  /** Resolves to whether the decision is stored. */
  decide: (decision: Decision) => Promise<boolean>;
}

const RISKS = { low: "approvals.risk-low", medium: "approvals.risk-medium", high: "approvals.risk-high" } as const;

export function ApprovalCard(props: ApprovalCardProps) {
  const { title, sentence, input, schema, mayEdit, isReadOnly } = props;
  const kind = askedKind(props.tool, props.callId, input);
  const [isBusy, setBusy] = useState(false);
  const [isEdited, setEditing] = useState(false);
  const edit = useRef<HTMLButtonElement>(null);
  const canEdit = schema !== null && (mayEdit === true || (Array.isArray(mayEdit) && mayEdit.length > 0));
  const isForm = kind === "words" && canEdit && !isReadOnly; // there is nothing yet that could be allowed
  const isEditing = isEdited || isForm;
  const decide = async (decision: Decision) => {
    setBusy(true);
    if (!(await props.decide(decision))) setBusy(false); // it was not stored: try again
  };
  const stopEditing = () => {
    setEditing(false);
    setTimeout(() => edit.current?.focus());
  };
  return (
    <div class="question" role="group" aria-label={t("approvals.approve", { title })}>
      {(kind === "words" || kind === "link") && (
        <p class="asked-by" dir="auto">{t("servers.asks", { server: withoutTricks(title) })}</p>
      )}
      {!props.choices.length && (
        <p class="question-text" dir="auto">
          {withoutTricks(!isEdited && sentence || t("approvals.question", { title }))}
        </p>
      )}
      {props.risk && <p class={`question-risk is-${props.risk}`}>{t(RISKS[props.risk])}</p>}
      {props.why === "doom_loop" && <p class="question-because">{t("approvals.loop")}</p>}
      {props.because?.length
        ? <p class="question-because">{t("guard.because", { sources: props.because.join(", ") })}</p>
        : null}
      {props.askedOf && <p class="question-because" dir="auto">{props.askedOf}</p>}
      {props.rule && <p class="question-because">{t("approvals.by-rule", { rule: props.rule })}</p>}
      {props.choices.length > 0 && !isReadOnly
        ? (
          <ChoiceForm
            questions={props.choices}
            isBusy={isBusy}
            answer={(answers) => decide({ approved: true, answers })}
            decline={() => decide({ approved: false })}
          />
        )
        : isEditing && schema
        ? (
          <ArgumentsForm
            input={input}
            schema={schema}
            mayEdit={mayEdit}
            isBusy={isBusy}
            submit={(editedInput) => decide({ approved: true, editedInput })}
            submitLabel={isForm ? t("servers.answer") : undefined}
            cancel={isForm ? () => decide({ approved: false }) : stopEditing}
            cancelLabel={isForm ? t("approvals.decline") : undefined}
            takesFocus={!isForm}
          />
        )
        : (
          <>
            {kind && kind !== "words"
              ? <Asked kind={kind} input={input as Record<string, unknown>} />
              : <ArgumentsTable input={input} />}
            {!isReadOnly && (
              <DecisionButtons
                title={title}
                offers={props.offers}
                isBusy={isBusy}
                edit={canEdit ? () => setEditing(true) : null}
                editButton={edit}
                decide={decide}
              />
            )}
          </>
        )}
      {props.expiresAt && <Expiry at={props.expiresAt} />}
    </div>
  );
}

/** Whose decision is waited for; "" where one person is alone. */
export function askedOf(people: People, instance: Instance): string {
  if (!people.areSeveral) return "";
  const names = people.approvers.join(", ");
  return mayDecide(instance) ? t("approvals.asked-of-you", { names }) : t("approvals.asked-of", { names });
}

/** The sources of the texts for which a question is asked; those that are no texts are left out. */
export const sourcesIn = (because: unknown): string[] =>
  (Array.isArray(because) ? because : []).map((each) => textIn(each, "source") || textIn(each, "kind")).filter(Boolean);

const LOOK_MS = 30_000;

function Expiry({ at }: { at: string }) {
  const [, look] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => look((count) => count + 1), LOOK_MS);
    return () => clearInterval(timer);
  }, []);
  const isOver = Date.parse(at) <= Date.now();
  return (
    <p class="question-expiry muted">
      {isOver ? t("approvals.expired") : t("approvals.expires", { when: relativeTime(at) })}
    </p>
  );
}
