// @ts-check
/**
 * Commands that look at one large file a piece at a time: `grep`, `head`, `tail` and `wc`.
 *
 * The interpreter's own commands hold a file whole, several times over. Here they get what they need of it, in a scratch
 * file of a process' own; what they are asked for in other forms they do themselves.
 *
 * @typedef {import("./workspace_fs.js").WorkspaceFs} WorkspaceFs
 * @typedef {{ stdout: string, stderr: string, exitCode: number }} Result
 * @typedef {(args: string[], context: any) => Promise<Result>} Execute
 * @typedef {{ fs: WorkspaceFs, path: string, size: number, own: (args: string[]) => Promise<Result> }} Large
 * @typedef {(args: string[], large: Large) => Promise<Result | null>} Command
 */

const BLOCK_BYTES = 1_000_000;
const NEWLINE = 10;
const SCRATCH = "/tmp/.large";

/** The number that `head` or `tail` is asked for, of lines or bytes; null for other forms. @param {string[]} options */
function amount(options) {
  const [, unit, number] = /^-(n|c)? ?(\d+)$/.exec(options.length ? options.join(" ") : "-n 10") ?? [];
  return number === undefined ? null : { isBytes: unit === "c", number: Number(number) };
}

/** @param {Uint8Array} data */
function lineEnds(data) {
  let count = 0;
  for (let at = data.indexOf(NEWLINE); at >= 0; at = data.indexOf(NEWLINE, at + 1)) count += 1;
  return count;
}

/** @param {Uint8Array[]} parts */
function joined(parts) {
  const whole = new Uint8Array(parts.reduce((size, part) => size + part.length, 0));
  parts.reduce((at, part) => (whole.set(part, at), at + part.length), 0);
  return whole;
}

/** Pieces of a file from the beginning. @param {Large} large */
async function* pieces({ fs, path, size }) {
  for (let at = 0; at < size;) {
    const piece = await fs.piece(path, at);
    if (!piece.length) return;
    yield piece;
    at += piece.length;
  }
}

/** Whole lines of a file, some at a time. @param {Large} large */
async function* blocks(large) {
  let rest = new Uint8Array();
  for await (const piece of pieces(large)) {
    rest = joined([rest, piece]);
    for (let from = 0;;) {
      const end = rest.lastIndexOf(NEWLINE, from + BLOCK_BYTES) + 1;
      if (rest.length - from <= BLOCK_BYTES || end <= from) {
        rest = rest.slice(from);
        break;
      }
      yield rest.subarray(from, end);
      from = end;
    }
  }
  if (rest.length) yield rest;
}

/** @type {Command} */
async function head(args, large) {
  const wanted = amount(args);
  if (!wanted) return null;
  const parts = [];
  let left = wanted.number;
  for await (const piece of pieces(large)) {
    parts.push(piece);
    left -= wanted.isBytes ? piece.length : lineEnds(piece);
    if (left <= 0) break;
  }
  return await large.fs.scratch(SCRATCH, joined(parts), () => large.own([...args, SCRATCH]));
}

/** @type {Command} */
async function tail(args, large) {
  const wanted = amount(args);
  if (!wanted) return null;
  /** @type {Uint8Array[]} */
  const parts = [];
  let left = wanted.number;
  for (let end = large.size; end > 0 && left >= 0;) {
    const start = Math.max(0, end - BLOCK_BYTES);
    const piece = (await large.fs.piece(large.path, start)).subarray(0, end - start);
    parts.unshift(piece);
    left -= wanted.isBytes ? piece.length : lineEnds(piece);
    end = start;
  }
  return await large.fs.scratch(SCRATCH, joined(parts), () => large.own([...args, SCRATCH]));
}

/** @type {Command} */
async function wc(args, large) {
  if (!args.every((each) => /^-[lwc]+$/.test(each))) return null;
  const flags = args.join("") || "lwc";
  const counts = { l: 0, w: 0, c: 0 };
  let isWithin = false;
  for await (const piece of pieces(large)) {
    counts.l += lineEnds(piece);
    counts.c += piece.length;
    for (let at = 0; flags.includes("w") && at < piece.length; at += 1) {
      const isSpace = piece[at] === 32 || (piece[at] >= 9 && piece[at] <= 13);
      counts.w += Number(!isSpace && !isWithin);
      isWithin = !isSpace;
    }
  }
  const shown = [...Object.entries(counts)].filter(([flag]) => flags.includes(flag)).map(([, count]) => String(count));
  const width = shown.length > 1 ? String(large.size).length : 0;
  return { stdout: shown.map((each) => each.padStart(width)).join(" "), stderr: "", exitCode: 0 };
}

/** @type {Command} */
async function grep(args, large) {
  const options = args.slice(0, -1);
  if (args.length === 0 || !options.every((each) => /^-[ciEFGPvwxoqhns]+$/.test(each))) return null;
  const flags = options.join("");
  const parts = [];
  let [before, count, last] = [0, 0, /** @type {Result | null} */ (null)];
  for await (const block of blocks(large)) {
    const result = await large.fs.scratch(SCRATCH, block, () => large.own([...args, SCRATCH]));
    if (result.exitCode > 1) return result;
    const hasFound = result.exitCode === 0 || last?.exitCode === 0;
    last = { ...result, exitCode: hasFound ? 0 : 1 };
    if (flags.includes("c")) count += Number(result.stdout);
    else if (flags.includes("n")) {
      parts.push(result.stdout.replace(/^\d+/gm, (number) => String(Number(number) + before)));
    } else parts.push(result.stdout);
    if (flags.includes("q") && hasFound) break;
    before += lineEnds(block);
  }
  return last && { ...last, stdout: flags.includes("c") ? `${count}\n` : parts.join("") };
}

/** @type {Record<string, Command>} */
const COMMANDS = { head, tail, wc, grep, egrep: grep, fgrep: grep };

/** Has an interpreter use these commands where their one file is large. @param {any} bash @param {WorkspaceFs} fs */
export function takeLargeFiles(bash, fs) {
  for (const [name, command] of Object.entries(COMMANDS)) {
    const { execute: own } = bash.commands.get(name);
    /** @type {Execute} */
    const execute = async (args, context) => {
      const file = args.at(-1) ?? "";
      const found = file.startsWith("-") ? null : fs.large(fs.resolvePath(context.cwd, file));
      if (!found) return await own(args, context);
      const large = { fs, ...found, own: (/** @type {string[]} */ given) => own(given, context) };
      try {
        const result = await command(args.slice(0, -1), large);
        if (!result) return await own(args, context);
        return name === "wc" ? { ...result, stdout: `${result.stdout} ${file}\n` } : result;
      } catch (error) {
        const words = /** @type {Error} */ (error).message;
        return { stdout: "", stderr: `${name}: ${file}: ${words}\n`, exitCode: 2 };
      }
    };
    bash.registerCommand({ name, execute });
  }
}
