// Calls of the tools for files: what was changed as a diff, what was read with its numbers, what was found as a table.

import { t } from "../../lib/i18n.ts";
import { languageOf } from "../../lib/language_of.ts";
import { lineDiff } from "../../lib/line_diff.ts";
import { fileText, withoutTricks } from "../../lib/readable.ts";
import { countIn, hitsIn, listing, type MatchedFile, matchesIn, readText } from "../../store/call_results.ts";
import { isRecord } from "../../store/tool_details.ts";
import { argumentOf, normalised, pathOf } from "../../store/tool_kinds.ts";
import type { ToolPart } from "../../store/types.ts";
import { CountedDiff } from "../diff.tsx";
import { Lines } from "../lines.tsx";
import { type CallProps, FileName, PlainResult } from "./pieces.tsx";

interface Change {
  before: string;
  after: string;
}

/** What an edit replaces by what, once or several times. */
export function changesIn(part: ToolPart): Change[] {
  const several = isRecord(part.input) && Array.isArray(part.input.edits) ? part.input.edits : [part.input];
  return several.filter(isRecord).map((input) => {
    const of = (name: string) => argumentOf({ ...part, input }, `${name}_string`, `${name}Text`, `${name}_str`, name);
    return { before: of("old"), after: of("new") };
  });
}

export function EditCall({ context, part }: CallProps) {
  const path = pathOf(part);
  return (
    <div class="tool-section">
      <p class="tool-file">
        <FileName context={context} path={path} />
      </p>
      <ChangesOf part={part} />
    </div>
  );
}

/** The diff of an edit, or what was written, from the arguments of the call. */
export function ChangesOf({ part }: { part: ToolPart }) {
  const path = pathOf(part);
  const content = argumentOf(part, "content");
  if (content) return <Written path={path} content={content} />;
  return (
    <>
      {changesIn(part).map(({ before, after }, index) => {
        const { lines, added, removed } = lineDiff(before, after);
        return <CountedDiff key={index} path={path} lines={lines} added={added} removed={removed} />;
      })}
    </>
  );
}

function Written({ path, content }: { path: string; content: string }) {
  const text = fileText(content);
  return <Lines text={text} label={t("calls.content-of", { path })} language={languageOf(path)} firstLine={1} />;
}

export function WriteCall({ context, part }: CallProps) {
  const path = pathOf(part);
  return (
    <div class="tool-section">
      <p class="tool-file">
        <FileName context={context} path={path} />
      </p>
      <Written path={path} content={argumentOf(part, "content")} />
    </div>
  );
}

export function ReadCall({ context, part, details }: CallProps) {
  const path = pathOf(part);
  const read = readText(part);
  const isMedia = isRecord(part.output) && part.output.content === undefined && details.files.length > 0;
  return (
    <div class="tool-section">
      <p class="tool-file">
        <FileName context={context} path={path} part={part} />
        {read?.totalLines != null && <span class="muted">{t("calls.total-lines", { count: read.totalLines })}</span>}
      </p>
      {read
        ? (
          <Lines
            text={fileText(read.text)}
            label={t("calls.content-of", { path })}
            language={languageOf(path)}
            firstLine={read.firstLine}
          />
        )
        : !isMedia && <PlainResult part={part} />}
    </div>
  );
}

export function DeleteCall({ context, part }: CallProps) {
  return (
    <p class="tool-section tool-file">
      <FileName context={context} path={pathOf(part)} />
    </p>
  );
}

export function ListCall({ context, part }: CallProps) {
  const items = listing(part.output);
  const path = argumentOf(part, "pattern") || pathOf(part) || "/";
  if (!items) return <PlainResult part={part} />;
  const count = countIn(part.output) ?? items.length;
  return (
    <div class="tool-section">
      <p class="tool-file">
        <code>{withoutTricks(path)}</code> <span class="muted">{t("calls.entries", { count })}</span>
      </p>
      {items.length > 0 && (
        <div class="tool-table" tabIndex={0} role="group" aria-label={t("calls.entries-of", { path })}>
          <table>
            <thead class="visually-hidden">
              <tr>
                <th scope="col">{t("calls.name")}</th>
                <th scope="col">{t("calls.size")}</th>
              </tr>
            </thead>
            <tbody>
              {items.map(({ name, size, isDirectory }, index) => (
                <tr key={`${index} ${name}`}>
                  <td>
                    {isDirectory ? <bdi>{withoutTricks(name)}</bdi> : (
                      <FileName
                        context={context}
                        part={part}
                        path={name.startsWith("/") ? name : normalised(`${path}/${name}`)}
                      />
                    )}
                  </td>
                  <td class="muted">{size}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </div>
  );
}

export function GrepCall({ context, part }: CallProps) {
  const files = matchesIn(part.output);
  const query = argumentOf(part, "query", "pattern");
  if (!files) return <PlainResult part={part} />;
  const count = countIn(part.output) ?? files.reduce((sum, { matches }) => sum + matches.length, 0);
  return (
    <div class="tool-section">
      <p class="tool-file">
        <code>{withoutTricks(query)}</code>{" "}
        <span class="muted">
          {t("calls.matches-in-files", {
            matches: t("calls.matches", { count }),
            files: t("calls.files", { count: files.length }),
          })}
        </span>
      </p>
      {files.length > 0 && (
        <div class="tool-table" tabIndex={0} role="group" aria-label={t("calls.matches-of", { query })}>
          {files.map((file) => <FileMatches key={file.path} context={context} part={part} file={file} />)}
        </div>
      )}
    </div>
  );
}

function FileMatches({ context, part, file }: Pick<CallProps, "context" | "part"> & { file: MatchedFile }) {
  return (
    <div class="matched">
      <FileName context={context} path={file.path} part={part} />
      <ol class="matches" dir="ltr">
        {file.matches.map(({ line, text, isContext }, index) => (
          <li key={`${index} ${line}`} class={isContext ? "muted" : undefined}>
            <span class="lines-numbers">{line}</span>
            <code>
              {isContext
                ? withoutTricks(text)
                : hitsIn(fileText(text), part).map((piece, at) =>
                  piece.isHit ? <mark key={at}>{piece.text}</mark> : piece.text
                )}
            </code>
          </li>
        ))}
      </ol>
    </div>
  );
}
