// Reading a text aloud by the browser's own voices, sentence by sentence: a long text in one piece is cut by some of them.

import { formatLocale } from "./i18n.ts";
import { toSpeech } from "./speech.ts";

const SENTENCES = /[^.!?…。！？]+[.!?…。！？]*/g;

/** Whether the browser can. */
export const canReadAloud = (): boolean => "speechSynthesis" in globalThis && "SpeechSynthesisUtterance" in globalThis;

let reads = "";

/** Begin to read; while the same text is read, stop instead. Resolves to whether it reads now. */
export function readAloud(text: string): boolean {
  const isSame = reads === text && speechSynthesis.speaking;
  speechSynthesis.cancel();
  reads = isSame ? "" : text;
  if (isSame) return false;
  for (const sentence of toSpeech(text).match(SENTENCES) ?? []) {
    const spoken = new SpeechSynthesisUtterance(sentence.trim());
    spoken.lang = formatLocale();
    speechSynthesis.speak(spoken);
  }
  return true;
}
