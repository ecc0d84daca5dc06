// Saved prompts as text: which ones a word after a slash may mean, and the places in them that are filled in. Pure.

/** A letter, then letters, digits, spaces, hyphens: what a person names a place. JSON and code in braces are none. */
const PLACE = /\{(\p{L}[\p{L}\p{N} _-]{0,39})\}/gu;
const MOST_PLACES = 20;

/** The names of the places of a text, each once, in their order. */
export function placesOf(text: string): string[] {
  const names = [...text.matchAll(PLACE)].map((found) => found[1]);
  return [...new Set(names)].slice(0, MOST_PLACES);
}

/** The text with values in its places; a place without one stays as it is. */
export function filled(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(PLACE, (place, name: string) => values[name] || place);
}

/** The prompts that what is typed may mean, those whose names begin with it first; none where it is no word after a slash. */
export function promptsFor<Prompt extends { name: string }>(typed: string, prompts: readonly Prompt[]): Prompt[] {
  const [whole, word = ""] = /^\/([^\n/]{0,60})$/.exec(typed) ?? [];
  if (whole === undefined) return [];
  const wanted = word.toLocaleLowerCase();
  const begins = ({ name }: Prompt) => name.toLocaleLowerCase().startsWith(wanted);
  const holds = (prompt: Prompt) => !begins(prompt) && prompt.name.toLocaleLowerCase().includes(wanted);
  return [...prompts.filter(begins), ...prompts.filter(holds)];
}
