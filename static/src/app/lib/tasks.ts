// Task lists: `- [ ] open`, `- [x] done`. Only the mark is found here; `dress` puts the box in its place.

import type { MarkdownIt } from "./markdown_it.ts";
import type { Token } from "./markdown_it.ts";

const MARK = /^\[([ xX])\](?:\s+|$)/;

/** Teach the parser task lists: items get the class `task`, and a token `task_mark` before their text. */
export function taskSyntax(md: MarkdownIt): void {
  md.core.ruler.after("inline", "tasks", ({ tokens, Token }) => {
    tokens.forEach((token, index) => {
      if (token.type !== "inline" || tokens[index - 1]?.type !== "paragraph_open") return;
      const item = tokens[index - 2];
      if (item?.type !== "list_item_open") return;
      const first = token.children?.[0];
      const found = first?.type === "text" ? MARK.exec(first.content) : null;
      if (!found || !first) return;
      first.content = first.content.slice(found[0].length);
      const mark = new Token("task_mark", "", 0);
      mark.content = found[1] === " " ? "open" : "done";
      token.children!.unshift(mark);
      item.attrJoin("class", "task");
      listOf(tokens, index - 2)?.attrSet("class", "tasks");
    });
  });
  md.renderer.rules.task_mark = (tokens, index) => `<span class="task-mark is-${tokens[index].content}"></span>`;
}

/** The list that an item belongs to. */
function listOf(tokens: Token[], index: number): Token | undefined {
  const { level } = tokens[index];
  for (let at = index; at >= 0; at -= 1) {
    if (tokens[at].level === level - 1 && /^(?:bullet|ordered)_list_open$/.test(tokens[at].type)) return tokens[at];
  }
}
