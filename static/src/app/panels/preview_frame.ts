// The frames of a preview. What is shown was written by models and strangers: it stands in a document on an origin of its own,
// which can reach neither this page nor any server (`chat/http/preview_frame.py`). What such a document says is a number, or nothing.

import { begin } from "../lib/busy.ts";
import { type MessageKey, t } from "../lib/i18n.ts";
import type { PreviewKind } from "../lib/preview_kinds.ts";
import type { Said, Shown } from "../preview/stage.ts";

export interface Content {
  kind: PreviewKind;
  text: string;
  isNetworked: boolean;
}

interface Listeners {
  /** It stands there, or `reason` why it does not. */
  shown: (reason: string) => void;
  /** A link in a document that we have drawn was pressed. */
  link: (url: string) => void;
}

interface Frame {
  element: HTMLIFrameElement;
  content: Content;
  /** It has said once that it takes a text. */
  isReady: boolean;
  /** Its document led elsewhere, and to an empty one: that gets nothing. */
  isGone: boolean;
  end: () => void;
}

const PATIENCE_MS = 3_000; // then what there is of it is shown
const TEXTS: readonly MessageKey[] = [
  "message.code",
  "message.code-in",
  "message.image-named-not-loaded",
  "message.image-not-loaded",
  "message.plain-text",
  "message.table",
  "message.task-done",
  "message.task-open",
  "previews.chart-of",
  "previews.column",
  "previews.first-rows",
  "previews.rows",
];

export class PreviewFrame {
  readonly #holder: HTMLElement;
  readonly #base: string;
  readonly #title: string;
  readonly #on: Listeners;
  #front: Frame | null = null;
  #coming: Frame | null = null;
  #timer = 0;
  #scroll = { x: 0, y: 0 };

  /** The page has taken other colours. */
  readonly #theme = new MutationObserver(() => {
    const frame = this.#front;
    if (frame?.isReady && !frame.isGone && frame.content.kind !== "html") this.#send(frame);
  });

  /** `base`: the address of all frames. */
  constructor(holder: HTMLElement, { base, title, on }: { base: string; title: string; on: Listeners }) {
    this.#holder = holder;
    this.#base = base;
    this.#title = title;
    this.#on = on;
    addEventListener("message", this.#hear);
    this.#theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  }

  dispose(): void {
    removeEventListener("message", this.#hear);
    this.#theme.disconnect();
    clearTimeout(this.#timer);
    for (const frame of [this.#front, this.#coming]) frame && this.#remove(frame);
    this.#front = this.#coming = null;
  }

  /** Show this in place of what is shown; the place in it stays. */
  show(content: Content): void {
    const { kind, text, isNetworked } = content;
    const frame = this.#coming ?? this.#front;
    const isAlike = frame && !frame.isGone && frame.content.kind === kind && frame.content.isNetworked === isNetworked;
    if (isAlike && frame.content.text === text) return;
    // A document that runs scripts is made anew; ours takes another text.
    if (isAlike && kind !== "html") {
      frame.content = content;
      if (frame.isReady) this.#send(frame);
      return;
    }
    if (this.#coming) this.#remove(this.#coming);
    this.#coming = this.#make(content);
  }

  #make(content: Content): Frame {
    const element = document.createElement("iframe");
    element.className = "preview-frame is-coming";
    element.title = this.#title;
    element.setAttribute("sandbox", "allow-scripts");
    element.setAttribute("referrerpolicy", "no-referrer");
    element.dataset.kind = content.kind;
    element.src = `${this.#base}${content.kind}${content.isNetworked ? "?network=1" : ""}`;
    this.#holder.append(element);
    const frame = { element, content, isReady: false, isGone: false, end: begin() };
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#coming === frame && this.#swap(""), PATIENCE_MS);
    return frame;
  }

  #send({ element, content: { kind, text } }: Frame): void {
    const { lang, dir, dataset } = document.documentElement;
    const shown: Shown = {
      text: kind === "html" ? text + follower(this.#scroll) : text,
      theme: dataset.theme ?? "",
      language: lang,
      direction: dir,
      texts: Object.fromEntries(TEXTS.map((key) => [key, t(key)])),
    };
    element.contentWindow?.postMessage(shown, "*"); // the origin is opaque; who else listens there is the document itself
  }

  readonly #hear = (event: MessageEvent): void => {
    const frame = [this.#coming, this.#front].find((each) => each && each.element.contentWindow === event.source);
    if (!frame || event.origin !== "null" || typeof event.data !== "object" || event.data === null) return;
    const said = event.data as Said;
    if (said.preview === "ready" && !frame.isReady) {
      frame.isReady = true;
      this.#send(frame);
    } else if (said.preview === "ready") {
      frame.isGone = true;
    } else if (said.preview === "drawn") {
      if (frame === this.#coming) this.#swap("");
      else this.#on.shown("");
    } else if (said.preview === "scroll" && frame === this.#front) {
      this.#scroll = { x: Number(said.x) || 0, y: Number(said.y) || 0 };
    } else if (frame.content.kind === "html") return; // a stranger's script: nothing else is believed
    else if (said.preview === "failed") {
      if (frame === this.#coming && !this.#front) this.#swap(String(said.reason));
      else this.#on.shown(String(said.reason));
    } else if (said.preview === "link") this.#on.link(String(said.url));
  };

  /** The new frame takes the place of the old one. */
  #swap(reason: string): void {
    clearTimeout(this.#timer);
    if (this.#front) this.#remove(this.#front);
    this.#front = this.#coming;
    this.#coming = null;
    this.#front?.element.classList.remove("is-coming");
    this.#front?.end();
    this.#on.shown(reason);
  }

  #remove(frame: Frame): void {
    frame.end();
    frame.element.remove();
  }
}

/** At the end of a document: it goes to where the one before was, and says where it is. */
const follower = ({ x, y }: { x: number; y: number }): string =>
  `<script>{const tell=(preview,more)=>parent.postMessage({preview,...more},"*");` +
  `addEventListener("scroll",()=>tell("scroll",{x:scrollX,y:scrollY}),{passive:true});` +
  `const go=()=>{scrollTo(${Number(x)},${Number(y)});tell("drawn")};` +
  `document.readyState==="complete"?go():addEventListener("load",go)}</script>`;
