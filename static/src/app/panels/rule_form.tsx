// A rule about calls: a new one, or one of the person's own, to change or to end. Rules of the site and of the agent are shown.

import { useId, useState } from "preact/hooks";
import { fullTime } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutTricks } from "../lib/readable.ts";
import type { Level, Rule, ToolsApi } from "../net/tools_api.ts";
import { ACTIONS, whose } from "../store/rule_facts.ts";
import { Item, LevelChoice, useAttempt } from "./tools_pieces.tsx";
import { Problem } from "../ui/problem.tsx";

const LASTS = { "": 0, hour: 3_600, day: 86_400, week: 604_800 } as const;
type Lasts = keyof typeof LASTS;

interface Props {
  /** "" as `instanceId`: for all conversations. */
  tools: { api: ToolsApi; instanceId: string; reading: { again(): Promise<void> } };
  /** Null for a new one. */
  rule: Rule | null;
  close: () => void;
  /** Where the way back leads, if not to the lists of tools. */
  backTo?: string;
}

export function RuleForm({ tools, rule, close, backTo }: Props) {
  const { api, instanceId } = tools;
  const [action, setAction] = useState<Rule["action"]>(rule?.action ?? "ask");
  const [key, setKey] = useState(rule?.key ?? "");
  const [pattern, setPattern] = useState(rule?.pattern ?? "*");
  const [lasts, setLasts] = useState<Lasts>("");
  const [level, setLevel] = useState<Level>(instanceId ? "instance" : "user");
  const { problem, isBusy, attempt } = useAttempt(tools);
  const id = useId();
  const submit = async (event: Event) => {
    event.preventDefault();
    const end = LASTS[lasts] ? new Date(Date.now() + LASTS[lasts] * 1_000).toISOString() : rule?.expires_at ?? null;
    const written = { action, key: key.trim(), pattern: pattern.trim() || "*", expires_at: end };
    if (await attempt(() => rule ? api.changeRule(rule.id, written) : api.addRule(level, written))) close();
  };
  const remove = async () => {
    if (rule && await attempt(() => api.removeRule(rule.id))) close();
  };
  return (
    <Item title={rule ? rule.name : t("rules.add")} backTo={backTo} close={close}>
      <form class="tools-form" onSubmit={submit}>
        {rule && <p class="muted">{whose(rule)}{rule.expires_at && ` · ${until(rule)}`}</p>}
        <ActionChoice form={id} action={action} choose={setAction} />
        <Line id={`${id}-key`} label={t("rules.key")} about={t("rules.key-about")} value={key} write={setKey} />
        <Line
          id={`${id}-pattern`}
          label={t("rules.pattern")}
          about={t("rules.pattern-about")}
          value={pattern}
          write={setPattern}
        />
        <label for={`${id}-lasts`} class="field-label">{t("rules.lasts")}</label>
        <select
          id={`${id}-lasts`}
          class="field"
          value={lasts}
          onChange={(event) => setLasts(event.currentTarget.value as Lasts)}
        >
          <option value="">{rule?.expires_at ? until(rule) : t("rules.lasts-always")}</option>
          <option value="hour">{t("rules.lasts-hour")}</option>
          <option value="day">{t("rules.lasts-day")}</option>
          <option value="week">{t("rules.lasts-week")}</option>
        </select>
        {!rule && <LevelChoice form={id} instanceId={instanceId} level={level} choose={setLevel} />}
        <Problem text={problem} />
        <p class="panel-actions">
          <button type="submit" class="button is-primary" disabled={isBusy}>
            {t(rule ? "common.save" : "rules.add-confirm")}
          </button>
          {rule && (
            <button type="button" class="button is-danger" disabled={isBusy} onClick={remove}>{t("rules.end")}</button>
          )}
          <button type="button" class="button" onClick={close}>{t("common.cancel")}</button>
        </p>
      </form>
    </Item>
  );
}

const until = (rule: Rule) => t("rules.until", { when: fullTime(rule.expires_at!) });

function ActionChoice({ form, action, choose }: {
  form: string;
  action: Rule["action"];
  choose: (action: Rule["action"]) => void;
}) {
  return (
    <fieldset class="tools-levels">
      <legend class="field-label">{t("rules.action")}</legend>
      {(["allow", "ask", "deny"] as const).map((each) => (
        <label key={each} class="ticked">
          <input
            type="radio"
            class="tick"
            name={`${form}-action`}
            checked={action === each}
            onChange={() => choose(each)}
          />
          <span>{t(ACTIONS[each])}</span>
        </label>
      ))}
    </fieldset>
  );
}

interface LineProps {
  id: string;
  label: string;
  about: string;
  value: string;
  write: (text: string) => void;
}

function Line({ id, label, about, value, write }: LineProps) {
  return (
    <>
      <label for={id} class="field-label">{label}</label>
      <input
        id={id}
        class="field is-code"
        type="text"
        required
        maxLength={1_000}
        dir="ltr"
        autocomplete="off"
        spellcheck={false}
        aria-describedby={`${id}-about`}
        value={value}
        onInput={(event) => write(event.currentTarget.value)}
      />
      <p id={`${id}-about`} class="muted">{about}</p>
    </>
  );
}

/** A rule that is not the person's to change. */
export function RuleView({ rule, close }: { rule: Rule; close: () => void }) {
  return (
    <Item title={rule.name} close={close}>
      <p>{t(ACTIONS[rule.action])}</p>
      <p class="muted">{t("rules.of-others", { whose: withoutTricks(whose(rule)) })}</p>
    </Item>
  );
}
