// The arguments of a call as people read them: a row for each, nested ones as JSON, long ones cut until they are asked for.

import { useId, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import { humanised } from "../store/tool_words.ts";
import { Value } from "./value.tsx";

const LONGEST = 400;

const isRecord = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

export function ArgumentsTable({ input }: { input: unknown }) {
  if (!isRecord(input)) return input === undefined || input === null ? null : <Value value={input} />;
  const entries = Object.entries(input);
  if (!entries.length) return null;
  return (
    <dl class="arguments">
      {entries.map(([name, value]) => (
        <div class="argument" key={name}>
          <dt title={name} dir="auto">{humanised(name)}</dt>
          <dd>
            <Shown value={value} />
          </dd>
        </div>
      ))}
    </dl>
  );
}

function Shown({ value }: { value: unknown }) {
  if (value === null || value === "") return <span class="muted">{t("calls.empty")}</span>;
  if (typeof value === "boolean") return <>{t(value ? "calls.yes" : "calls.no")}</>;
  if (typeof value === "number") return <span class="argument-number">{String(value)}</span>;
  if (typeof value === "string") return <LongText text={value} />;
  return <Value value={value} />;
}

function LongText({ text }: { text: string }) {
  const id = useId();
  const [isWhole, setWhole] = useState(false);
  if (text.length <= LONGEST) return <span class="argument-text" dir="auto">{text}</span>;
  return (
    <>
      <span id={id} class="argument-text" dir="auto">{isWhole ? text : `${text.slice(0, LONGEST)}…`}</span>{" "}
      <button type="button" class="quiet" aria-expanded={isWhole} aria-controls={id} onClick={() => setWhole(!isWhole)}>
        {t(isWhole ? "message.show-less" : "common.show-all")}
      </button>
    </>
  );
}
