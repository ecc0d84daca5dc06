// When a message is too long to be shown whole. Pure.

const MOST_CHARACTERS = 4_000;
const MOST_LINES = 40;

/** Whether only the beginning of this text is to be shown at first. */
export function isLongText(text: string): boolean {
  if (text.length > MOST_CHARACTERS) return true;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines > MOST_LINES;
}
