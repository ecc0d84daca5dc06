// Rows and buttons of the lists of tools.

import { withoutTricks } from "../lib/readable.ts";
import { toolsPlace, type ToolsView } from "../store/tools_place.ts";
import { Icon } from "../ui/icon.tsx";

type NewKind = "new-server" | "paste-servers" | "new-extension" | "new-rule";

export function AddButton({ kind, label }: { kind: NewKind; label: string }) {
  return (
    <button type="button" class="button" data-row={kind} onClick={() => toolsPlace.open({ kind })}>
      <Icon name="plus" />
      {label}
    </button>
  );
}

interface RowProps {
  view: ToolsView & { key: string };
  icon: string;
  name: string;
  facts: string;
  state: string;
  mood: string;
}

export function Row({ view, icon, name, facts, state, mood }: RowProps) {
  return (
    <li>
      <button
        type="button"
        class="tools-row"
        data-row={`${view.kind} ${view.key}`}
        onClick={() => toolsPlace.open(view)}
      >
        <Icon name={icon} />
        <span class="tools-row-text">
          <bdi class="tools-name">{withoutTricks(name)}</bdi>
          <span class="muted">{facts}</span>
        </span>
        <span class={`tools-state ${mood}`}>{state}</span>
      </button>
    </li>
  );
}
