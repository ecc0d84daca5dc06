// Entry for the browser tests of pure modules: never linked by a page.

export { Api } from "./net/api.ts";
export { applyChunk } from "./store/fold.ts";
export { citationsOf } from "./lib/citations.ts";
export { dayGroup, duration, fileSize } from "./lib/format.ts";
export { LiveText } from "./lib/live_text.ts";
export { renderMarkdown } from "./lib/markdown.ts";
export { renderPlain } from "./lib/plain.ts";
export { Speaker, toSpeech } from "./lib/speech.ts";
export { clearHighlight, highlightWords, wordsOf } from "./lib/words.ts";
export { Outbox } from "./store/outbox.ts";
