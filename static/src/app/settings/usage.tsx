// The section "Usage": what one's conversations have used, and what each limit leaves.

import { useEffect, useState } from "preact/hooks";
import { dayLabel, fileSize, hourLabel, money } from "../lib/format.ts";
import { formatCount, type MessageKey, t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import {
  type BudgetView,
  type Figures,
  type LimitView,
  type UsageReport,
  type UsageRow,
  WorkApi,
} from "../net/work_api.ts";
import { Failure } from "../panels/panel.tsx";
import { Reading } from "../ui/reading.ts";
import { useApp } from "../ui/context.ts";
import { FollowLink } from "../ui/follow_link.tsx";
import { Plot } from "../ui/plot.tsx";

const PERIODS = [1, 7, 30] as const;
type Period = (typeof PERIODS)[number];
const PERIOD_LABELS = { 1: "usage.days-1", 7: "usage.days-7", 30: "usage.days-30" } as const;
const LOOK_MS = 15_000; // paces pass by themselves

export function UsageSection() {
  const app = useApp();
  const [days, setDays] = useState<Period>(7);
  const [api] = useState(() => new WorkApi(app.api));
  return (
    <>
      <Limits api={api} />
      <section aria-labelledby="usage-spent">
        <h3 id="usage-spent">{t("usage.spent")}</h3>
        <Periods days={days} choose={setDays} />
        <Spent key={days} api={api} days={days} />
      </section>
    </>
  );
}

function Periods({ days, choose }: { days: Period; choose: (days: Period) => void }) {
  return (
    <fieldset class="usage-periods">
      <legend class="visually-hidden">{t("usage.period")}</legend>
      {PERIODS.map((period) => (
        <label key={period} class={period === days ? "is-chosen" : ""}>
          <input type="radio" name="period" checked={period === days} onChange={() => choose(period)} />
          {t(PERIOD_LABELS[period])}
        </label>
      ))}
    </fieldset>
  );
}

/** Read while it is shown, and again after a while where `pause` is given. */
function useRead<Value>(read: (signal: AbortSignal) => Promise<Value>, pause = 0): Reading<Value> {
  const [reading] = useState(() => new Reading(read));
  useEffect(() => {
    reading.again();
    return () => reading.stop();
  }, []);
  const { value } = follow(reading);
  useEffect(() => {
    if (value && pause) reading.watch(pause);
  }, [value]);
  return reading;
}

function Spent({ api, days }: { api: WorkApi; days: Period }) {
  const reading = useRead((signal) => api.usage(days, signal));
  const { value, error } = reading;
  if (!value) {
    return error ? <Failure text={error} again={() => reading.again()} /> : <p class="muted">{t("usage.loading")}</p>;
  }
  if (!value.total.turn_count && !value.total.side_call_count) {
    return <p class="usage-nothing muted">{t("usage.nothing")}</p>;
  }
  return (
    <>
      <p class="usage-total">{factsOf(value.total)}</p>
      <Times report={value} />
      <Table
        title={t("usage.by-kind")}
        counted={t("usage.times")}
        rows={value.by_kind}
        name={({ key }) => t(KINDS[key] ?? "usage.kind-other")}
      />
      <Table title={t("usage.by-model")} rows={value.by_model} name={({ key }) => key || t("usage.model-unknown")} />
      <Table title={t("usage.by-agent")} rows={value.by_agent} name={({ key }) => <AgentTitle name={key} />} />
      <Table
        title={t("usage.by-conversation")}
        rows={value.by_conversation}
        name={({ key, label }) => (key ? <ConversationLink id={key} title={label} /> : t("usage.unlisted"))}
      />
    </>
  );
}

const KINDS: { readonly [key: string]: MessageKey } = {
  answer: "usage.kind-answer",
  title: "usage.kind-title",
  summary: "usage.kind-summary",
  compaction: "usage.kind-compaction",
  review: "usage.kind-review",
  sampling: "usage.kind-sampling",
};

/** "$0.31 · 3 messages · 1,483 tokens · 1 failed". */
function factsOf(figures: Figures): string {
  const tokens = figures.input_tokens + figures.output_tokens;
  const texts = [
    Number(figures.cost) > 0 && money(figures.cost),
    t("usage.turns-count", { count: figures.turn_count }),
    tokens > 0 && t("panel.tokens", { count: tokens }),
    figures.failed_count > 0 && t("usage.failed", { count: figures.failed_count }),
  ];
  return texts.filter(Boolean).join(" · ");
}

/** The cost over time; tokens where nothing has a price. */
function Times({ report: { points, days, total } }: { report: UsageReport }) {
  const hasCost = Number(total.cost) > 0;
  const isDay = days === 1;
  const valueOf = ({ cost, input_tokens, output_tokens }: Figures) =>
    hasCost ? Number(cost) : input_tokens + output_tokens;
  const textOf = (value: number) => (hasCost ? money(value) : formatCount(value));
  const bars = points.map(({ start, figures }) => ({
    name: isDay ? hourLabel(start) : dayLabel(start),
    value: valueOf(figures),
    text: textOf(valueOf(figures)),
  }));
  const most = Math.max(...bars.map(({ value }) => value));
  const [byHour, byDay] = hasCost
    ? ["usage.cost-by-hour", "usage.cost-by-day"] as const
    : ["usage.tokens-by-hour", "usage.tokens-by-day"] as const;
  return (
    <Plot
      label={t(isDay ? byHour : byDay)}
      time={t(isDay ? "usage.hour" : "usage.day")}
      most={textOf(most)}
      bars={bars}
    />
  );
}

interface TableProps {
  title: string;
  rows: readonly UsageRow[];
  name: (row: UsageRow) => preact.ComponentChild;
  /** The head of what is counted, where it is not messages alone. */
  counted?: string;
}

function Table({ title, rows, name, counted = "" }: TableProps) {
  const hasCost = rows.some(({ figures }) => Number(figures.cost) > 0);
  return (
    <div class="usage-scroll" tabIndex={0} role="region" aria-label={title}>
      <table class="usage-table">
        <thead>
          <tr>
            <th scope="col">{title}</th>
            <th scope="col" class="is-number">{counted || t("usage.turns")}</th>
            <th scope="col" class="is-number">{t("usage.tokens")}</th>
            {hasCost && <th scope="col" class="is-number">{t("usage.cost")}</th>}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key}>
              <th scope="row" dir="auto">{name(row)}</th>
              <td class="is-number">
                {formatCount(row.figures.turn_count + (counted ? row.figures.side_call_count : 0))}
              </td>
              <td class="is-number">{formatCount(row.figures.input_tokens + row.figures.output_tokens)}</td>
              {hasCost && <td class="is-number">{money(row.figures.cost)}</td>}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 25 && <p class="muted">{t("usage.dearest")}</p>}
    </div>
  );
}

function AgentTitle({ name }: { name: string }) {
  return <>{useApp().agentOf({ agent: name }).title}</>;
}

function ConversationLink({ id, title }: { id: string; title: string }) {
  const app = useApp();
  return (
    <FollowLink href={app.router.address({ page: "conversation", id, place: null })} go={() => app.place.open(id)}>
      {title || t("conversation.new")}
    </FollowLink>
  );
}

const LIMITS: Record<LimitView["name"], MessageKey> = {
  turns: "usage.turns",
  delegated_turns: "usage.delegated-turns",
  conversations: "usage.conversations",
  messages: "usage.messages",
  message_bytes: "usage.message-bytes",
  uploads: "usage.uploads",
  files: "usage.files",
  file_bytes: "usage.file-bytes",
  workspace_bytes: "usage.workspace-bytes",
  workspace_entries: "usage.workspace-entries",
  runs: "usage.runs",
  background: "usage.background",
  schedules: "usage.schedules",
};

const NEARLY_FULL = 0.8;

function Limits({ api }: { api: WorkApi }) {
  const reading = useRead((signal) => api.limits(signal), LOOK_MS);
  const { value, error } = reading;
  return (
    <section aria-labelledby="usage-limits">
      <h3 id="usage-limits">{t("usage.limits")}</h3>
      <p class="muted">{t("usage.limits-about")}</p>
      {error && !value && <Failure text={error} again={() => reading.again()} />}
      <ul class="usage-limits">
        {value?.map((view) => <Limit key={view.name} view={view} />)}
      </ul>
      <Budgets api={api} />
    </section>
  );
}

/** What a person has limited on single conversations; nothing where there is none. */
function Budgets({ api }: { api: WorkApi }) {
  const reading = useRead((signal) => api.budgets(signal));
  const { value, error } = reading;
  if (error && !value) return <Failure text={error} again={() => reading.again()} />;
  if (!value?.length) return null;
  return (
    <>
      <h4 id="usage-budgets" class="usage-budgets">{t("usage.budgets")}</h4>
      <p class="muted">{t("usage.budgets-about")}</p>
      <ul class="usage-limits" aria-labelledby="usage-budgets">
        {value.map((view) => <Budget key={view.session_id} view={view} />)}
      </ul>
    </>
  );
}

function Budget({ view }: { view: BudgetView }) {
  const cost = Number(view.cost), most = Number(view.max_cost);
  const text = t("usage.of", { used: money(view.cost), limit: money(view.max_cost) });
  const isSpent = Number(view.left) <= 0;
  const label = view.title || t("conversation.new");
  return (
    <li data-budget={view.instance_id} class={cost >= most * NEARLY_FULL ? "is-tight" : ""}>
      <span class="usage-limit-name" dir="auto">
        <ConversationLink id={view.instance_id} title={view.title} />
        {view.session_name && ` · ${view.session_name}`}
      </span>
      <span class="usage-limit-text">{isSpent ? `${t("usage.spent-up")}: ${text}` : text}</span>
      {most > 0 && (
        <meter min={0} max={most} value={Math.min(cost, most)} high={most * NEARLY_FULL} aria-label={label}>
          {text}
        </meter>
      )}
      {!isSpent && <span class="usage-limit-left">{t("usage.left", { left: money(view.left) })}</span>}
    </li>
  );
}

function Limit({ view }: { view: LimitView }) {
  const { name, used, limit, unit, window_seconds } = view;
  const shown = (value: number) => (unit === "bytes" ? fileSize(value) : formatCount(value));
  const key = window_seconds ? "usage.of-minute" : "usage.of";
  const text = t(key, { used: shown(used), limit: shown(limit) });
  const isTight = used >= limit * NEARLY_FULL;
  return (
    <li data-limit={name} class={isTight ? "is-tight" : ""}>
      <span class="usage-limit-name">{t(LIMITS[name])}</span>
      <span class="usage-limit-text">{used >= limit ? `${t("usage.full")}: ${text}` : text}</span>
      <meter min={0} max={limit} value={Math.min(used, limit)} high={limit * NEARLY_FULL} aria-label={t(LIMITS[name])}>
        {text}
      </meter>
    </li>
  );
}
