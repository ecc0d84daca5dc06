// Speaks finished sentences, never single tokens, and nothing of code, formulas or addresses.

import { t } from "./i18n.ts";

const PAUSE = 700;
const SENTENCE = /[\s\S]*?(?:[.!?…。！？](?=[\s"')\]])|\n)/g;

export class Speaker {
  #say: (text: string) => void;
  #said = 0;
  #text = "";
  #key = "";
  #timer: ReturnType<typeof setTimeout> | 0 = 0;

  /** `say` puts a text where assistive technology reads it. */
  constructor(say: (text: string) => void) {
    this.#say = say;
  }

  /** Follow a growing text; `key` tells one text from the next. */
  follow(key: string, text: string): void {
    if (key !== this.#key) {
      this.#key = key;
      this.#said = 0;
    }
    this.#text = text;
    this.#timer ||= setTimeout(() => this.#speak(false), PAUSE);
  }

  /** Say the rest, then `note`. */
  finish(note = ""): void {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#key) this.#speak(true);
    this.#key = "";
    if (note) this.#say(note);
  }

  #speak(isEnd: boolean): void {
    this.#timer = 0;
    const rest = this.#text.slice(this.#said);
    const whole = isEnd ? rest : (rest.match(SENTENCE) ?? []).join("");
    if (!whole) return;
    if (!isEnd && isInside(whole)) return; // wait for its end
    this.#said += whole.length;
    const plain = toSpeech(whole);
    if (plain) this.#say(plain);
  }
}

/** Whether the text ends inside code or a formula. */
function isInside(text: string): boolean {
  if ((text.match(/^```/gm) ?? []).length % 2) return true;
  const prose = text.replace(/```[\s\S]*?```/g, "");
  return (prose.match(/^\s*\$\$/gm) ?? []).length % 2 === 1 || /\\\[(?![\s\S]*\\\])/.test(prose);
}

const FORMULA =
  /\$\$[\s\S]+?\$\$|\\\[[\s\S]+?\\\]|\\\([\s\S]+?\\\)|(?<![\w$\\])\$(?=\S)[^$\n]*?[\\^_=][^$\n]*?(?<=\S)\$(?!\w)/g;

/** What remains of markdown when it is read aloud. */
export function toSpeech(text: string): string {
  return text
    .replace(/```[\s\S]*?(```|$)/g, ` ${t("message.said-code")} `)
    .replace(FORMULA, ` ${t("message.said-formula")} `)
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/https?:\/\/\S+/g, t("message.said-link"))
    .replace(/\[\^[^\]\s]+\]:?/g, "")
    .replace(/^\s*[-*+]\s+\[[ xX]\]\s/gm, "")
    .replace(/^[#>\-*\s|]+/gm, "")
    .replace(/[*_`~|]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
