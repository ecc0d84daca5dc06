// Entry for the browser tests of pure modules: never linked by a page.

export { Api } from "./api.js";
export { applyChunk } from "./fold.js";
export { citationsOf } from "../app/lib/citations.ts";
export { dayGroup, duration, fileSize } from "../app/lib/format.ts";
export { LiveText } from "../app/lib/live_text.ts";
export { renderMarkdown } from "../app/lib/markdown.ts";
export { renderPlain } from "../app/lib/plain.ts";
export { Speaker, toSpeech } from "../app/lib/speech.ts";
export { clearHighlight, highlightWords, wordsOf } from "../app/lib/words.ts";
export { Outbox } from "./outbox.js";
