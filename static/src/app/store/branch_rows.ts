// The forks of a conversation as rows of a tree. Only a fork goes one level deeper, and what follows a branch's first message: a
// long conversation without forks stays flat. Pure.

import type { BranchNode } from "../net/branches_api.ts";

export interface BranchRow {
  node: BranchNode;
  /** Of the row above in the tree; "" at the top. */
  parentId: string;
  level: number;
  size: number;
  position: number;
  /** Undefined where nothing is below. */
  isOpen?: boolean;
}

/** Rows in sight, from nodes in the order of the tree. `closed`: ids of rows that hide what is below them. */
export function rowsOf(nodes: readonly BranchNode[], closed: ReadonlySet<string>): BranchRow[] {
  const counts = new Map<string, number>(); // by the message above
  for (const { parent_id: above } of nodes) counts.set(above ?? "", (counts.get(above ?? "") ?? 0) + 1);
  const places = new Map(nodes.map((node) => [node.id, node.parent_id ?? ""]));
  const isOneOfSeveral = (id: string) => counts.get(places.get(id)!)! > 1;
  const parents = new Map<string, string>(); // of rows
  const families = new Map<string, string[]>();
  for (const { id, parent_id: above } of nodes) {
    const parent = above === null ? "" : isOneOfSeveral(above) || counts.get(above)! > 1 ? above : parents.get(above)!;
    parents.set(id, parent);
    families.set(parent, [...(families.get(parent) ?? []), id]);
  }
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const rows: BranchRow[] = [];
  const show = (parentId: string, level: number) => {
    const family = families.get(parentId) ?? [];
    family.forEach((id, index) => {
      const isOpen = families.has(id) ? !closed.has(id) : undefined;
      rows.push({ node: byId.get(id)!, parentId, level, size: family.length, position: index + 1, isOpen });
      if (isOpen) show(id, level + 1);
    });
  };
  show("", 1);
  return rows;
}

export const parentOf = (rows: readonly BranchRow[], { parentId }: BranchRow): BranchRow | undefined =>
  rows.find(({ node }) => node.id === parentId);
