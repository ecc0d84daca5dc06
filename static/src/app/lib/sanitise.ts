// The sanitiser has the last word on everything that becomes nodes: markup of the renderer and of the highlighter, and the
// formulas. Each kind may be exactly what its renderer makes, and nothing else.

import DOMPurify from "dompurify";

const TEXT = {
  // deno-fmt-ignore
  ALLOWED_TAGS: [
    "a", "aside", "blockquote", "br", "button", "code", "del", "div", "em", "figcaption", "figure", "h1", "h2", "h3", "h4",
    "h5", "h6", "hr", "li", "ol", "p", "pre", "s", "span", "strong", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
  ],
  // deno-fmt-ignore
  ALLOWED_ATTR: [
    "href", "title", "class", "start", "target", "rel", "data-action", "data-note", "type", "aria-label", "role", "tabindex",
    "dir",
  ],
  ADD_URI_SAFE_ATTR: ["target", "rel", "data-action", "data-note", "type", "aria-label", "tabindex", "start", "dir"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  ALLOWED_URI_REGEXP: /^(?:https?:|mailto:)/i,
  SANITIZE_NAMED_PROPS: true,
};

// What the formula renderer makes of TeX that is not trusted: presentation only. No link, no picture, no `annotation-xml`, no
// `maction`, no `href` (which MathML allows on any element).
const FORMULA = {
  // deno-fmt-ignore
  ALLOWED_TAGS: [
    "math", "menclose", "merror", "mfrac", "mi", "mmultiscripts", "mn", "mo", "mover", "mpadded", "mphantom", "mprescripts",
    "mroot", "mrow", "ms", "mspace", "msqrt", "mstyle", "msub", "msubsup", "msup", "mtable", "mtd", "mtext", "mtr", "munder",
    "munderover", "none", "#text",
  ],
  // deno-fmt-ignore
  ALLOWED_ATTR: [
    "accent", "accentunder", "class", "columnspan", "depth", "display", "displaystyle", "fence", "form", "height",
    "largeop", "linethickness", "lspace", "mathbackground", "mathcolor", "mathvariant", "maxsize", "minsize",
    "movablelimits", "notation", "rowspan", "rspace", "scriptlevel", "separator", "stretchy", "style", "symmetric",
    "voffset", "width",
  ],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  SANITIZE_NAMED_PROPS: true,
};

// Small lengths, colours and keywords of a few properties; no address, so that nothing can be fetched, and nothing that
// reaches far from its place.
const VALUE =
  "(?:(?:\\d{0,2}|-[01]?)(?:\\.\\d+)?(?:em|ex|pt|px|%)?|#[\\da-fA-F]{3,8}|rgb\\(\\d{1,3}, \\d{1,3}, \\d{1,3}\\)|[a-z]+(?:-[a-z]+)?)";
const PROPERTY =
  "(?:padding|margin|border)(?:-(?:left|right|top|bottom))?|(?:background-)?color|display|math-(?:depth|style)|" +
  "font-(?:style|weight|size)|text-align|vertical-align";
const STYLE = new RegExp(`^(?:(?:width:\\d{1,3}%|(?:${PROPERTY}):${VALUE}(?: ${VALUE}){0,3});)+$`);

/** Markup of the renderers as nodes. */
export function markupToNodes(markup: string): DocumentFragment {
  return DOMPurify.sanitize(markup, { ...TEXT, RETURN_DOM_FRAGMENT: true });
}

/** A rendered formula, made anew of what a formula may be. */
export function formulaToNodes(formula: Element): DocumentFragment {
  dropForeignStyles(formula);
  return DOMPurify.sanitize(formula, { ...FORMULA, RETURN_DOM_FRAGMENT: true });
}

/** The renderer sets styles by property, which the page's policy allows; only those that a formula needs are kept. */
function dropForeignStyles(formula: Element): void {
  for (const element of formula.querySelectorAll("[style]")) {
    const style = `${element.getAttribute("style")};`.replace(/\s*([:;])\s*/g, "$1").replace(/;+/g, ";");
    if (!STYLE.test(style)) element.removeAttribute("style");
  }
}
