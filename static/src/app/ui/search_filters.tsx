// What narrows a search of messages: the agent, who wrote, and how long ago. Loaded when needed.

import { t } from "../lib/i18n.ts";
import { follow } from "../lib/store.ts";
import type { Search, SearchFilters as Filters } from "../store/search.ts";
import { useApp } from "./context.ts";

const ROLES = { "": "search.anyone", user: "search.from-you", assistant: "search.from-agent" } as const;
const DAYS = { "": "search.any-time", 7: "search.week", 30: "search.month", 365: "search.year" } as const;

export function SearchFilters({ search }: { search: Search }) {
  const { agents, list: { projects } } = useApp();
  const { filters } = follow(search);
  const names = [["", t("search.any-agent")], ...agents.map(({ name, title }) => [name, title])];
  const choice = (field: keyof Filters, label: string, options: string[][]) => (
    <select
      aria-label={label}
      value={filters[field]}
      class={filters[field] ? "is-narrowed" : undefined}
      onChange={(event) => search.narrow({ [field]: event.currentTarget.value })}
    >
      {options.map(([value, text]) => <option key={value} value={value}>{text}</option>)}
    </select>
  );
  return (
    <div class="search-filters" role="group" aria-label={t("search.filters")}>
      {agents.length > 1 && choice("agent", t("common.agent"), names)}
      {projects.length > 0 &&
        choice("project", t("panel.piece-project"), [
          ["", t("search.any-project")],
          ...projects.map(({ id, name }) => [id, name]),
        ])}
      {choice("role", t("search.who"), Object.entries(ROLES).map(([value, key]) => [value, t(key)]))}
      {choice("days", t("search.when"), Object.entries(DAYS).map(([value, key]) => [value, t(key)]))}
    </div>
  );
}
