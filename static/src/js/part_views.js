// How each kind of part looks. A view is {element, update(part, isLive)}; views keep their element from chunk to chunk.

import { h, icon, setText } from "./dom.js";
import { duration, fileSize } from "../app/lib/format.ts";
import { citationsOf } from "../app/lib/citations.ts";
import { renderPlain } from "../app/lib/plain.ts";
import { LiveText } from "../app/lib/live_text.ts";

/** A line that opens: the summary keeps its place, the body is built when it is first opened. */
export function fold(name, className, buildBody) {
  const label = h("span", { class: "fold-label" });
  const note = h("span", { class: "fold-note" });
  const body = h("div", { class: "fold-body" });
  const details = h(
    "details",
    { class: `fold ${className}` },
    h("summary", {}, icon(name), label, note, icon("chevron")),
    body,
  );
  let isBuilt = false;
  details.addEventListener("toggle", () => {
    if (!details.open || isBuilt) return;
    isBuilt = true;
    buildBody(body);
  });
  return { details, label, note, body, isBuilt: () => isBuilt };
}

export class TextView {
  constructor(context) {
    this.element = h("div", { class: "md" });
    this.live = new LiveText(this.element, context.onPaint);
  }

  update(part, isLive, message) {
    const { sources, marked } = citationsOf(message);
    this.live.update(marked.get(part) ?? part.text ?? "", isLive && part.state !== "done", sources);
  }

  dispose() {
    this.live.dispose();
  }
}

/** A user's own words, exactly as typed; code between fences as code. */
export class PlainTextView {
  constructor() {
    this.element = h("div", { class: "plain", dir: "auto" });
  }

  update(part) {
    const text = part.text ?? "";
    if (text === this.text) return;
    this.text = text;
    this.element.replaceChildren(...renderPlain(text));
  }
}

export class ReasoningView {
  constructor(context) {
    this.fold = fold("thought", "reasoning", (body) => {
      this.text = new LiveText(body, context.onPaint);
      body.classList.add("md");
      this.#show();
    });
    this.element = this.fold.details;
  }

  update(part, isLive) {
    this.part = part;
    this.isLive = isLive && part.state !== "done";
    const ms = reasoningTime(part);
    setText(this.fold.label, this.isLive ? "Thinking" : ms ? `Thought for ${duration(ms)}` : "Thought");
    this.element.classList.toggle("is-live", this.isLive);
    this.element.hidden = !part.text && !this.isLive;
    if (this.fold.isBuilt()) this.#show();
  }

  #show() {
    this.text.update(this.part.text ?? "", this.isLive);
  }

  dispose() {
    this.text?.dispose();
  }
}

/** Known to a tab that watched; nothing is stored of it. */
const reasoningTime = (part) => (part.startedAt && part.endedAt ? part.endedAt - part.startedAt : 0);

const isOwnFile = (url, base) =>
  new URL(url, location.href).origin === location.origin && new URL(url, location.href).pathname.startsWith(base);

export class FileView {
  constructor(context) {
    this.context = context;
    this.element = h("div", { class: "file" });
  }

  update(part) {
    const key = `${part.url} ${part.filename}`;
    if (key === this.key) return;
    this.key = key;
    this.element.replaceChildren(fileNode(part, this.context.filesBase));
  }
}

/** Only files of this server (and data of the message itself) are shown or linked; anything else is an address in text. */
function fileNode(part, filesBase) {
  const name = part.filename || part.mediaType || "File";
  const isImage = /^image\/(png|jpeg|gif|webp|avif)$/.test(part.mediaType ?? "");
  const isData = typeof part.url === "string" && part.url.startsWith("data:");
  const isOwn = !isData && typeof part.url === "string" && safely(() => isOwnFile(part.url, filesBase));
  if (isImage && (isOwn || isData)) {
    const image = h("img", {
      src: part.url,
      alt: part.filename ? `Image: ${part.filename}` : "Attached image",
      loading: "lazy",
    });
    return isOwn ? h("a", { href: part.url, target: "_blank", rel: "noopener", class: "file-image" }, image) : image;
  }
  const size = part.byteSize ? h("span", { class: "muted", text: fileSize(part.byteSize) }) : null;
  if (isOwn) {
    return h(
      "a",
      { class: "file-chip", href: part.url, target: "_blank", rel: "noopener" },
      icon("file"),
      h("span", { text: name }),
      size,
    );
  }
  const address = isData ? "" : ` ${part.url ?? ""}`;
  return h("span", { class: "file-chip" }, icon("file"), h("span", { text: name + address }), size);
}

function safely(fn) {
  try {
    return fn();
  } catch {
    return false;
  }
}

/** Numbered sources of one message. */
export class SourcesView {
  constructor() {
    this.element = h("ol", { class: "sources", "aria-label": "Sources" });
  }

  update(parts) {
    const key = JSON.stringify(parts);
    if (key === this.key) return;
    this.key = key;
    this.element.replaceChildren(...parts.map(sourceItem));
  }
}

function sourceItem(part) {
  if (part.type === "source-url" && /^https?:/i.test(part.url ?? "")) {
    const host = safely(() => new URL(part.url).host) || part.url;
    const link = h("a", {
      href: part.url,
      target: "_blank",
      rel: "noopener noreferrer nofollow",
      title: part.url,
      text: part.title || host,
    });
    return h("li", {}, link, part.title ? h("span", { class: "muted", text: ` ${host}` }) : null);
  }
  return h("li", { text: [part.title, part.filename].filter(Boolean).join(", ") || part.url || "Source" });
}
