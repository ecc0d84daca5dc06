// Calls that run something or get something from elsewhere: a terminal, code with the calls that it made, a page of the web.

import { duration } from "../../lib/format.ts";
import { t } from "../../lib/i18n.ts";
import { fileText, terminalText, withoutTricks } from "../../lib/readable.ts";
import { codeRun, fetched, type InnerCall, terminalRun } from "../../store/call_results.ts";
import { Icon } from "../icon.tsx";
import { Lines } from "../lines.tsx";
import { type CallProps, CodeOutput, FileName, PlainResult, Section } from "./pieces.tsx";

const FATES: Record<string, "calls.created" | "calls.updated" | "calls.deleted"> = {
  created: "calls.created",
  updated: "calls.updated",
  deleted: "calls.deleted",
  directoriesCreated: "calls.created",
  directoriesDeleted: "calls.deleted",
};

export function TerminalCall({ context, part, details }: CallProps) {
  const run = terminalRun(part, details.metadata);
  if (!run) return <PlainResult part={part} />;
  const { script, directory, stdout, stderr, exitCode, changed } = run;
  return (
    <div class="tool-section">
      <div class="terminal">
        <div class="terminal-script">
          <span aria-hidden="true">{directory ? `${withoutTricks(directory)} $` : "$"}</span>
          <Lines text={fileText(script)} label={t("calls.script")} language="bash" class="is-bare" />
        </div>
        {stdout && <Lines text={terminalText(stdout)} label={t("calls.stdout")} class="is-bare is-wrapped" />}
        {stderr && (
          <>
            <p class="terminal-kind">{t("calls.stderr")}</p>
            <Lines text={terminalText(stderr)} label={t("calls.stderr")} class="is-bare is-wrapped is-failed" />
          </>
        )}
        {part.output !== undefined && !stdout && !stderr && <p class="terminal-kind">{t("calls.no-output")}</p>}
        {exitCode !== null && (
          <p class={exitCode === 0 ? "terminal-kind" : "terminal-kind is-failed"}>
            {t("calls.exit-code", { code: String(exitCode) })}
          </p>
        )}
      </div>
      {changed.length > 0 && (
        <ul class="fates" aria-label={t("calls.changed-files")}>
          {changed.flatMap(({ fate, paths }) =>
            paths.map((path) => (
              <li key={`${fate} ${path}`}>
                <FileName context={context} path={path} />
                <span class="muted">{FATES[fate] ? t(FATES[fate]) : fate}</span>
              </li>
            ))
          )}
        </ul>
      )}
    </div>
  );
}

export function CodeCall({ part, details }: CallProps) {
  const { code, calls, console, value } = codeRun(part, details.metadata);
  return (
    <>
      <div class="tool-section">
        <Lines text={fileText(code)} label={t("calls.code")} language="javascript" firstLine={1} />
      </div>
      {calls.length > 0 && (
        <Section title={t("calls.calls-made")}>
          <ul class="inner-calls">
            {calls.map((call, index) => <InnerCallRow key={index} call={call} />)}
          </ul>
        </Section>
      )}
      <CodeOutput console={console} value={value} />
    </>
  );
}

function InnerCallRow({ call: { name, isOk, ms } }: { call: InnerCall }) {
  return (
    <li class={isOk === false ? "is-failed" : undefined}>
      <Icon name={isOk === false ? "alert" : isOk ? "check" : "tool"} />
      <code>{withoutTricks(name)}</code>
      {isOk !== null && <span class="muted">{t(isOk ? "calls.call-ok" : "calls.call-failed")}</span>}
      {ms !== null && <span class="muted">{duration(ms)}</span>}
    </li>
  );
}

export function FetchCall({ part }: CallProps) {
  const page = fetched(part);
  if (!page) return part.output === undefined ? null : <PlainResult part={part} />;
  const { address, status, title, mediaType, text } = page;
  const isLink = /^https?:\/\//.test(address);
  const shown = <bdi dir="ltr">{withoutTricks(address)}</bdi>;
  return (
    <div class="tool-section">
      <p class="tool-file">
        {isLink
          ? <a href={address} target="_blank" rel="noopener noreferrer nofollow" class="file-name">{shown}</a>
          : shown}
        {status !== null && <span class="muted">{t("calls.status", { status: String(status) })}</span>}
        {mediaType && <span class="muted">{withoutTricks(mediaType)}</span>}
      </p>
      {title && <p dir="auto">{withoutTricks(title)}</p>}
      {text
        ? <Lines text={fileText(text)} label={t("calls.text-of", { address })} class="is-wrapped" />
        : <PlainResult part={part} />}
    </div>
  );
}
