// Hunks of a unified diff as lines that differ by their sign as well as by their colour.

const KINDS: Record<string, string> = { "+": "is-added", "-": "is-gone", "@": "is-place" };

/** `patch`: hunks without file names. `label`: what it is a diff of. */
export function DiffView({ patch, label }: { patch: string; label: string }) {
  return (
    <pre class="diff" tabIndex={0} role="group" aria-label={label}>
      {patch.split("\n").map((line, index) => <span key={index} class={KINDS[line[0]]}>{`${line}\n`}</span>)}
    </pre>
  );
}
