// Pieces that the views of calls are made of.

import type { ComponentChildren } from "preact";
import { t } from "../../lib/i18n.ts";
import { terminalText, withoutTricks } from "../../lib/readable.ts";
import { textAndValue } from "../../store/call_results.ts";
import { isOfProject } from "../../store/tool_kinds.ts";
import type { CallDetails } from "../../store/tool_details.ts";
import type { ToolPart } from "../../store/types.ts";
import { Lines } from "../lines.tsx";
import type { Parts } from "../parts_context.ts";
import { Value } from "../value.tsx";

/** What the view of a call gets. It shows arguments and result; errors, files and what was cut are shown for it. */
export interface CallProps {
  context: Parts;
  part: ToolPart;
  details: CallDetails;
}

export function Section({ title, children }: { title: string; children: ComponentChildren }) {
  return (
    <section class="tool-section">
      <h3>{title}</h3>
      {children}
    </section>
  );
}

/** The result as what it is, where a view cannot read it. */
export function PlainResult({ part }: { part: ToolPart }) {
  if (part.output === undefined) return null;
  return (
    <Section title={t(part.preliminary ? "calls.result-so-far" : "calls.result")}>
      {textAndValue(part.output).map((value, at) => <Value key={at} value={value} />)}
    </Section>
  );
}

/** What code printed and what it returned. */
export function CodeOutput({ console, value }: { console: string; value: unknown }) {
  return (
    <>
      {console && (
        <Section title={t("calls.console")}>
          <Lines text={terminalText(console)} label={t("calls.console")} class="is-wrapped" />
        </Section>
      )}
      {value !== undefined && (
        <Section title={t("calls.value")}>
          <Value value={value} />
        </Section>
      )}
    </>
  );
}

/** A file of the workspace: pressing it shows it in the panel. One of the project that `part` reads is named alone. */
export function FileName({ context, path, part }: { context: Parts; path: string; part?: ToolPart }) {
  if (part && isOfProject(part)) return <bdi class="file-name">{withoutTricks(path)}</bdi>;
  return (
    <button
      type="button"
      class="quiet file-name"
      title={t("calls.open-file", { path })}
      onClick={() => context.app.showFile(path)}
    >
      <bdi>{withoutTricks(path)}</bdi>
    </button>
  );
}
