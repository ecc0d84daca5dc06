// Text without the marks of Markdown, for lines that are not rendered, such as titles. Pure. The server does the same with
// what a search shows (sessions_app/core/messages/plain_text.py).

const EMPTY_LINE = /^[ \t]*(?:(?:`{3,}|~{3,})[^\n`]*|(?:[-*_][ \t]*){3,})$\n?/gm;
const LINE_MARK = /^[ \t]*(?:#{1,6}[ \t]+|>[ \t]?|[-*+][ \t]+(?:\[[ xX]\][ \t]+)?)/gm;
const INLINE = new RegExp(
  [
    "(?<!`)(?<ticks>`{1,2})(?!`) ?(?<code>[^`\\n]{1,200}?) ?\\k<ticks>(?!`)",
    "!?\\[(?<label>[^\\]\\n]{0,200})\\]\\([^()\\s]{0,2000}\\)",
    "(?<mark>\\*{1,3}|~~)(?=[^\\s*~])(?<marked>[^\\n]{1,200}?)(?<=[^\\s*~])\\k<mark>(?!\\*)",
    "(?<![\\w_])_(?=[^\\s_])(?<slanted>[^_\\n]{1,200}?)(?<=[^\\s_])_(?![\\w_])",
  ].join("|"),
  "g",
);

function inline(text: string, depth: number): string {
  if (!depth) return text;
  return text.replace(INLINE, (...found: unknown[]) => {
    const { code, label, marked, slanted } = found.at(-1) as Record<string, string | undefined>;
    return code ?? inline(label ?? marked ?? slanted ?? "", depth - 1);
  });
}

/** Marks that come in pairs go, and those at the beginning of a line; `__init__` and `**options` stay. */
export const withoutMarkup = (text: string): string => inline(text.replace(EMPTY_LINE, "").replace(LINE_MARK, ""), 3);
