// When a message is too long to be shown whole.

const MOST_CHARACTERS = 4_000;
const MOST_LINES = 40;

export function isLongText(text) {
  if (text.length > MOST_CHARACTERS) return true;
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return lines > MOST_LINES;
}
