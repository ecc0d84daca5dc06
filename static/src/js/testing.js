// Entry for the browser tests of pure modules: never linked by a page.

export { Api } from "../app/net/api.ts";
export { applyChunk } from "../app/store/fold.ts";
export { LiveText } from "./live_text.js";
export { renderMarkdown } from "./markdown.js";
export { Speaker, toSpeech } from "./speaker.js";
export { dayGroup, duration, fileSize } from "./format.js";
export { Outbox } from "../app/store/outbox.ts";
