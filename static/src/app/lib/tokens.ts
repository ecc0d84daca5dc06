// How many tokens a text has, as the server estimates it: by characters and by words, the larger of both. Pure.

const CHARS_PER_TOKEN = 4;
const TOKENS_PER_WORD = 1.3;

export function estimateTokens(text: string): number {
  const words = text.split(/\s+/).filter(Boolean).length;
  return Math.ceil(Math.max(text.length / CHARS_PER_TOKEN, words * TOKENS_PER_WORD));
}
