// @ts-check
/**
 * Runs one script in a process without permissions. Lines of JSON come in on stdin and go out on stdout.
 *
 * This file is trusted, and yet protects nothing: the script shares its globals, so it can say anything that this file
 * can. The walls are the process and its parent, which believes no line. It is JavaScript, typed by its comments: to
 * start with TypeScript takes Deno 150 ms where it has no cache.
 *
 * @typedef {{ name: string, message: string, stack: string }} Failure
 * @typedef {{ t: "ret", id: number, now: number, ok: boolean, value?: unknown, error?: { name: string, message: string } }} Reply
 * @typedef {{ t: "run", source: string, language: "javascript" | "typescript", namespaces: string[],
 *   modules: Record<string, string>, seed: string, now: number }} Run
 */

const MAX_LOG_CHARS = 100_000;
const BYTES = "$bytes";
const encoder = new TextEncoder();
/** @type {Map<number, { resolve: (value: unknown) => void, reject: (reason: unknown) => void }>} */
const waiting = new Map();
const { setTimeout } = globalThis;
let lastId = 0;
let clock = 0;

/** Bytes travel as base64 under a key of their own, in both directions. @type {(key: string, value: unknown) => unknown} */
const packed = (_key, value) => value instanceof Uint8Array ? { [BYTES]: value.toBase64() } : value;
/** @type {(key: string, value: any) => unknown} */
const unpacked = (_key, value) => typeof value?.[BYTES] === "string" ? Uint8Array.fromBase64(value[BYTES]) : value;

/** Blocks while the parent does not read: a flood of output slows its author down. @param {unknown} message */
function send(message) {
  const bytes = encoder.encode(JSON.stringify(message, packed) + "\n");
  for (let sent = 0; sent < bytes.length;) sent += Deno.stdout.writeSync(bytes.subarray(sent));
}

/** @param {string} name @param {unknown[]} args */
function call(name, args) {
  return new Promise((resolve, reject) => {
    lastId += 1;
    send({ t: "call", id: lastId, name, args });
    waiting.set(lastId, { resolve, reject });
  });
}

/**
 * Every path below a namespace is a function. `then` is none, or awaiting the namespace itself would call it.
 * @param {string} path
 * @returns {unknown}
 */
function namespace(path) {
  return new Proxy(function () {}, {
    get: (_target, key) => typeof key === "symbol" || key === "then" ? undefined : namespace(`${path}.${key}`),
    apply: (_target, _self, args) => call(path, args),
  });
}

function setUpConsole() {
  const levels = { log: "log", info: "info", warn: "warn", error: "error", debug: "debug", dir: "log", table: "log" };
  for (const [method, level] of Object.entries(levels)) {
    /** @type {any} */ (console)[method] = (/** @type {unknown[]} */ ...items) => {
      const words = items.map((item) => typeof item === "string" ? item : Deno.inspect(item, { depth: 6 }));
      send({ t: "log", level, text: words.join(" ").slice(0, MAX_LOG_CHARS) });
    };
  }
}

/** A generator (sfc32) that gives the same numbers for the same text. @param {string} seed */
function generator(seed) {
  const state = new Uint32Array(4);
  for (let i = 0; i < seed.length; i++) state[i % 4] = Math.imul(state[i % 4] ^ seed.charCodeAt(i), 0x9e3779b1) + i;
  const next = () => {
    const sum = (state[0] + state[1] + state[3]) >>> 0;
    state[3] += 1;
    state[0] = state[1] ^ (state[1] >>> 9);
    state[1] = state[2] + (state[2] << 3);
    state[2] = ((state[2] << 21) | (state[2] >>> 11)) + sum;
    return sum;
  };
  for (let i = 0; i < 16; i++) next();
  return next;
}

/**
 * Time goes on by one millisecond with each look at it, and to the time of each reply: the same in every run.
 * @param {string} seed
 * @param {number} now
 */
function setUpDeterminism(seed, now) {
  const random = generator(seed);
  const RealDate = Date;
  clock = now;
  const read = () => ++clock;
  globalThis.Date = new Proxy(RealDate, {
    construct: (target, args, newTarget) => Reflect.construct(target, args.length ? args : [read()], newTarget),
    apply: () => new RealDate(read()).toString(),
    get: (target, key, receiver) => key === "now" ? read : Reflect.get(target, key, receiver),
  });
  performance.now = () => read() - now;
  setUpTemporal(read);
  Math.random = () => random() / 0x100000000;
  crypto.getRandomValues = (array) => {
    if (array === null) throw new TypeError("An array is expected");
    const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
    for (let i = 0; i < bytes.length; i++) bytes[i] = random();
    return array;
  };
  crypto.randomUUID = () => {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    bytes[6] = (bytes[6] & 0x0f) | 0x40;
    bytes[8] = (bytes[8] & 0x3f) | 0x80;
    const hex = bytes.toHex();
    return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
  };
}

/** @param {() => number} read */
function setUpTemporal(read) {
  const instant = () => Temporal.Instant.fromEpochMilliseconds(read());
  /** @param {Temporal.TimeZoneLike} zone */
  const zoned = (zone = "UTC") => instant().toZonedDateTimeISO(zone);
  Object.assign(Temporal.Now, {
    instant,
    timeZoneId: () => "UTC",
    zonedDateTimeISO: zoned,
    plainDateTimeISO: (/** @type {Temporal.TimeZoneLike} */ zone) => zoned(zone).toPlainDateTime(),
    plainDateISO: (/** @type {Temporal.TimeZoneLike} */ zone) => zoned(zone).toPlainDate(),
    plainTimeISO: (/** @type {Temporal.TimeZoneLike} */ zone) => zoned(zone).toPlainTime(),
  });
}

/** @param {string} language @param {string} source */
function asUrl(language, source) {
  // parentheses too, so that it ends where it ends in the lines of a stack
  const text = encodeURIComponent(source).replaceAll("(", "%28").replaceAll(")", "%29");
  return `data:application/${language};charset=utf-8,${text}`;
}

/**
 * JavaScript is tried first, as most scripts are, and the type stripper takes 40 ms to load. What it refuses goes to
 * Deno's own compiler, for the better message.
 * @param {string} source
 * @param {string} language
 * @returns {Promise<() => unknown>}
 */
async function compiled(source, language) {
  try {
    return (await import(asUrl("javascript", source))).default;
  } catch (error) {
    if (language !== "typescript") throw error; // a parser's error has several types
  }
  let plain = "";
  try {
    const { stripTypeScriptTypes } = await import("node:module");
    plain = stripTypeScriptTypes(source, { mode: "transform" });
  } catch {
    return (await import(asUrl("typescript", source))).default;
  }
  return (await import(asUrl("javascript", plain))).default;
}

/** @param {unknown} error @returns {Failure} */
function describe(error) {
  /** @param {string} text */
  const clean = (text) => {
    const lines = text.replaceAll(/data:application\/[^\s:)]*/g, "<code>").split("\n");
    return lines.filter((line) => !line.includes(import.meta.url)).join("\n").slice(0, MAX_LOG_CHARS);
  };
  if (error instanceof Error) {
    return { name: String(error.name), message: clean(String(error.message)), stack: clean(String(error.stack ?? "")) };
  }
  return { name: "Error", message: clean(typeof error === "string" ? error : Deno.inspect(error)), stack: "" };
}

/** @param {Run} message */
async function run(message) {
  try {
    setUpConsole();
    setUpDeterminism(message.seed, message.now);
    const scope = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (globalThis));
    for (const name of message.namespaces) scope[name] = namespace(name);
    scope.load = async (/** @type {string} */ name) => {
      if (!Object.hasOwn(message.modules, name)) throw new Error(`There is no package "${name}" here`);
      return await import(asUrl(name.endsWith(".ts") ? "typescript" : "javascript", message.modules[name]));
    };
    const script = await compiled(`export default (${message.source}\n);`, message.language);
    const value = await script();
    send({ t: "done", ok: true, value: value === undefined ? null : value });
  } catch (error) {
    send({ t: "done", ok: false, error: describe(error) });
  }
}

/** @param {Reply} reply */
function settle(reply) {
  const found = waiting.get(reply.id);
  waiting.delete(reply.id);
  clock = Math.max(clock, reply.now);
  if (reply.ok) return found?.resolve(reply.value);
  const error = new Error(reply.error?.message);
  error.name = reply.error?.name ?? "Error";
  found?.reject(error);
}

// A promise that is not awaited is no reason to end: what the script returns counts.
globalThis.addEventListener("unhandledrejection", (event) => {
  event.preventDefault();
  console.error("Uncaught (in promise)", event.reason);
});

send({ t: "ready" });
let rest = "";
for await (const text of Deno.stdin.readable.pipeThrough(new TextDecoderStream())) {
  const lines = (rest + text).split("\n");
  rest = lines.pop() ?? "";
  for (const line of lines) {
    const message = JSON.parse(line, unpacked);
    if (message.t === "run") run(message);
    else if (message.t === "ping") setTimeout(send, 0, { t: "pong" }); // once the script can do no more by itself
    else settle(message);
  }
}
Deno.exit(0); // the parent is gone
