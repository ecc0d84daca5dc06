// Text that a program wrote, as a person reads it: no commands to a terminal, no character that hides or reorders others. Pure.

// Colours, cursor moves, titles and links of terminals, in their 7-bit and 8-bit forms.
const COMMANDS =
  // deno-lint-ignore no-control-regex
  /\x1b\][^\x07\x1b]*(?:\x07|\x1b\\|$)|\x1b[PX^_][^\x1b]*(?:\x1b\\|$)|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?|\x1b[ -/]*[0-~]?/g;
// deno-lint-ignore no-control-regex
const CONTROLS = /[\x00-\x08\x0b-\x1f\x7f]/g;
const INVISIBLE = /[\u061c\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;
const SYMBOLS = 0x2400; // of control characters, in their order
const DELETE_SYMBOL = "\u2421";

/** A text whose order is the order of its characters: what would change that, or could not be seen, is named in brackets. */
export const withoutTricks = (text: string): string =>
  text.replace(INVISIBLE, (sign) => `[U+${sign.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}]`);

/** The output of a program: what a terminal would show at the end, without colours. */
export function terminalText(text: string): string {
  const plain = text.replace(COMMANDS, "").replace(/\r+\n/g, "\n");
  const lines = plain.includes("\r") ? plain.split("\n").map(overwritten).join("\n") : plain;
  return withoutTricks(lines.replace(CONTROLS, symbolOf));
}

/** Content of a file: every character can be seen, and none is a command. */
export function fileText(text: string): string {
  return withoutTricks(text.replace(/\r\n/g, "\n").replace(CONTROLS, symbolOf));
}

const symbolOf = (sign: string): string =>
  sign === "\x7f" ? DELETE_SYMBOL : String.fromCharCode(SYMBOLS + sign.charCodeAt(0));

/** A progress line is written over itself: the last writing stays. */
const overwritten = (line: string): string => line.split("\r").findLast((piece) => piece !== "") ?? "";
