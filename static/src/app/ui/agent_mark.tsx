// Who answers, in small: a symbol of the page, a picture of the site's own, or the first letters of the name.

import { t } from "../lib/i18n.ts";
import type { Agent } from "../store/types.ts";
import { Icon } from "./icon.tsx";

const LETTERS = 2;

/** The first letters of the first and the last word: "Support Desk" gives "SD". */
export function initialsOf(title: string): string {
  const words = title.trim().split(/\s+/).filter(Boolean);
  const picked = words.length > LETTERS ? [words[0], words[words.length - 1]] : words;
  return picked.map((word) => [...word][0].toLocaleUpperCase()).join("");
}

/** The mark of an agent; its name stands beside it, so assistive technology hears only that. */
export function AgentMark({ agent }: { agent: Agent }) {
  if (agent.icon_url) return <img class="agent-mark" src={agent.icon_url} alt="" width={20} height={20} />;
  return (
    <span class="agent-mark" aria-hidden="true">
      {agent.icon ? <Icon name={agent.icon} /> : initialsOf(agent.title || agent.name)}
    </span>
  );
}

/** Mark and name. */
export function AgentName({ agent, id }: { agent: Agent; id?: string }) {
  return (
    <span class="agent-name" id={id} title={agent.description || undefined}>
      <AgentMark agent={agent} />
      <span class="visually-hidden">{t("common.agent-before")}</span>
      <span class="agent-title" dir="auto">{agent.title}</span>
    </span>
  );
}
