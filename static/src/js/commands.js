// Commands of the message field: a first line that begins with a slash. Pure.

export const COMMANDS = [
  {
    name: "compact",
    aliases: ["summarize", "summarise"],
    usage: "/compact",
    hint: "Summarise older messages, so that the model reads less. Add what the summary should keep.",
  },
];

const namesOf = (command) => [command.name, ...command.aliases];

/** The command that a text is, {name, rest}, or null: an unknown word after a slash is a message like any other. */
export function commandOf(text) {
  const found = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim());
  const command = found && COMMANDS.find((item) => namesOf(item).includes(found[1]));
  return command ? { name: command.name, rest: (found[2] ?? "").trim() } : null;
}

/** Commands to offer while this is typed. */
export function offered(text) {
  const found = /^\/([a-z]*)$/.exec(text);
  return found ? COMMANDS.filter((command) => namesOf(command).some((name) => name.startsWith(found[1]))) : [];
}
