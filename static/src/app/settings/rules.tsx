// The section "Rules": what a person has allowed or refused for good, in all conversations and in one. Each can be ended.

import { useState } from "preact/hooks";
import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import { type Rule, ToolsApi } from "../net/tools_api.ts";
import { Failure } from "../panels/panel.tsx";
import { RuleForm } from "../panels/rule_form.tsx";
import { useAttempt } from "../panels/tools_pieces.tsx";
import type { Reading } from "../ui/reading.ts";
import { inWords } from "../store/rule_facts.ts";
import { useApp } from "../ui/context.ts";
import { FollowLink } from "../ui/follow_link.tsx";
import { Problem } from "../ui/problem.tsx";
import { useReturnFocus } from "../ui/return_focus.ts";
import { useSection } from "./reading.ts";

const PLACE = "settings-rules";

export function RulesSection() {
  const app = useApp();
  const [api] = useState(() => new ToolsApi(app.api, ""));
  const reading = useSection(async (signal) => (await api.rules(signal)).items);
  const [isAdding, setAdding] = useState(false);
  const add = useReturnFocus<HTMLButtonElement>(isAdding);
  if (!reading.value) {
    return reading.error
      ? <Failure text={reading.error} again={() => reading.again()} />
      : <p class="muted">{t("common.loading")}</p>;
  }
  const tools = { api, instanceId: "", reading };
  if (isAdding) return <RuleForm tools={tools} rule={null} close={() => setAdding(false)} backTo={t("rules.title")} />;
  return (
    <div id={PLACE} tabIndex={-1}>
      <p class="settings-intro">{t(reading.value.length ? "rules.own-about" : "rules.own-none")}</p>
      <ul class="settings-rows">
        {reading.value.map((rule) => <RuleRow key={rule.id} rule={rule} api={api} reading={reading} />)}
      </ul>
      <p class="panel-actions">
        <button type="button" class="button" ref={add} onClick={() => setAdding(true)}>{t("rules.add")}</button>
      </p>
    </div>
  );
}

function RuleRow({ rule, api, reading }: { rule: Rule; api: ToolsApi; reading: Reading<Rule[]> }) {
  const app = useApp();
  const { problem, isBusy, attempt } = useAttempt({ reading }, PLACE);
  const words = withoutTricks(inWords(rule));
  const end = async () => {
    if (await attempt(() => api.removeRule(rule.id))) app.announcer.say(t("rules.ended"));
  };
  return (
    <li>
      <div class="settings-row-text">
        <p dir="auto">{words}</p>
        <p class="muted">
          {rule.instance_id
            ? (
              <FollowLink
                href={app.router.address({ page: "conversation", id: rule.instance_id, place: null })}
                go={() => app.place.open(rule.instance_id)}
                dir="auto"
              >
                {rule.title || t("conversation.new")}
              </FollowLink>
            )
            : t("rules.in-all")}
          {rule.created_at && ` · ${t("rules.since", { when: fullTime(rule.created_at) })}`}
          {rule.expires_at && ` · ${t("rules.until", { when: fullTime(rule.expires_at) })}`}
        </p>
        <Problem text={problem} />
      </div>
      <button
        type="button"
        class="button"
        disabled={isBusy}
        aria-label={t("rules.end-label", { rule: words })}
        onClick={end}
      >
        {t("rules.end-short")}
      </button>
    </li>
  );
}
