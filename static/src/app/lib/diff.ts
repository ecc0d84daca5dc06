// Hunks of a unified diff as lines of kinds. Pure.

export type DiffKind = "added" | "gone" | "place" | "same";
export interface DiffLine {
  kind: DiffKind;
  text: string;
}

const KINDS: Record<string, DiffKind> = { "+": "added", "-": "gone", "@": "place" };

/** The lines of a patch without file names, with their signs: they differ by them as well as by their colour. */
export function diffLines(patch: string): DiffLine[] {
  return patch.split("\n").map((text) => ({ kind: KINDS[text[0]] ?? "same", text }));
}
