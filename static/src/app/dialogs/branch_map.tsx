// Where a conversation forks: its messages as a tree, what follows without a fork as one line. A click leads there; arrows move
// as in trees of systems.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { fullTime, timeLabel } from "../lib/format.ts";
import { t } from "../lib/i18n.ts";
import { withoutMarkup } from "../lib/markup.ts";
import { messageOf } from "../net/api.ts";
import { type Branches, type BranchNode, readBranches } from "../net/branches_api.ts";
import { type BranchRow, parentOf, rowsOf } from "../store/branch_rows.ts";
import type { DialogProps } from "../store/dialog_kinds.ts";
import { Icon } from "../ui/icon.tsx";
import { Problem } from "../ui/problem.tsx";
import { Dialog } from "./dialog.tsx";

export function BranchMap({ api, instanceId, close }: DialogProps<"branch-map">) {
  const [found, setFound] = useState<Branches | null>(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    readBranches(api, instanceId).then(setFound, (error) => setProblem(messageOf(error)));
  }, []);
  const items = found?.items ?? [];
  return (
    <Dialog title={t("branches.map")} close={close} isWide>
      {!found && !problem && <p class="muted">{t("common.loading")}</p>}
      <Problem text={problem} />
      {found && items.length === 0 && <p class="muted">{t("branches.nothing")}</p>}
      {found?.is_cut && <p class="muted">{t("branches.cut")}</p>}
      {items.length > 0 && <Tree items={items} go={close} />}
    </Dialog>
  );
}

function Tree({ items, go }: { items: readonly BranchNode[]; go: (id: string) => void }) {
  const element = useRef<HTMLDivElement>(null);
  const [closed, setClosed] = useState<ReadonlySet<string>>(new Set());
  const [focused, setFocused] = useState(() => (items.findLast((item) => item.is_shown) ?? items[0]).id);
  const rows = useMemo(() => rowsOf(items, closed), [items, closed]);
  const current = rows.find(({ node }) => node.id === focused) ?? rows[0];
  useLayoutEffect(() => {
    const row = element.current!.querySelector<HTMLElement>('[role=treeitem][tabindex="0"]');
    row?.focus({ preventScroll: true });
    row?.scrollIntoView({ block: "nearest" });
  }, [focused]);
  const toggle = (row: BranchRow, isOpen = !row.isOpen) => {
    const next = new Set(closed);
    if (isOpen) next.delete(row.node.id);
    else next.add(row.node.id);
    setClosed(next);
    setFocused(row.node.id);
  };
  const move = (row: BranchRow | undefined) => row && setFocused(row.node.id);
  const sideways = (key: string) => {
    const isRightToLeft = getComputedStyle(element.current!).direction === "rtl";
    const opens = key === (isRightToLeft ? "ArrowLeft" : "ArrowRight");
    if (!opens) return current.isOpen ? toggle(current, false) : move(parentOf(rows, current));
    if (current.isOpen) move(rows[rows.indexOf(current) + 1]);
    else if (current.isOpen === false) toggle(current, true);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const at = rows.indexOf(current);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: rows.length - 1 }[event.key];
    if (to !== undefined) move(rows[to]);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") sideways(event.key);
    else if (event.key === "Enter" || event.key === " ") go(current.node.id);
    else return;
    event.preventDefault();
  };
  return (
    <div class="tree branch-tree" role="tree" aria-label={t("branches.map")} ref={element} onKeyDown={onKeyDown}>
      {rows.map((row) => (
        <Row
          key={row.node.id}
          row={row}
          isCurrent={row === current}
          toggle={() => toggle(row)}
          go={() => go(row.node.id)}
        />
      ))}
    </div>
  );
}

interface RowProps {
  row: BranchRow;
  isCurrent: boolean;
  toggle: () => void;
  go: () => void;
}

const DEEPEST = 8; // beyond this, rows are indented no further

function Row({ row, isCurrent, toggle, go }: RowProps) {
  const { node, level, size, position, isOpen } = row;
  const facts = [node.model, timeLabel(node.created_at)].filter(Boolean).join(" · ");
  const text = textOf(node);
  const role = roleOf(node);
  const name = [role, text, node.message_count === 1 && facts, node.is_shown && t("branches.is-shown")];
  return (
    <div
      role="treeitem"
      class={["tree-row", node.is_shown && "is-shown", node.message_count > 1 && "is-run"].filter(Boolean).join(" ")}
      style={{ paddingInlineStart: `${0.35 + Math.min(level - 1, DEEPEST) * 1.1}rem` }}
      tabIndex={isCurrent ? 0 : -1}
      data-id={node.id}
      aria-label={name.filter(Boolean).join(", ")}
      aria-level={level}
      aria-setsize={size}
      aria-posinset={position}
      aria-expanded={isOpen}
      onClick={go}
    >
      {isOpen === undefined ? <span class="branch-leaf" /> : (
        <span
          class="branch-toggle"
          onClick={(event) => {
            event.stopPropagation();
            toggle();
          }}
        >
          <Icon name="chevron" />
        </span>
      )}
      <span class="branch-mark" />
      {role && <span class="branch-role">{role}</span>}
      <span class="tree-name" dir="auto">{text}</span>
      {node.message_count === 1 && (
        <span class="tree-facts">
          {node.model && <bdi class="branch-model">{node.model}</bdi>}
          <time dateTime={node.created_at} title={fullTime(node.created_at)}>{timeLabel(node.created_at)}</time>
        </span>
      )}
    </div>
  );
}

function textOf({ message_count: count, text }: BranchNode): string {
  if (count > 1) return t("branches.run", { count });
  return withoutMarkup(text).replace(/\s+/g, " ").trim() || t("find.no-words");
}

function roleOf({ message_count: count, role }: BranchNode): string {
  if (count > 1) return "";
  return t(role === "user" ? "branches.question" : role === "assistant" ? "branches.reply" : "message.system");
}
