// Markdown to DOM. Raw HTML is text here, pictures and addresses are inert, and the sanitiser has the last word on every
// piece of markup before it becomes nodes.

import { MarkdownIt } from "./markdown_it.ts";
import type { Token } from "./markdown_it.ts";
import { type CitationsEnv, citationSyntax, type Source } from "./citations.ts";
import { codeFigure } from "./code.ts";
import { dress } from "./dress.ts";
import { footnoteSyntax, type NotesEnv } from "./footnotes.ts";
import { t } from "./i18n.ts";
import { mathSyntax } from "./math_syntax.ts";
import { markupToNodes } from "./sanitise.ts";
import { taskSyntax } from "./tasks.ts";

/** What the parser carries from one call to the next: link references, footnotes, and the sources that may be cited. */
export interface Env extends NotesEnv, CitationsEnv {
  references?: Record<string, unknown>;
}

/** A top-level block. `line`: where it begins in the parsed text. `token`: of a block that is one token. */
export interface Block {
  line: number;
  token: Token | null;
  /** Render and sanitise it. */
  nodes(): Element[];
}

const md = new MarkdownIt({ html: false, linkify: true, typographer: false, breaks: false, maxNesting: 40 } as object);
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
md.validateLink = (url) => /^(https?:|mailto:)/i.test(url.trim());
mathSyntax(md);
footnoteSyntax(md);
taskSyntax(md);
citationSyntax(md);

const { rules } = md.renderer;
const escape = md.utils.escapeHtml;

md.inline.ruler.before("html_inline", "line_break_tag", (state, silent) => {
  const found = /^<br\s*\/?>/i.exec(state.src.slice(state.pos, state.pos + 8));
  if (!found) return false;
  if (!silent) state.push("hardbreak", "br", 0);
  state.pos += found[0].length;
  return true;
});

rules.link_open = (tokens, index, options, _env, self) => {
  const token = tokens[index];
  token.attrSet("target", "_blank");
  token.attrSet("rel", "noopener noreferrer nofollow");
  token.attrSet("title", token.attrGet("href") ?? "");
  return self.renderToken(tokens, index, options);
};

// A picture in a model's text could carry data away by being fetched. It stays a line of text with its address.
rules.image = (tokens, index) => {
  const token = tokens[index];
  const label = token.content
    ? t("message.image-named-not-loaded", { name: token.content })
    : t("message.image-not-loaded");
  return `<span class="inert-image"><span class="inert-label">${escape(label)}</span> ${
    escape(token.attrGet("src") ?? "")
  }</span>`;
};

rules.fence = (tokens, index) => codeFigure(tokens[index].content, languageOf(tokens[index]));
rules.code_block = (tokens, index) => codeFigure(tokens[index].content, "");
rules.math_inline = (tokens, index) => `<span class="math">${escape(tokens[index].content)}</span>`;
rules.math_display = (tokens, index) => `<span class="math is-display">${escape(tokens[index].content)}</span>`;
rules.math_block = (tokens, index) => `<div class="math is-display">${escape(tokens[index].content)}</div>`;
rules.math_open = (tokens, index) => `<p>${escape(tokens[index].content)}</p>`;
rules.table_open = () =>
  `<div class="table"><div class="table-scroll" tabindex="0" role="region" aria-label="${
    escape(t("message.table"))
  }"><table>`;
rules.table_close = () =>
  '</table></div><div class="table-tools">' +
  `<button type="button" class="quiet" data-action="copy-table">${escape(t("message.copy-table"))}</button>` +
  `<button type="button" class="quiet" data-action="expand-table">${escape(t("message.expand-table"))}</button>` +
  "</div></div>";

// Headings of an answer come below the page's and the message's own.
for (const side of ["heading_open", "heading_close"]) {
  rules[side] = (tokens, index, options, _env, self) => {
    const token = tokens[index];
    const level = Number(token.tag.slice(1));
    if (level <= 4) token.tag = `h${Math.min(6, level + 2)}`;
    if (side === "heading_open") token.attrSet("class", `level-${level}`);
    return self.renderToken(tokens, index, options);
  };
}

for (const cell of ["th_open", "td_open"]) {
  rules[cell] = (tokens, index, options, _env, self) => {
    const token = tokens[index];
    const side = /text-align:(\w+)/.exec(token.attrGet("style") ?? "")?.[1];
    token.attrs = side ? [["class", `to-${side}`]] : null;
    return self.renderToken(tokens, index, options);
  };
}

/** The language that a fence names, "" where it names none. */
export const languageOf = (token: Token): string =>
  (token.info ?? "").trim().split(/\s+/)[0].toLowerCase().replace(/[^\w+#.-]/g, "");

function toNodes(tokens: Token[], env: Env): Element[] {
  const fragment = markupToNodes(md.renderer.render(tokens, md.options, env));
  const elements = [...fragment.children];
  for (const element of elements) if (!element.hasAttribute("dir")) element.setAttribute("dir", "auto");
  dress(elements);
  return elements;
}

/** Parse markdown into its top-level blocks. */
export function blocksOf(text: string, env: Env = {}): Block[] {
  const tokens = md.parse(text, env);
  const blocks: Block[] = [];
  let start = 0;
  tokens.forEach((token, index) => {
    if (token.level !== 0 || token.nesting === 1) return;
    const own = tokens.slice(start, index + 1);
    start = index + 1;
    blocks.push({
      line: own[0].map?.[0] ?? 0,
      token: own.length === 1 ? token : null,
      nodes: () => toNodes(own, env),
    });
  });
  return blocks;
}

/** The pieces of code in a text, in the order in which they stand. */
export const fencesOf = (text: string): { language: string; code: string }[] =>
  md.parse(text, {}).flatMap((token) =>
    token.type === "fence" || token.type === "code_block"
      ? [{ language: token.type === "fence" ? languageOf(token) : "", code: token.content }]
      : []
  );

/** The whole text at once. `sources`: what its citations may name. */
export function renderMarkdown(text: string, sources: readonly Source[] = []): Element[] {
  const env: Env = { sources };
  return blocksOf(text, env).flatMap((block) => block.nodes());
}
