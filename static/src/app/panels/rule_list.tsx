// The rules about calls that count in a conversation, and plan mode. A section of the view of tools.

import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Rule } from "../net/tools_api.ts";
import { aboutOf, ACTIONS, isPlan, MOODS, whose } from "../store/rule_facts.ts";
import { AddButton, Row } from "./tool_rows.tsx";
import { useAttempt } from "./tools_pieces.tsx";
import type { Tools } from "./tools.tsx";
import { Problem } from "../ui/problem.tsx";

export function RuleList({ tools, rules }: { tools: Tools; rules: readonly Rule[] }) {
  const { problem, isBusy, attempt } = useAttempt(tools);
  const plans = rules.some(isPlan);
  return (
    <section aria-label={t("rules.title")}>
      <h2>{t("rules.title")}</h2>
      <p class="muted">{t(rules.length ? "rules.about" : "rules.none")}</p>
      <ul class="tools-rows">
        {rules.map((rule, at) => (
          <Row
            key={rule.id || at}
            view={{ kind: "rule", key: rule.id || String(at) }}
            icon="check"
            name={withoutTricks(aboutOf(rule))}
            facts={whose(rule)}
            state={t(ACTIONS[rule.action])}
            mood={MOODS[rule.action]}
          />
        ))}
      </ul>
      <Problem text={problem} />
      <p class="panel-actions">
        <AddButton kind="new-rule" label={t("rules.add")} />
        {tools.instanceId && (
          <button
            type="button"
            class="button"
            aria-pressed={plans}
            disabled={isBusy}
            onClick={() => attempt(() => tools.api.plan(!plans))}
          >
            {t(plans ? "rules.plan-end" : "rules.plan-begin")}
          </button>
        )}
      </p>
    </section>
  );
}
