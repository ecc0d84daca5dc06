// Commands of the message field: a first line that begins with a slash. Pure.

/** A command that can be given. */
export interface CommandInfo {
  name: string;
  aliases: readonly string[];
  usage: string;
  /** Whether a text may stand behind it; else what has one is a message. */
  takesText: boolean;
}

/** A command that was given, with what stands behind it. */
export interface Command {
  name: string;
  rest: string;
}

export const COMMANDS: readonly CommandInfo[] = [
  {
    name: "compact",
    aliases: ["summarize", "summarise"],
    usage: "/compact",
    takesText: true,
  },
  { name: "undo", aliases: [], usage: "/undo", takesText: false },
  { name: "redo", aliases: [], usage: "/redo", takesText: false },
];

const namesOf = (command: CommandInfo) => [command.name, ...command.aliases];

/** The command that a text is, or null: an unknown word after a slash is a message like any other. */
export function commandOf(text: string): Command | null {
  const [, word = "", rest = ""] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const command = COMMANDS.find((item) => namesOf(item).includes(word));
  return command && (command.takesText || !rest.trim()) ? { name: command.name, rest: rest.trim() } : null;
}

/** Commands to offer while this is typed. */
export function offered(text: string): CommandInfo[] {
  const [whole, typed = ""] = /^\/([a-z]*)$/.exec(text) ?? [];
  if (whole === undefined) return [];
  return COMMANDS.filter((command) => namesOf(command).some((name) => name.startsWith(typed)));
}
