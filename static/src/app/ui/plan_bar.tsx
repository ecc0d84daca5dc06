// Says that the conversation is in plan mode, and ends it.

import { useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { messageOf } from "../net/api.ts";
import { ToolsApi } from "../net/tools_api.ts";
import { useApp } from "./context.ts";
import { Problem } from "./problem.tsx";

export function PlanBar({ instanceId, isReadOnly }: { instanceId: string; isReadOnly: boolean }) {
  const { api, composer } = useApp();
  const [isBusy, setBusy] = useState(false);
  const [problem, setProblem] = useState("");
  const leave = async () => {
    setBusy(true);
    try {
      await new ToolsApi(api, instanceId).plan(false);
      composer.focus(); // the bar goes away
    } catch (error) {
      setProblem(messageOf(error));
    }
    setBusy(false);
  };
  return (
    <section id="plan" class="guard is-quiet" aria-label={t("rules.plan")}>
      <div role="status">
        <p>{t("rules.plan-about")}</p>
      </div>
      <Problem text={problem} />
      {!isReadOnly && (
        <p class="guard-buttons">
          <button type="button" class="button" disabled={isBusy} onClick={leave}>{t("rules.plan-end")}</button>
        </p>
      )}
    </section>
  );
}
