// Markdown to DOM. Raw HTML is text here, pictures and addresses are inert, and the sanitiser has the last word on every
// piece of markup before it becomes nodes.

import MarkdownIt from "markdown-it";
import DOMPurify from "dompurify";
import { highlighted } from "./highlight.js";

const md = new MarkdownIt({ html: false, linkify: true, typographer: false, breaks: false, maxNesting: 40 });
md.linkify.set({ fuzzyLink: false, fuzzyEmail: false });
md.validateLink = (url) => /^(https?:|mailto:)/i.test(url.trim());

const PURIFY = {
  ALLOWED_TAGS: [
    "a",
    "blockquote",
    "br",
    "button",
    "code",
    "del",
    "div",
    "em",
    "figcaption",
    "figure",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "hr",
    "li",
    "ol",
    "p",
    "pre",
    "s",
    "span",
    "strong",
    "table",
    "tbody",
    "td",
    "th",
    "thead",
    "tr",
    "ul",
  ],
  ALLOWED_ATTR: [
    "href",
    "title",
    "class",
    "start",
    "target",
    "rel",
    "data-action",
    "type",
    "aria-label",
    "role",
    "tabindex",
    "dir",
  ],
  ADD_URI_SAFE_ATTR: ["target", "rel", "data-action", "type", "aria-label", "tabindex", "start", "dir"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  SANITIZE_NAMED_PROPS: true,
  RETURN_DOM_FRAGMENT: true,
};

const escape = md.utils.escapeHtml;

md.inline.ruler.before("html_inline", "line_break_tag", (state, silent) => {
  const found = /^<br\s*\/?>/i.exec(state.src.slice(state.pos, state.pos + 8));
  if (!found) return false;
  if (!silent) state.push("hardbreak", "br", 0);
  state.pos += found[0].length;
  return true;
});

md.renderer.rules.link_open = (tokens, index, options, _env, self) => {
  const token = tokens[index];
  token.attrSet("target", "_blank");
  token.attrSet("rel", "noopener noreferrer nofollow");
  token.attrSet("title", token.attrGet("href"));
  return self.renderToken(tokens, index, options);
};

// A picture in a model's text could carry data away by being fetched. It stays a line of text with its address.
md.renderer.rules.image = (tokens, index) => {
  const token = tokens[index];
  const label = token.content ? `Image “${escape(token.content)}”, not loaded:` : "Image, not loaded:";
  return `<span class="inert-image"><span class="inert-label">${label}</span> ${
    escape(token.attrGet("src") ?? "")
  }</span>`;
};

md.renderer.rules.fence = (tokens, index) => codeFigure(tokens[index].content, languageOf(tokens[index]));
md.renderer.rules.code_block = (tokens, index) => codeFigure(tokens[index].content, "");
md.renderer.rules.table_open = () => '<div class="table" tabindex="0" role="region" aria-label="Table"><table>';
md.renderer.rules.table_close = () => "</table></div>";

// Headings of an answer come below the page's and the message's own.
for (const side of ["heading_open", "heading_close"]) {
  md.renderer.rules[side] = (tokens, index, options, _env, self) => {
    const token = tokens[index];
    const level = Number(token.tag.slice(1));
    if (level <= 4) token.tag = `h${Math.min(6, level + 2)}`;
    if (side === "heading_open") token.attrSet("class", `level-${level}`);
    return self.renderToken(tokens, index, options);
  };
}

for (const cell of ["th_open", "td_open"]) {
  md.renderer.rules[cell] = (tokens, index, options, _env, self) => {
    const token = tokens[index];
    const side = /text-align:(\w+)/.exec(token.attrGet("style") ?? "")?.[1];
    token.attrs = side ? [["class", `to-${side}`]] : null;
    return self.renderToken(tokens, index, options);
  };
}

export const languageOf = (token) => (token.info ?? "").trim().split(/\s+/)[0].toLowerCase().replace(/[^\w+#.-]/g, "");

function codeFigure(code, language) {
  const body = highlighted(code, language) ?? escape(code);
  return (
    `<figure class="code"><figcaption><span class="code-language">${escape(language || "text")}</span>` +
    '<button type="button" class="quiet" data-action="wrap-code">Wrap</button>' +
    '<button type="button" class="quiet" data-action="copy-code">Copy</button></figcaption>' +
    `<pre tabindex="0" role="region" aria-label="Code${
      language ? `, ${escape(language)}` : ""
    }"><code>${body}</code></pre></figure>`
  );
}

/** Markup of the highlighter as nodes, sanitised. `PURIFY` asks for a fragment instead of a text. */
export const markupToNodes = (
  markup,
) => /** @type {DocumentFragment} */ (/** @type {unknown} */ (DOMPurify.sanitize(markup, PURIFY)));

function toNodes(tokens, env) {
  const fragment = markupToNodes(md.renderer.render(tokens, md.options, env));
  const elements = [...fragment.childNodes].filter((node) => node instanceof Element);
  for (const element of elements) if (!element.hasAttribute("dir")) element.setAttribute("dir", "auto");
  return elements;
}

/**
 * Parse markdown into its top-level blocks: [{line, nodes()}]. `line` is where the block starts in `text`; `nodes()`
 * renders and sanitises it. `env` carries link references from one call to the next.
 */
export function blocksOf(text, env = {}) {
  const tokens = md.parse(text, env);
  const blocks = [];
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

/** The whole text at once. */
export function renderMarkdown(text) {
  const env = {};
  return blocksOf(text, env).flatMap((block) => block.nodes());
}
