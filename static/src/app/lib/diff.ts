// A unified diff as lines of kinds. Pure.

export type DiffKind = "added" | "gone" | "place" | "same";
export interface DiffLine {
  kind: DiffKind;
  text: string;
}

const KINDS: Record<string, DiffKind> = { "+": "added", "-": "gone", "@": "place" };

/** The lines of a patch, without the names of files above it, with their signs: they differ by them as well as by their colour. */
export function diffLines(patch: string): DiffLine[] {
  const lines = patch.replace(/\n$/, "").split("\n");
  const isNamed = lines[0]?.startsWith("--- ") && lines[1]?.startsWith("+++ ");
  return lines.slice(isNamed ? 2 : 0).map((text) => ({ kind: KINDS[text[0]] ?? "same", text }));
}
