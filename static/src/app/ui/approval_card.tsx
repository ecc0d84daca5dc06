// One call that waits for a decision: what would happen, with which arguments, and the buttons.

import { t } from "../lib/i18n.ts";
import { fullTime } from "../lib/format.ts";
import type { Decision } from "../store/deciding.ts";
import type { JsonObject } from "../store/types.ts";

export interface ApprovalCardProps {
  title: string;
  sentence: string;
  input: unknown;
  schema: JsonObject | null;
  mayEdit: boolean | string[];
  expiresAt: string | null;
  isReadOnly: boolean;
  decide: (decision: Decision) => unknown;
}

export function ApprovalCard({ title, sentence, input, expiresAt, isReadOnly, decide }: ApprovalCardProps) {
  return (
    <div class="question">
      <p class="question-title">{title}</p>
      {sentence && <p>{sentence}</p>}
      <dl class="arguments">
        {Object.entries((input ?? {}) as JsonObject).map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{typeof value === "string" ? value : JSON.stringify(value)}</dd>
          </div>
        ))}
      </dl>
      {expiresAt && <p class="muted">{fullTime(expiresAt)}</p>}
      {!isReadOnly && (
        <p class="question-actions">
          <button type="button" class="button is-primary" onClick={() => decide({ approved: true })}>
            {t("approvals.allow")}
          </button>
          <button type="button" class="button" onClick={() => decide({ approved: false })}>
            {t("approvals.decline")}
          </button>
        </p>
      )}
    </div>
  );
}
