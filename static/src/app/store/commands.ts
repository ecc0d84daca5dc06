// Commands of the message field: a first line that begins with a slash. Pure.

import { t } from "../lib/i18n.ts";

/** A command that can be given. */
export interface CommandInfo {
  name: string;
  aliases: readonly string[];
  usage: string;
  hint: string;
}

/** A command that was given, with what stands behind it. */
export interface Command {
  name: string;
  rest: string;
}

/** All commands, in the language of the page. */
export const commands = (): CommandInfo[] => [
  {
    name: "compact",
    aliases: ["summarize", "summarise"],
    usage: "/compact",
    hint: t("composer.compact-hint"),
  },
];

const namesOf = (command: CommandInfo) => [command.name, ...command.aliases];

/** The command that a text is, or null: an unknown word after a slash is a message like any other. */
export function commandOf(text: string): Command | null {
  const [, word = "", rest = ""] = /^\/([a-z]+)(?:\s+([\s\S]*))?$/.exec(text.trim()) ?? [];
  const command = commands().find((item) => namesOf(item).includes(word));
  return command ? { name: command.name, rest: rest.trim() } : null;
}

/** Commands to offer while this is typed. */
export function offered(text: string): CommandInfo[] {
  const [whole, typed = ""] = /^\/([a-z]*)$/.exec(text) ?? [];
  if (whole === undefined) return [];
  return commands().filter((command) => namesOf(command).some((name) => name.startsWith(typed)));
}
