// The agents there are, to choose one of: with arrows, by its first letters, or by a search where there are many.

import { useRef, useState } from "preact/hooks";
import { t } from "../lib/i18n.ts";
import type { Agent } from "../store/types.ts";
import { AgentMark } from "./agent_mark.tsx";
import { Icon } from "./icon.tsx";
import { TypeAhead } from "./type_ahead.ts";

const MOST_WITHOUT_SEARCH = 8;

interface Props {
  agents: readonly Agent[];
  current: string;
  choose: (name: string) => void;
}

const matches = (agent: Agent, words: string[]): boolean => {
  const text = `${agent.title} ${agent.name} ${agent.description}`.toLocaleLowerCase();
  return words.every((word) => text.includes(word));
};

export function AgentList({ agents, current, choose }: Props) {
  const [query, setQuery] = useState("");
  const list = useRef<HTMLUListElement>(null);
  const typed = useRef(new TypeAhead());
  const hasSearch = agents.length > MOST_WITHOUT_SEARCH;
  const shown = agents.filter((agent) => matches(agent, query.toLocaleLowerCase().split(/\s+/)));
  const onSearchKey = (event: KeyboardEvent) => {
    if (event.key !== "Enter" || event.isComposing) return;
    event.preventDefault();
    if (shown.length) choose(shown[0].name);
  };
  const onListKey = (event: KeyboardEvent) => {
    const at = hasSearch ? -1 : typed.current.find(event, shown.map((agent) => agent.title));
    if (at < 0) return;
    event.preventDefault();
    list.current!.querySelectorAll<HTMLElement>("[data-option]")[at]?.focus();
  };
  return (
    <>
      {hasSearch && (
        <input
          type="search"
          class="picker-search"
          autofocus
          placeholder={t("choice.search-agents")}
          aria-label={t("choice.search-agents")}
          autocomplete="off"
          spellcheck={false}
          value={query}
          onInput={(event) => setQuery(event.currentTarget.value)}
          onKeyDown={onSearchKey}
        />
      )}
      <p class="visually-hidden" role="status">
        {hasSearch && query && t("choice.agent-count", { count: shown.length })}
      </p>
      <ul class="picker-list" ref={list} onKeyDown={onListKey}>
        {shown.map((agent) => (
          <li key={agent.name}>
            <button
              type="button"
              class="picker-option"
              data-option={agent.name}
              aria-current={agent.name === current ? "true" : undefined}
              onClick={() => choose(agent.name)}
            >
              <AgentMark agent={agent} />
              <span class="picker-text">
                <span class="picker-title">
                  <span dir="auto">{agent.title}</span>
                </span>
                {agent.description && <span class="picker-about" dir="auto">{agent.description}</span>}
              </span>
              {agent.name === current && <Icon name="check" />}
            </button>
          </li>
        ))}
      </ul>
      {!shown.length && <p class="muted picker-none">{t("choice.no-agent")}</p>}
    </>
  );
}
