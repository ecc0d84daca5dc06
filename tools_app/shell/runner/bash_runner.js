// @ts-check
/**
 * Runs one shell script over the files of a workspace, in a process without permissions. The protocol is that of the
 * sandbox' own runner: lines of JSON, bytes as base64 under `$bytes`.
 *
 * The script is no JavaScript and cannot reach any; the walls are the process all the same.
 *
 * @typedef {{ t: "run", source: string }} Run
 * @typedef {{ t: "ret", id: number, ok: boolean, value?: unknown, error?: { name: string, message: string } }} Reply
 * @typedef {{ entries: [string, number, number, number, string, boolean][], cwd: string, seconds: number, output: number,
 *   kept: number, environment: Record<string, string> }} Opened
 */

import "./no_process.js";
import "./bytes.js";
import { Bash } from "./dist/just_bash.js";
import { takeLargeFiles } from "./large_files.js";
import { WorkspaceFs } from "./workspace_fs.js";

const BYTES = "$bytes";
const TIMED_OUT = 124;
const encoder = new TextEncoder();
const decoder = new TextDecoder();
const { setTimeout } = globalThis;
/** @type {Map<number, { resolve: (value: any) => void, reject: (reason: unknown) => void }>} */
const waiting = new Map();
let lastId = 0;

/** @type {(key: string, value: unknown) => unknown} */
const packed = (_key, value) => value instanceof Uint8Array ? { [BYTES]: value.toBase64() } : value;
/** @type {(key: string, value: any) => unknown} */
const unpacked = (_key, value) => typeof value?.[BYTES] === "string" ? Uint8Array.fromBase64(value[BYTES]) : value;

/** @param {unknown} message */
function send(message) {
  const bytes = encoder.encode(JSON.stringify(message, packed) + "\n");
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** @param {string} name @param {unknown} [argument] @returns {Promise<any>} */
function call(name, argument) {
  return new Promise((resolve, reject) => {
    lastId += 1;
    waiting.set(lastId, { resolve, reject });
    send({ t: "call", id: lastId, name, args: argument === undefined ? [] : [argument] });
  });
}

const NOTICE_BYTES = 64;

/** The beginning and the end of an output, cut between characters, with the notice that other outputs have.
 * @param {string} text @param {number} most bytes */
function shortened(text, most) {
  const shown = text.toWellFormed();
  const bytes = encoder.encode(shown);
  if (bytes.length <= most) return shown;
  const room = most - NOTICE_BYTES;
  const tailBytes = Math.floor(room / 3);
  const head = decoder.decode(bytes.subarray(0, border(bytes, room - tailBytes)));
  const tail = decoder.decode(bytes.subarray(border(bytes, bytes.length - tailBytes)));
  return `${head}\n... [${shown.length - head.length - tail.length} characters truncated] ...\n${tail}`;
}

/** The place of the character that a byte belongs to. @param {Uint8Array} bytes @param {number} at */
function border(bytes, at) {
  while (at > 0 && (bytes[at] & 0xc0) === 0x80) at -= 1;
  return at;
}

/** What the interpreter says when the time is over, which this program says in its own words. */
const ABORTED = /^bash: .*(?:aborted|exceeded (?:its )?execution deadline.*)\n/gm;

/** What the interpreter says to those who embed it, which no script can follow. @param {string} text */
const forScripts = (text) => text.replaceAll(/, increase executionLimits\.\w+/g, "");

/** Names the reason where a command says of a file that is there that there is none. @param {string} text
 * @param {Map<string, string>} refused */
function withReasons(text, refused) {
  for (const [path, reason] of refused) {
    const name = path.slice(path.lastIndexOf("/") + 1);
    const words = reason.replace(/[:,] '?\/.*$/, "");
    text = text.replaceAll(`${name}: No such file or directory`, () => `${name}: ${words}`);
  }
  return text;
}

/** @param {Opened} opened */
function limits({ seconds }) {
  return {
    maxSourceBytes: 200_000,
    maxCommandCount: 100_000,
    maxLoopIterations: 100_000,
    maxAwkIterations: 1_000_000,
    maxSedIterations: 1_000_000,
    maxLiveBytes: 300_000_000,
    maxInputBytes: 500_000_000,
    maxStringLength: 70_000_000,
    maxOutputSize: 70_000_000,
    maxHeredocSize: 2_000_000,
    maxArrayElements: 200_000,
    maxFileDescriptors: 256,
    maxExecutionTimeMs: seconds * 1000,
  };
}

/** @param {string} script */
async function run(script) {
  try {
    /** @type {Opened} */
    const opened = await call("files.open");
    const fs = new WorkspaceFs(call, opened.entries, opened.kept);
    const { cwd, environment: env } = opened;
    const bash = new Bash({ fs, cwd, env, executionLimits: limits(opened), defenseInDepth: false });
    takeLargeFiles(bash, fs);
    const abort = new AbortController();
    const timer = setTimeout(() => abort.abort(), opened.seconds * 1000);
    const result = await bash.exec(script, { signal: abort.signal });
    clearTimeout(timer);
    const isLate = abort.signal.aborted || ABORTED.test(result.stderr);
    const stderr = withReasons(forScripts(result.stderr.replaceAll(ABORTED, "")), fs.refused);
    const late = isLate ? `bash: timed out after ${opened.seconds} seconds\n` : "";
    const value = {
      stdout: shortened(result.stdout, opened.output),
      stderr: shortened(stderr, opened.output - late.length) + late,
      exitCode: isLate ? TIMED_OUT : result.exitCode,
      missed: [...fs.missed],
    };
    send({ t: "done", ok: true, value });
  } catch (error) {
    const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
    send({ t: "done", ok: false, error: { name, message: message.toWellFormed(), stack: "" } });
  }
}

/** @param {Reply} reply */
function settle(reply) {
  const found = waiting.get(reply.id);
  waiting.delete(reply.id);
  if (reply.ok) return found?.resolve(reply.value);
  const message = reply.error?.message ?? "EIO: input or output error";
  found?.reject(Object.assign(new Error(message), { code: message.match(/^E[A-Z]+(?=:)/)?.[0] }));
}

globalThis.addEventListener("unhandledrejection", (event) => event.preventDefault());

send({ t: "ready" });
/** @type {string[]} */
let parts = [];
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = text.split("\n");
  for (const end of lines.slice(0, -1)) {
    const message = JSON.parse(parts.join("") + end, unpacked);
    parts = [];
    if (message.t === "run") run(message.source);
    else if (message.t === "ping") setTimeout(send, 0, { t: "pong" });
    else settle(message);
  }
  parts.push(lines[lines.length - 1]);
}
Deno.exit(0); // the parent is gone
