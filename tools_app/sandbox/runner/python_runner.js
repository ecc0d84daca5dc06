// @ts-check
/**
 * Runs one Python script in Pyodide, in a process that may read Pyodide's own files and nothing else, and no file at
 * all once the script begins. The protocol is that of `runner.js`; files go in with the script, and those that it
 * changed come out as calls `files.write` and `files.remove` at the end.
 *
 * As there, nothing here protects: Python reaches JavaScript (`import js`). The walls are the process.
 *
 * @typedef {{ t: "run", source: string, files: Record<string, string> }} Run
 */

const ROOT = "/workspace";
const MAX_LOG_CHARS = 100_000;
const [folder] = Deno.args;
const encoder = new TextEncoder();
let lastId = 0;
/** @type {Map<number, () => void>} */
const waiting = new Map();

/** @param {unknown} message */
function send(message) {
  const bytes = encoder.encode(JSON.stringify(message) + "\n");
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** @param {string} name @param {unknown} argument @returns {Promise<void>} */
function call(name, argument) {
  return new Promise((resolve) => {
    lastId += 1;
    waiting.set(lastId, resolve);
    send({ t: "call", id: lastId, name, args: [argument] });
  });
}

/** @param {string} level */
const logger = (level) => (/** @type {string} */ text) => send({ t: "log", level, text: text.slice(0, MAX_LOG_CHARS) });

const { loadPyodide } = await import(`file://${folder}/pyodide.mjs`);
const python = await loadPyodide({ indexURL: `${folder}/`, stdout: logger("log"), stderr: logger("error") });
await Deno.permissions.revoke({ name: "read" });

/** Every file below the root, as base64 by its path there. @param {string} path @param {Record<string, string>} found */
function collect(path, found) {
  for (const name of python.FS.readdir(path)) {
    if (name === "." || name === "..") continue;
    const below = `${path}/${name}`;
    const { mode } = python.FS.lstat(below);
    if (python.FS.isDir(mode)) collect(below, found);
    else if (python.FS.isFile(mode)) found[below.slice(ROOT.length)] = python.FS.readFile(below).toBase64();
  }
  return found;
}

/** @param {Record<string, string>} files */
function place(files) {
  python.FS.mkdirTree(ROOT);
  for (const [path, content] of Object.entries(files)) {
    python.FS.mkdirTree(`${ROOT}${path.slice(0, path.lastIndexOf("/"))}`);
    python.FS.writeFile(`${ROOT}${path}`, Uint8Array.fromBase64(content));
  }
  python.FS.chdir(ROOT);
}

const TO_JSON = `
import json as _json
def _to_json(value):
    try:
        return _json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return _json.dumps(repr(value))
_to_json`;

/** @param {Run} message */
async function run(message) {
  try {
    place(message.files);
    const value = await python.runPythonAsync(message.source);
    const text = python.runPython(TO_JSON)(value);
    const after = collect(ROOT, {});
    const changed = Object.keys(after).filter((path) => after[path] !== message.files[path]);
    const gone = Object.keys(message.files).filter((path) => !Object.hasOwn(after, path));
    await Promise.all([
      ...changed.map((path) => call("files.write", { path, content: { $bytes: after[path] } })),
      ...gone.map((path) => call("files.remove", { path })),
    ]);
    send({ t: "done", ok: true, value: JSON.parse(text) });
  } catch (error) {
    const { name, message: text } = /** @type {any} */ (error);
    const lines = String(text).trim().split("\n");
    const shown = lines.filter((line) => !line.includes('File "/lib/python')).join("\n");
    send({ t: "done", ok: false, error: { name: String(name), message: lines.at(-1), stack: shown } });
  }
}

send({ t: "ready" });
let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const message = JSON.parse(line);
    if (message.t === "run") run(message);
    else if (message.t === "ping") setTimeout(send, 0, { t: "pong" });
    else waiting.get(message.id)?.();
  }
}
Deno.exit(0); // the parent is gone
