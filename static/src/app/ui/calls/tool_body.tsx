// What an opened call shows: the view of its kind, or arguments and result as they are; what went wrong, what the tool reports,
// the files that it returned, and the whole of a result that was cut.

import { useState } from "preact/hooks";
import { fileSize } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import { terminalText } from "../../lib/readable.ts";
import { messageOf } from "../../net/api.ts";
import { askedKind } from "../../store/asked.ts";
import { errorIn } from "../../store/call_results.ts";
import { toolName } from "../../store/fold.ts";
import {
  type CallDetails,
  type CallFile,
  detailsOf,
  isRecord,
  textIn,
  type WholeOutput,
} from "../../store/tool_details.ts";
import type { ToolPart } from "../../store/types.ts";
import { sourcesIn } from "../approval_card.tsx";
import { ArgumentsTable } from "../arguments_table.tsx";
import { Asked } from "../asked.tsx";
import { useApp } from "../context.ts";
import { Files } from "../files.tsx";
import { Lines } from "../lines.tsx";
import type { Parts } from "../parts_context.ts";
import { Problem } from "../problem.tsx";
import { Value } from "../value.tsx";
import { JobCard } from "./job_card.tsx";
import { PlainResult, Section } from "./pieces.tsx";
import { viewOf } from "./registry.ts";

export function ToolBody({ context, part }: { context: Parts; part: ToolPart }) {
  const details = detailsOf(part);
  const View = viewOf(part);
  const error = part.errorText || (View ? errorIn(part.output) : "");
  const name = toolName(part);
  const known = part.toolMetadata?.think;
  const sources = sourcesIn(isRecord(known) ? known.origin : null);
  return (
    <>
      {View
        ? <View context={context} part={error ? withoutResult(part) : part} details={details} />
        : <Plain part={part} />}
      {part.approval?.edited && (
        <details class="tool-original">
          <summary>{t("calls.arguments-original")}</summary>
          <Value value={part.approval.originalInput} />
        </details>
      )}
      {error && (
        <Section title={t("calls.error")}>
          <Value value={terminalText(error)} class="value is-error" />
        </Section>
      )}
      <JobCard context={context} part={part} />
      <Report part={part} details={details} hasView={View !== null} />
      <CallFiles files={details.files} base={context.app.boot.urls.files} />
      {details.whole && <Whole whole={details.whole} />}
      {sources.length > 0 && <p class="tool-name muted">{t("guard.text-from", { sources: sources.join(", ") })}</p>}
      <RuleNote known={known} />
      {name && <p class="tool-name muted">{t("calls.tool-name", { name })}</p>}
    </>
  );
}

/** The rule that let the call run, or refused it. */
function RuleNote({ known }: { known: unknown }) {
  const rule = isRecord(known) ? known.rule : null;
  const name = textIn(rule, "name");
  if (!name) return null;
  return (
    <p class="tool-name muted">
      {t(textIn(rule, "action") === "deny" ? "calls.refused-by" : "calls.allowed-by", { rule: name })}
    </p>
  );
}

/** A result that is an error is shown as one. */
const withoutResult = (part: ToolPart): ToolPart => ({ ...part, output: undefined });

function Plain({ part }: { part: ToolPart }) {
  const input = part.input ?? (part.rawInput || undefined);
  const isEmpty = input === undefined && !part.errorText && part.output === undefined;
  return (
    <>
      {input !== undefined && (
        <Section title={t(part.approval?.edited ? "calls.arguments-edited" : "calls.arguments")}>
          {askedKind(toolName(part), part.toolCallId, input) === "extension"
            ? <Asked kind="extension" input={input as Record<string, unknown>} isPast />
            : <Value value={input} />}
        </Section>
      )}
      <PlainResult part={part} />
      {isEmpty && <p class="muted">{t("calls.nothing-yet")}</p>}
    </>
  );
}

const SHOWN_BY_VIEWS = new Set(["stdout", "stderr", "exitCode", "output", "calls", "logs", "console", "changedFiles"]);

// Of results whose main part a view shows: what else is worth a word.
const WORTH_A_WORD = ["note", "truncated", "fuzzyMatch", "filesSkipped", "skippedFiles", "errors"];

/** What the tool tells people besides; of a call that has a view, what that does not show. */
function Report({ part, details, hasView }: { part: ToolPart; details: CallDetails; hasView: boolean }) {
  const facts = Object.entries(details.metadata).filter(([name]) => !hasView || !SHOWN_BY_VIEWS.has(name));
  const output = hasView && isRecord(part.output) ? part.output : {};
  for (const name of WORTH_A_WORD) if (output[name]) facts.push([name, output[name]]);
  if (!facts.length) return null;
  const isOver = part.output !== undefined && !part.preliminary;
  return (
    <Section title={t(isOver ? "calls.details" : "calls.details-so-far")}>
      <ArgumentsTable input={Object.fromEntries(facts)} />
    </Section>
  );
}

function CallFiles({ files, base }: { files: readonly CallFile[]; base: string }) {
  if (!files.length) return null;
  const kept = files.filter((file) => !file.error);
  return (
    <div class="tool-section tool-files">
      {kept.length > 0 && <Files parts={kept} base={base} />}
      {files.filter((file) => file.error).map((file) => (
        <p key={file.filename} class="muted">{t("calls.file-not-kept", { name: file.filename ?? "" })}</p>
      ))}
    </div>
  );
}

const MOST_IN_PLACE = 2_000_000; // bytes; more is a file to save

function Whole({ whole: { url, bytes, lines } }: { whole: WholeOutput }) {
  const { api } = useApp();
  const [text, setText] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const facts = t("calls.cut", { lines: t("calls.lines", { count: lines }), size: fileSize(bytes) });
  const show = async () => {
    setProblem("");
    try {
      setText(await api.textAt(url));
    } catch (error) {
      setProblem(messageOf(error));
    }
  };
  return (
    <div class="tool-section tool-whole">
      <p>
        {url ? facts : t("calls.cut-not-kept", { facts })}{" "}
        {url && text === null && bytes <= MOST_IN_PLACE && (
          <button type="button" class="quiet" onClick={show}>{t("calls.show-whole")}</button>
        )} {url && <a href={url} download="">{t("calls.save-whole")}</a>}
      </p>
      <Problem text={problem} />
      {text !== null && <Lines text={terminalText(text)} label={t("calls.whole")} class="is-wrapped" />}
    </div>
  );
}
