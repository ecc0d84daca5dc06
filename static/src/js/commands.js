// Commands of the message field: a first line that begins with a slash. Pure.

export const COMMANDS = [{ name: "compact", usage: "/compact", hint: "Summarise older messages, so that the model reads less. Add what the summary should keep." }];

/** The command that a text is, {name, rest}, or null: an unknown word after a slash is a message like any other. */
export function commandOf(text) {
  const found = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  if (!found || !COMMANDS.some((command) => command.name === found[1])) return null;
  return { name: found[1], rest: (found[2] ?? "").trim() };
}

/** Commands to offer while this is typed. */
export function offered(text) {
  const found = /^\/([a-z]*)$/.exec(text);
  return found ? COMMANDS.filter((command) => command.name.startsWith(found[1])) : [];
}
