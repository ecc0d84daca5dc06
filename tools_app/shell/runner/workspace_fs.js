// @ts-check
/**
 * The file system of a shell script: the entries of a workspace, whose contents are fetched when they are read.
 *
 * Every change is reported to the parent first and made here when the parent has noted it, so that what was written before
 * the process ended is known there. Below some system directories new files are this process' own and are never reported.
 *
 * @typedef {{ kind: "file" | "directory" | "link", size: number, mtime: Date, mode: number, target: string,
 *   data: Uint8Array | null, fetching: Promise<void> | null, isGone: boolean, isStored: boolean, id: number, foreign: string,
 *   children: Map<string, Node> | null }} Node
 * @typedef {{ node: Node | null, parent: Node, name: string, path: string }} Place
 * @typedef {{ op: "write" | "append", path: string, data: Uint8Array } | { op: "mkdir" | "remove", path: string } |
 *   { op: "link", path: string, target: string }} Change
 * @typedef {(name: string, argument: unknown) => Promise<any>} Call
 */

import { decode, encode } from "./bytes.js";

/** @type {Node["kind"][]} */
const KINDS = ["file", "directory", "link"];
const MAX_LINKS = 40;
const SYSTEM = new Set(["bin", "dev", "proc", "sys", "tmp", "usr"]);
const MOUNT = "workspace";
const BATCH_FILES = 256;
const BATCH_BYTES = 1_000_000;
const REPORT_BYTES = 2_000_000;
const AHEAD_BYTES = 100_000;
const MAX_MISSED = 20;
const LARGE_BYTES = 1_000_000; // from here on files are read in pieces, and not changed

/** @param {string} code @param {string} reason @param {string} path */
function failure(code, reason, path) {
  return Object.assign(new Error(`${code}: ${reason}, '${path}'`), { code });
}
const missing = (/** @type {string} */ path) => failure("ENOENT", "no such file or directory", path);
const isDirectory = (/** @type {string} */ path) => failure("EISDIR", "illegal operation on a directory", path);
const exists = (/** @type {string} */ path) => failure("EEXIST", "file already exists", path);

/** @param {string} path */
export function normalise(path) {
  if (path.includes("\0")) throw failure("ENOENT", "path contains a null byte", path.replaceAll("\0", "?"));
  /** @type {string[]} */
  const names = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return "/" + names.join("/");
}

const join = (/** @type {string} */ directory, /** @type {string} */ name) =>
  directory === "/" ? `/${name}` : `${directory}/${name}`;
const isSystem = (/** @type {string} */ path) => SYSTEM.has(path.split("/", 2)[1]);

/** @param {string | Uint8Array} content @param {any} options */
function bytesOf(content, options) {
  if (typeof content !== "string") return content.slice();
  const encoding = typeof options === "string" ? options : options?.encoding;
  if (encoding === "binary" || encoding === "latin1" || encoding === "ascii") {
    return Uint8Array.from(content, (char) => char.charCodeAt(0));
  }
  if (encoding === "base64") return Uint8Array.fromBase64(content);
  if (encoding === "hex") return Uint8Array.fromHex(content);
  return encode(content);
}

/** @param {Uint8Array} data */
function latin1(data) {
  const parts = [];
  for (let at = 0; at < data.length; at += 8192) parts.push(String.fromCharCode(...data.subarray(at, at + 8192)));
  return parts.join("");
}

let lastId = 0;

/** @param {Node["kind"]} kind @param {Partial<Node>} fields @returns {Node} */
function made(kind, fields) {
  const mode = kind === "directory" ? 0o755 : kind === "link" ? 0o777 : 0o644;
  const children = kind === "directory" ? new Map() : null;
  const data = { data: null, fetching: null, isGone: false };
  return {
    kind,
    size: 0,
    mtime: new Date(),
    mode,
    target: "",
    ...data,
    isStored: true,
    foreign: "", // the path by which the parent knows it, of an entry whose name a stranger gave, until the parent knows that it was seen
    id: ++lastId,
    children,
    ...fields,
  };
}

export class WorkspaceFs {
  /** @param {Call} call @param {[string, number, number, number, string, boolean][]} entries sorted by path
   * @param {number} kept bytes of contents that are kept */
  constructor(call, entries, kept) {
    this.call = call;
    this.kept = kept;
    this.root = made("directory", {});
    /** @type {string[]} */
    this.order = []; // of the files, which are likely to be read in it
    this.window = 1;
    this.loadedBytes = 0;
    /** @type {Set<Node>} */
    this.loaded = new Set();
    /** @type {Set<string>} */
    this.missed = new Set(); // paths where nothing was
    /** @type {Map<string, string>} */
    this.refused = new Map(); // large files that could not be read, with the reason
    for (const [path, kind, size, mtime, target, isForeign] of entries) {
      const { parent, name } = this.spot(path);
      const node = made(KINDS[kind], { size, mtime: new Date(mtime), target, foreign: isForeign ? path : "" });
      parent.children?.set(name, node);
      if (kind === 0) this.order.push(path);
    }
    /** @type {Map<string, number>} */
    this.position = new Map(this.order.map((path, at) => [path, at]));
    /** @type {Set<string>} */
    this.hidden = new Set([...SYSTEM].filter((name) => !this.root.children?.has(name)));
    for (const name of this.hidden) this.root.children?.set(name, made("directory", { isStored: false }));
    if (!this.root.children?.has(MOUNT)) { // programs of a machine find the same files there
      this.hidden.add(MOUNT);
      this.root.children?.set(MOUNT, made("link", { target: "/", isStored: false }));
    }
  }

  /** The parent of a path whose directories are real ones, made where they are missing. @param {string} path */
  spot(path) {
    const names = path.slice(1).split("/");
    let parent = this.root;
    for (const name of names.slice(0, -1)) {
      let next = parent.children?.get(name);
      if (!next || next.kind !== "directory") parent.children?.set(name, next = made("directory", {}));
      parent = /** @type {Node} */ (next);
    }
    return { parent, name: names[names.length - 1] };
  }

  /** Follows the links of a path; the last one only where `follow`. @param {string} path @returns {Place} */
  place(path, follow = true) {
    let rest = normalise(path).split("/").slice(1).filter(Boolean);
    /** @type {{ name: string, node: Node }[]} */
    let above = [];
    let links = 0;
    while (rest.length) {
      const [name, ...after] = rest;
      const parent = above.at(-1)?.node ?? this.root;
      if (!parent.children) throw failure("ENOTDIR", "not a directory", path);
      if (name === "..") {
        above.pop();
        rest = after;
        continue;
      }
      const node = parent.children.get(name) ?? null;
      const here = "/" + [...above.map((each) => each.name), name].join("/");
      if (node?.kind === "link" && (follow || after.length)) {
        if (++links > MAX_LINKS) throw failure("ELOOP", "too many levels of symbolic links", path);
        if (node.target.startsWith("/")) above = [];
        rest = [...node.target.split("/").filter((part) => part && part !== "."), ...after];
        continue;
      }
      if (!after.length) return { node, parent, name, path: here };
      if (!node) throw this.miss(path);
      above.push({ name, node });
      rest = after;
    }
    const last = above.at(-1);
    const parent = above.at(-2)?.node ?? this.root;
    const real = "/" + above.map((each) => each.name).join("/");
    return { node: last?.node ?? this.root, parent, name: last?.name ?? "", path: real };
  }

  /** The error for a path where there is nothing, noted for the caller. @param {string} path */
  miss(path) {
    if (!isSystem(path) && this.missed.size < MAX_MISSED) this.missed.add(normalise(path));
    return missing(path);
  }

  /** @param {string} path @param {boolean} [follow] */
  existing(path, follow = true) {
    const found = this.place(path, follow);
    if (!found.node) throw this.miss(path);
    return /** @type {Place & { node: Node }} */ (found);
  }

  /** @param {string} path */
  directory(path) {
    const found = this.existing(path);
    if (!found.node.children) throw failure("ENOTDIR", "not a directory", path);
    return { ...found, children: found.node.children };
  }

  // --- Contents ---

  /** @param {Node} node @param {string} path @returns {Promise<Uint8Array>} */
  async content(node, path) {
    if (node.kind !== "file") throw isDirectory(path);
    while (node.data === null) { // what was fetched may be let go again before it is used
      await (node.fetching ?? this.load(node, path));
      if (node.isGone) throw missing(path);
    }
    return node.data;
  }

  /** Fetches a file, and after a few of them also those that come next. @param {Node} node @param {string} path */
  load(node, path) {
    if (node.size > LARGE_BYTES) return node.fetching = this.fetchLarge(node, path);
    const wanted = [{ node, path }];
    let bytes = node.size;
    const start = this.position.get(path);
    for (let at = (start ?? Infinity) + 1; at < this.order.length && wanted.length < this.window; at++) {
      const next = this.unread(this.order[at]);
      if (next && bytes + next.size > BATCH_BYTES) break;
      if (!next) continue;
      bytes += next.size;
      wanted.push({ node: next, path: this.order[at] });
    }
    this.window = Math.min(BATCH_FILES, this.window * 4);
    const fetching = this.fetch(wanted);
    for (const each of wanted) each.node.fetching = fetching;
    return fetching;
  }

  /** @param {{ node: Node, path: string }[]} wanted */
  async fetch(wanted) {
    try {
      /** @type {(Uint8Array | null)[]} */
      const contents = await this.call("files.read", wanted.map((each) => each.path));
      if (this.loadedBytes > this.kept) this.forget();
      wanted.forEach(({ node }, at) => this.arrived(node, contents[at]));
    } finally {
      for (const each of wanted) each.node.fetching = null;
    }
  }

  /** @param {Node} node @param {string} path */
  async fetchLarge(node, path) {
    try {
      if (this.loadedBytes + node.size > this.kept) this.forget();
      let at = 0;
      let piece = await this.piece(path, at, true);
      const data = new Uint8Array(node.size);
      while (piece.length && at < data.length) {
        data.set(piece.subarray(0, data.length - at), at);
        at += piece.length;
        if (at < data.length) piece = await this.piece(path, at, true);
      }
      this.arrived(node, data.subarray(0, Math.min(at, data.length)));
    } finally {
      node.fetching = null;
    }
  }

  /** Bytes of a large file from a place on; `isWhole` where all of them will be held at once.
   * @param {string} path @param {number} at @param {boolean} [isWhole] @returns {Promise<Uint8Array>} */
  async piece(path, at, isWhole = false) {
    try {
      return await this.call("files.piece", [path, at, isWhole]);
    } catch (error) {
      this.refused.set(path, /** @type {Error} */ (error).message);
      throw error;
    }
  }

  /** A large file that was not read whole; null for anything else. @param {string} path */
  large(path) {
    try {
      const { node, path: real } = this.existing(path);
      const isLarge = node.kind === "file" && node.data === null && node.size > LARGE_BYTES;
      return isLarge ? { path: real, size: node.size } : null;
    } catch {
      return null;
    }
  }

  /** Does something while a file of this process' own is there. @template T @param {string} path @param {Uint8Array} data
   * @param {() => Promise<T>} action @returns {Promise<T>} */
  async scratch(path, data, action) {
    const { parent, name } = this.own(path);
    parent.children?.set(name, made("file", { data, size: data.length, isStored: false }));
    try {
      return await action();
    } finally {
      parent.children?.delete(name);
    }
  }

  /** @param {Node} node @param {Uint8Array | null} data */
  arrived(node, data) {
    node.isGone = data === null;
    if (node.data !== null || data === null) return; // written meanwhile
    node.data = data;
    node.size = data.length;
    this.loaded.add(node);
    this.loadedBytes += data.length;
  }

  /** @param {string} path */
  unread(path) {
    try {
      const { node } = this.place(path, false);
      return node?.kind === "file" && node.data === null && !node.fetching && node.size <= AHEAD_BYTES ? node : null;
    } catch {
      return null; // its directory has become something else
    }
  }

  /** Lets go of contents that can be fetched again. */
  forget() {
    for (const node of this.loaded) node.data = null;
    this.loaded.clear();
    this.loadedBytes = 0;
  }

  /** @param {string} path */
  async readFileBuffer(path) {
    const { node, path: real } = this.existing(path);
    const data = await this.content(node, real);
    return data.length > LARGE_BYTES ? data : data.slice(); // one of a large file is enough; no command writes into it
  }

  /** @param {string} path @param {any} [options] */
  async readFile(path, options) {
    const data = await this.readFileBuffer(path);
    const encoding = typeof options === "string" ? options : options?.encoding;
    if (encoding === "binary" || encoding === "latin1" || encoding === "ascii") return latin1(data);
    if (encoding === "base64") return data.toBase64();
    return encoding === "hex" ? data.toHex() : decode(data);
  }

  /** @param {string} path */
  async readFileBytes(path) {
    return /** @type {any} */ (latin1(await this.readFileBuffer(path)));
  }

  // --- Changes ---

  /** Reports changes to the parent. @param {Change[]} changes */
  async report(changes) {
    /** @type {Change[]} */
    let batch = [];
    let bytes = 0;
    for (const change of changes) {
      if ("data" in change && change.data.length > LARGE_BYTES) {
        const error = failure("EFBIG", `file would be larger than ${LARGE_BYTES} bytes`, change.path);
        this.refused.set(change.path, error.message);
        throw error;
      }
      const size = 40 + change.path.length + ("data" in change ? change.data.length : 0);
      if (batch.length && bytes + size > REPORT_BYTES) {
        await this.call("files.change", batch);
        [batch, bytes] = [[], 0];
      }
      batch.push(change);
      bytes += size;
    }
    if (batch.length) await this.call("files.change", batch);
  }

  /** Whether the parent learns of what is made at a place. @param {Place} place */
  isReported({ node, parent, path }) {
    return node ? node.isStored : parent.isStored && !isSystem(path);
  }

  /** @param {Place} place @param {Uint8Array} data @param {Uint8Array | null} added */
  async put(place, data, added) {
    const isStored = this.isReported(place);
    /** @type {Change} */
    const change = added ? { op: "append", path: place.path, data: added } : { op: "write", path: place.path, data };
    if (isStored) await this.report([change]);
    const node = place.node ?? made("file", { isStored });
    this.loaded.delete(node); // it differs from what could be fetched
    Object.assign(node, { data, size: data.length, mtime: new Date() });
    place.parent.children?.set(place.name, node);
  }

  /**
   * The place of a file to be written. The directory of a redirection is made where it is missing: just-bash cannot
   * report a redirection that fails, it ends the script. It opens each by writing nothing.
   * @param {string} path @param {string | Uint8Array} content @param {any} options
   */
  async placeToWrite(path, content, options) {
    try {
      return this.place(path);
    } catch (error) {
      const isRedirection = content === "" && options === "binary";
      if (!isRedirection || /** @type {{ code?: string }} */ (error).code !== "ENOENT") throw error;
    }
    const whole = normalise(path);
    await this.mkdir(whole.slice(0, whole.lastIndexOf("/")) || "/", { recursive: true });
    return this.place(path);
  }

  /** @param {string} path @param {string | Uint8Array} content @param {any} [options] */
  async writeFile(path, content, options) {
    const place = await this.placeToWrite(path, content, options);
    if (place.node && place.node.kind !== "file") throw isDirectory(path);
    if (/^\/dev\/(null|zero|full|std(in|out|err))$/.test(place.path) && !place.node?.isStored) return;
    await this.put(place, bytesOf(content, options), null);
  }

  /** @param {string} path @param {string | Uint8Array} content @param {any} [options] */
  async appendFile(path, content, options) {
    const place = await this.placeToWrite(path, content, options);
    if (!place.node || place.path.startsWith("/dev/")) return await this.writeFile(path, content, options);
    const old = await this.content(place.node, place.path);
    const added = bytesOf(content, options);
    const data = new Uint8Array(old.length + added.length);
    data.set(old);
    data.set(added, old.length);
    const isOwn = !this.loaded.has(place.node); // then the parent has all of it already
    await this.put(place, data, isOwn ? added : null);
  }

  /** @param {string} path @param {{ recursive?: boolean }} [options] */
  async mkdir(path, options) {
    const whole = normalise(path);
    if (options?.recursive) {
      for (let at = whole.indexOf("/", 1); at > 0; at = whole.indexOf("/", at + 1)) {
        const above = whole.slice(0, at);
        if (this.place(above).node?.kind !== "directory") await this.mkdir(above);
      }
    }
    const place = this.place(path, Boolean(options?.recursive));
    if (place.node && (!options?.recursive || place.node.kind !== "directory")) throw exists(path);
    if (place.node) return;
    const isStored = this.isReported(place);
    if (isStored) await this.report([{ op: "mkdir", path: place.path }]);
    place.parent.children?.set(place.name, made("directory", { isStored }));
  }

  /** All at and below a node, each after its directory. @param {Node} node @param {string} path
   * @returns {Generator<[string, Node]>} */
  *below(node, path) {
    yield [path, node];
    for (const [name, child] of node.children ?? []) yield* this.below(child, join(path, name));
  }

  /** @param {string} path @param {{ recursive?: boolean, force?: boolean }} [options] */
  async rm(path, options) {
    let place;
    try {
      place = this.place(path, false);
    } catch (error) {
      if (options?.force && /** @type {{ code?: string }} */ (error).code === "ENOENT") return;
      throw error;
    }
    const { node } = place;
    if (!node && options?.force) return;
    if (!node) throw this.miss(path);
    if (node === this.root) throw failure("EPERM", "operation not permitted", path);
    if (node.children?.size && !options?.recursive) throw failure("ENOTEMPTY", "directory not empty", path);
    if (node.children?.size) await this.tell(this.below(node, path).map(([, each]) => each));
    await this.report(this.removals(place));
    place.parent.children?.delete(place.name);
  }

  /** @param {Place} place @returns {Change[]} */
  removals({ node, path }) {
    const inside = node ? [...this.below(node, path)] : [];
    return inside.filter(([, each]) => each.isStored).reverse().map(([each]) => ({ op: "remove", path: each }));
  }

  /** @param {string} source @param {string} target @param {{ recursive?: boolean }} [options] */
  async cp(source, target, options) {
    const from = this.existing(source);
    if (from.node.children && !options?.recursive) throw isDirectory(source);
    await this.copy(from, this.place(target));
  }

  /** @param {string} source @param {string} target */
  async mv(source, target) {
    const from = this.existing(source, false);
    const to = this.place(target, false);
    if (to.node === from.node) return;
    if (from.node === this.root) throw failure("EPERM", "operation not permitted", source);
    if (to.node?.children && (!from.node.children || to.node.children.size)) {
      throw failure(from.node.children ? "ENOTEMPTY" : "EISDIR", "cannot be replaced", target);
    }
    const isInto = to.path.startsWith(`${from.path}/`);
    if (isInto) throw failure("EINVAL", "cannot be moved into itself", target);
    // both are reported before anything is made here, so that a refusal leaves all as it was
    const removals = this.removals(from);
    await this.copy(from, to, removals);
    from.parent.children?.delete(from.name);
  }

  /** @param {Place & { node: Node }} from @param {Place} to @param {Change[]} afterwards */
  async copy(from, to, afterwards = []) {
    if (to.path === from.path || to.path.startsWith(`${from.path}/`)) {
      throw failure("EINVAL", "cannot be copied into itself", to.path);
    }
    const isStored = this.isReported(to);
    /** @type {Change[]} */
    const changes = to.node && to.node.kind !== from.node.kind ? this.removals(to) : [];
    /** @type {Map<string, Node>} */
    const copies = new Map();
    if (from.node.children?.size) await this.tell(this.below(from.node, from.path).map(([, each]) => each));
    for (const [path, node] of [...this.below(from.node, from.path)]) {
      const there = to.path + path.slice(from.path.length);
      const data = node.kind === "file" ? await this.content(node, path) : null;
      copies.set(there, made(node.kind, { mode: node.mode, target: node.target, size: node.size, data, isStored }));
      if (node.kind === "file") changes.push({ op: "write", path: there, data: /** @type {Uint8Array} */ (data) });
      else if (node.kind === "link") changes.push({ op: "link", path: there, target: node.target });
      else changes.push({ op: "mkdir", path: there });
    }
    await this.report([...(isStored ? changes : []), ...afterwards]);
    if (to.node && to.node.kind !== from.node.kind) to.parent.children?.delete(to.name);
    for (const [path, node] of copies) {
      const { parent, name } = this.spot(path);
      const old = parent.children?.get(name);
      if (old) this.loaded.delete(old);
      if (!(node.children && old?.children)) parent.children?.set(name, node);
    }
  }

  /** @param {string} target @param {string} path */
  async symlink(target, path) {
    const place = this.place(path, false);
    if (place.node) throw exists(path);
    const isStored = this.isReported(place);
    if (isStored) await this.report([{ op: "link", path: place.path, target }]);
    place.parent.children?.set(place.name, made("link", { target, size: encode(target).length, isStored }));
  }

  /** Two names of one file are a copy here. @param {string} old @param {string} path */
  async link(old, path) {
    const from = this.existing(old);
    if (from.node.children) throw failure("EPERM", "operation not permitted", old);
    const to = this.place(path, false);
    if (to.node) throw exists(path);
    await this.copy(from, to);
  }

  // --- What there is ---

  /** Tells the parent which names of strangers the script gets to see, each once. @param {Iterable<Node>} nodes */
  async tell(nodes) {
    const seen = [...nodes].filter((node) => node.foreign);
    if (!seen.length) return;
    await this.call("files.named", seen.map((node) => node.foreign));
    for (const node of seen) node.foreign = "";
  }

  /** @param {string} path */
  async exists(path) {
    try {
      return this.place(path).node !== null;
    } catch {
      return false;
    }
  }

  /** @param {string} path @param {boolean} [follow] */
  async stat(path, follow = true) {
    const { node } = this.existing(path, follow);
    return {
      isFile: node.kind === "file",
      isDirectory: node.kind === "directory",
      isSymbolicLink: node.kind === "link",
      mode: node.mode,
      size: node.size,
      mtime: node.mtime,
      identity: String(node.id),
    };
  }

  /** @param {string} path */
  async lstat(path) {
    return await this.stat(path, false);
  }

  /** @param {string} path */
  async readdirWithFileTypes(path) {
    const { node, children } = this.directory(path);
    await this.tell(children.values());
    const names = [...children.keys()].filter((name) => node !== this.root || !this.hidden.has(name)).sort();
    return names.map((name) => {
      const kind = children.get(name)?.kind;
      return {
        name,
        isFile: kind === "file",
        isDirectory: kind === "directory",
        isSymbolicLink: kind === "link",
      };
    });
  }

  /** @param {string} path */
  async readdir(path) {
    return (await this.readdirWithFileTypes(path)).map((each) => each.name);
  }

  /** @param {string} path */
  async readlink(path) {
    const { node } = this.existing(path, false);
    if (node.kind !== "link") throw failure("EINVAL", "not a symbolic link", path);
    await this.tell([node]);
    return node.target;
  }

  /** @param {string} path */
  async realpath(path) {
    const { node, path: real } = this.existing(path);
    if (real !== normalise(path)) await this.tell([node]);
    return real;
  }

  /** @param {string} path @param {number} mode */
  async chmod(path, mode) {
    this.existing(path).node.mode = mode;
  }

  /** @param {string} path @param {Date} _atime @param {Date} mtime */
  async utimes(path, _atime, mtime) {
    this.existing(path).node.mtime = mtime;
  }

  /** @param {string} base @param {string} path */
  resolvePath(base, path) {
    return normalise(path.startsWith("/") ? path : `${base}/${path}`);
  }

  /** @returns {string[]} */
  getAllPaths() {
    return [];
  }

  // --- For just-bash itself, which puts its own files into the system directories ---

  /** @param {string} path */
  mkdirSync(path) {
    const { parent, name } = this.own(path);
    if (name && !parent.children?.has(name)) parent.children?.set(name, made("directory", { isStored: false }));
  }

  /** @param {string} path @param {string | Uint8Array} content */
  writeFileSync(path, content) {
    const { parent, name } = this.own(path);
    const data = bytesOf(content, undefined);
    if (!parent.children?.has(name)) {
      parent.children?.set(name, made("file", { data, size: data.length, mode: 0o755, isStored: false }));
    }
  }

  /** @param {string} path */
  own(path) {
    const names = normalise(path).slice(1).split("/");
    let parent = this.root;
    for (const name of names.slice(0, -1)) {
      let next = parent.children?.get(name);
      if (!next) parent.children?.set(name, next = made("directory", { isStored: false }));
      parent = /** @type {Node} */ (next);
      if (!parent.children) break;
    }
    return { parent, name: names[names.length - 1] };
  }
}
