// Speaks finished sentences into the live region, never single tokens, and nothing of code or addresses.

const PAUSE = 700;
const SENTENCE = /[\s\S]*?(?:[.!?…。！？](?=[\s"')\]])|\n)/g;

export class Speaker {
  #region;
  #said = 0;
  #text = "";
  #key = "";
  #timer = 0;

  constructor(region) {
    this.#region = region;
  }

  /** Follow a growing text; `key` tells one text from the next. */
  follow(key, text) {
    if (key !== this.#key) {
      this.#key = key;
      this.#said = 0;
    }
    this.#text = text;
    this.#timer ||= setTimeout(() => this.#speak(false), PAUSE);
  }

  /** Say the rest, then `note`. */
  finish(note) {
    clearTimeout(this.#timer);
    this.#timer = 0;
    if (this.#key) this.#speak(true);
    this.#key = "";
    if (note) this.say(note);
  }

  say(text) {
    const line = document.createElement("p");
    line.textContent = text;
    this.#region.append(line);
    while (this.#region.childElementCount > 12) this.#region.firstElementChild.remove();
  }

  #speak(isEnd) {
    this.#timer = 0;
    const rest = this.#text.slice(this.#said);
    const whole = isEnd ? rest : (rest.match(SENTENCE) ?? []).join("");
    if (!whole) return;
    if (!isEnd && (whole.match(/^```/gm) ?? []).length % 2) return; // inside code: wait for its end
    this.#said += whole.length;
    const plain = toSpeech(whole);
    if (plain) this.say(plain);
  }
}

/** What remains of markdown when it is read aloud. */
export function toSpeech(text) {
  return text
    .replace(/```[\s\S]*?(```|$)/g, " Code. ")
    .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/https?:\/\/\S+/g, "link")
    .replace(/^[#>\-*\s|]+/gm, "")
    .replace(/[*_`~|]+/g, "")
    .replace(/\s+/g, " ")
    .trim();
}
