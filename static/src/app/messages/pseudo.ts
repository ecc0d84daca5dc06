// Pseudo-languages for tests and for the eye: English made longer and accented, so that a text outside the catalogue and a
// place that is too narrow both show. `ar-XB` is read from right to left.

import { type Message, useCatalogue } from "../lib/i18n.ts";
import { en } from "./en.ts";
import { later } from "./later.ts";

const ACCENTS: Record<string, string> = {
  a: "á",
  e: "é",
  i: "í",
  o: "ó",
  u: "ú",
  A: "Å",
  E: "É",
  I: "Î",
  O: "Ö",
  U: "Û",
  c: "ç",
  n: "ñ",
  s: "š",
  y: "ý",
  C: "Ç",
  N: "Ñ",
  S: "Š",
  Y: "Ý",
};
const LONGER = 0.4; // German and Finnish need about that much more

/** "[Šéñd one]": accented, in brackets, two fifths longer; names in braces stay. */
export function pseudo(text: string): string {
  const accented = text.split(/(\{\w+\})/).map((piece, index) =>
    index % 2 ? piece : piece.replace(/[a-zA-Z]/g, (letter) => ACCENTS[letter] ?? letter)
  ).join("");
  const length = Math.ceil(text.replace(/\{\w+\}/g, "").length * LONGER);
  const more = "~".repeat(length).replace(/~{6}(?=~)/g, "~~~~~~ "); // as words, which lines can break between
  return `[${accented}${more ? ` ${more}` : ""}]`;
}

function pseudoMessage(message: Message): Message {
  if (typeof message === "string") return pseudo(message);
  return Object.fromEntries(Object.entries(message).map(([form, text]) => [form, pseudo(text)])) as Message;
}

/** Show the page in a pseudo-language. */
export function usePseudo(tag: string): void {
  const all = Object.entries({ ...en, ...later });
  useCatalogue(tag, Object.fromEntries(all.map(([key, message]) => [key, pseudoMessage(message)])));
}
