// Entry for the browser tests of pure modules: never linked by a page.

export { Api } from "./api.js";
export { applyChunk } from "./fold.js";
export { LiveText } from "./live_text.js";
export { renderMarkdown } from "./markdown.js";
export { Speaker, toSpeech } from "./speaker.js";
export { dayGroup, duration, fileSize } from "./format.js";
export { Outbox } from "./outbox.js";
