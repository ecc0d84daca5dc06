// Commands of the message field: a first line that begins with a slash. Pure.

import type { Agent } from "./types.ts";

/** A command that can be given. */
export interface CommandInfo {
  name: string;
  aliases: readonly string[];
  usage: string;
  /** Whether a text may stand behind it; else what has one is a message. */
  takesText: boolean;
  /** Of a command of the agent's, which is sent like a message: what it does, in its own words. */
  about?: string;
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
  { name: "title", aliases: [], usage: "/title", takesText: true },
];

const namesOf = (command: CommandInfo) => [command.name, ...command.aliases];

/** The command that a text is, or null: an unknown word after a slash is a message like any other. */
export function commandOf(text: string): Command | null {
  const [, word = "", rest = ""] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const command = COMMANDS.find((item) => namesOf(item).includes(word));
  return command && (command.takesText || !rest.trim()) ? { name: command.name, rest: rest.trim() } : null;
}

/** The commands of an agent, as they are offered. */
export const commandsOf = ({ commands }: Pick<Agent, "commands">): CommandInfo[] =>
  commands.map(({ name, description, takes_text: takesText }) => ({
    name,
    aliases: [],
    usage: `/${name}`,
    takesText,
    about: description,
  }));

/** Commands to offer while this is typed: the agent's own first. */
export function offered(text: string, own: readonly CommandInfo[] = []): CommandInfo[] {
  const [whole, typed = ""] = /^\/([a-z0-9-]*)$/.exec(text) ?? [];
  if (whole === undefined) return [];
  return [...own, ...COMMANDS].filter((command) => namesOf(command).some((name) => name.startsWith(typed)));
}
