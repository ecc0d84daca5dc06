// Which sources a message names and where its text cites them. Nothing is invented: a mark without its source stays as it was
// written.

import type { MarkdownIt } from "./markdown_it.ts";
import type { Token } from "./markdown_it.ts";
import type { Part, SourceDocumentPart, SourceUrlPart, TextPart } from "./parts.ts";
import { t } from "./i18n.ts";

/** A source with its number in the message, from 1. `url` is "" where there is none that may be a link. */
export interface Source {
  number: number;
  title: string;
  url: string;
  /** Its own id, by which some models cite. */
  id: string;
  filename: string;
}

/** Sources of a message, and for each text part that the provider gave citations for its text with their marks. */
export interface Citations {
  sources: Source[];
  marked: Map<TextPart, string>;
}

/** What a provider says of a stretch of text (the AI SDK's `citations`): the source, and where the stretch ends. */
interface Citation {
  source?: { id?: string; sourceId?: string; url?: string; title?: string; filename?: string };
  url?: string;
  endIndex?: number;
}

const isSource = (part: Part): part is SourceUrlPart | SourceDocumentPart =>
  part.type === "source-url" || part.type === "source-document";

/** Number the sources of a message (each address once), and place the provider's citations. Pure. */
export function citationsOf(message: { parts: readonly Part[] }): Citations {
  const sources: Source[] = [];
  for (const part of message.parts) if (isSource(part)) numberOf(sources, part);
  const marked = new Map<TextPart, string>();
  for (const part of message.parts) {
    if (part.type !== "text") continue;
    const places = (part as TextPart).citations;
    if (Array.isArray(places) && places.length) {
      marked.set(part as TextPart, withMarks(part as TextPart, places, sources));
    }
  }
  return { sources, marked };
}

type SourceLike = { sourceId?: string; id?: string; url?: string; title?: string; filename?: string };

function numberOf(sources: Source[], raw: SourceLike): number {
  const id = String(raw.sourceId ?? raw.id ?? "");
  const url = typeof raw.url === "string" && /^https?:/i.test(raw.url) ? raw.url : "";
  const known = sources.find((source) => (url ? source.url === url : id !== "" && source.id === id && !source.url));
  if (known) return known.number;
  const number = sources.length + 1;
  sources.push({ number, id, url, title: raw.title ?? "", filename: raw.filename ?? "" });
  return number;
}

const mark = (number: number): string => `[\u0011${number}]`;
// deno-lint-ignore no-control-regex -- the mark must not be anything that people or models write, nor part of an address
const MARKS = /\[\u0011\d+\]/g;

function withMarks(part: TextPart, citations: unknown[], sources: Source[]): string {
  const { text } = part;
  const places: { at: number; number: number }[] = [];
  for (const raw of citations as (Citation | null)[]) {
    const source = raw?.source ?? (raw?.url ? { url: raw.url } : null);
    if (!source || typeof source !== "object") continue;
    const at = raw?.endIndex;
    const isInside = typeof at === "number" && Number.isInteger(at) && at > 0 && at <= text.length;
    places.push({ at: isInside ? endOfWord(text, at) : text.length, number: numberOf(sources, source) });
  }
  let shown = "";
  let from = 0;
  for (const { at, number } of places.sort((a, b) => a.at - b.at)) {
    shown += text.slice(from, at);
    from = at;
    if (!shown.endsWith(mark(number))) shown += mark(number);
  }
  return shown + text.slice(from);
}

/** An offset inside a word, counted in other units than ours, moves to the word's end. */
function endOfWord(text: string, at: number): number {
  while (at < text.length && /[\p{L}\p{N}]/u.test(text[at - 1]) && /[\p{L}\p{N}]/u.test(text[at])) at += 1;
  return at;
}

// --- in the text ------------------------------------------------------------------------------------------------------

export interface CitationsEnv {
  sources?: readonly Source[];
}

// deno-lint-ignore no-control-regex -- the mark of `mark`
const WRITTEN = /\[\u0011(\d+)\]|\[(\d{1,3}(?:\s*[,;]\s*\d{1,3})*)\]|【([^】†\s]{1,80})(?:†[^】]{0,200})?】/g;

/** Teach the parser citations: `[1]`, `[1, 2]` and `【1】` become links where the message has that source. */
export function citationSyntax(md: MarkdownIt): void {
  md.core.ruler.after("text_join", "citations", (state) => {
    const sources = (state.env as CitationsEnv).sources ?? [];
    for (const token of state.tokens) {
      if (token.type === "inline" && token.children) token.children = cited(token.children, sources, state.Token);
      else if (token.content) token.content = token.content.replace(MARKS, "");
    }
  });
  md.renderer.rules.cite = (tokens, index) => citation(tokens[index].meta as Source, md.utils.escapeHtml);
}

function citation(source: Source, escape: (text: string) => string): string {
  const title = source.title || source.filename || source.url;
  const values = { number: String(source.number), title };
  const name = escape(title ? t("message.citation", values) : t("message.citation-untitled", values));
  const shown = `[${source.number}]`;
  if (!source.url) return `<sup class="cite" title="${name}">${shown}</sup>`;
  return (
    `<sup class="cite"><a href="${escape(source.url)}" target="_blank" rel="noopener noreferrer nofollow" ` +
    `title="${name}" aria-label="${name}">${shown}</a></sup>`
  );
}

type TokenClass = new (type: string, tag: string, nesting: -1 | 0 | 1) => Token;

function cited(children: Token[], sources: readonly Source[], Made: TokenClass): Token[] {
  let depth = 0; // of links: a citation is none inside one
  return children.flatMap((token) => {
    if (token.type === "link_open") depth += 1;
    if (token.type === "link_close") depth -= 1;
    if (token.type !== "text") {
      if (token.content) token.content = token.content.replace(MARKS, "");
      return [token];
    }
    return depth ? [plain(token.content.replace(MARKS, ""), Made)] : pieces(token.content, sources, Made);
  });
}

function plain(text: string, Made: TokenClass): Token {
  const token = new Made("text", "", 0);
  token.content = text;
  return token;
}

function pieces(text: string, sources: readonly Source[], Made: TokenClass): Token[] {
  const tokens: Token[] = [];
  let from = 0;
  const put = (end: number) => end > from && tokens.push(plain(text.slice(from, end).replace(MARKS, ""), Made));
  for (const found of text.matchAll(WRITTEN)) {
    const named = namedBy(found, sources);
    if (!named) continue;
    put(found.index);
    from = found.index + found[0].length;
    for (const source of named) {
      const token = new Made("cite", "", 0);
      token.meta = source;
      tokens.push(token);
    }
  }
  put(text.length);
  return tokens.length ? tokens : [plain(text.replace(MARKS, ""), Made)];
}

/** The sources that a mark names; null unless it names nothing else. */
function namedBy(found: RegExpMatchArray, sources: readonly Source[]): Source[] | null {
  const names = (found[1] ?? found[2] ?? found[3]).split(/\s*[,;]\s*/);
  const byNumber = (name: string) => (/^\d+$/.test(name) ? sources[Number(name) - 1] : undefined);
  const named = names.map((name) =>
    found[1] ? byNumber(name) : sources.find((source) => source.id === name) ?? byNumber(name)
  );
  return named.every((source) => source !== undefined) ? named : null;
}
