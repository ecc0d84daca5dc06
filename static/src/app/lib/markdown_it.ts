// The Markdown parser with its types, for the modules that teach it something.

// @ts-types="@types/markdown-it"
export { default as MarkdownIt } from "markdown-it";
// @ts-types="@types/markdown-it"
export type { StateBlock, StateInline, Token } from "markdown-it";
