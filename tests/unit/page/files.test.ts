/// <reference lib="deno.ns" />
// The tree of files, their texts, and uploads, with a server that is a map. Run by test_pure_modules.py.

import { ApiError } from "../../../static/src/app/net/api.ts";
import type { Expected, FileEntry, FilesApi } from "../../../static/src/app/net/files_api.ts";
import { FileText } from "../../../static/src/app/store/file_text.ts";
import { FileTree, joined, parentOf } from "../../../static/src/app/store/file_tree.ts";
import { FileUploads } from "../../../static/src/app/store/file_uploads.ts";
import { same } from "./making.ts";

const bytesOf = (content: string | Uint8Array) =>
  typeof content === "string" ? new TextEncoder().encode(content) : content;

/** What the panel asks of a server, answered from contents by path. */
function serving(contents: Map<string, string | Uint8Array>): FilesApi {
  const entryAt = (path: string): FileEntry => {
    const content = contents.get(path);
    const kind = content === undefined ? "directory" : "file";
    const size = content === undefined ? 0 : bytesOf(content).length;
    return { path, name: path.slice(path.lastIndexOf("/") + 1), kind, size, version: "1" } as FileEntry;
  };
  const inside = (directory: string) => {
    const below = directory === "/" ? "/" : `${directory}/`;
    const found = [...contents.keys()].filter((path) => path.startsWith(below));
    const names = new Set(found.map((path) => path.slice(below.length).split("/")[0]));
    return [...names].sort().map((name) => entryAt(`${below}${name}`));
  };
  const api = {
    totals: () => Promise.resolve({ can_write: true, file_count: contents.size }),
    children: (path: string, limit: number, offset: number) => {
      const all = inside(path);
      return Promise.resolve({ path, items: all.slice(offset, offset + limit), has_more: all.length > offset + limit });
    },
    entry: (path: string) => Promise.resolve(entryAt(path)),
    read: (path: string, start: number, most: number) => {
      const bytes = bytesOf(contents.get(path)!);
      return Promise.resolve({ bytes: bytes.slice(start, start + most), isEnd: start + most >= bytes.length });
    },
    text: (path: string) => {
      const bytes = bytesOf(contents.get(path)!);
      const name = bytes[0] === 0xff ? "utf-16le" : bytes[0] === 0xef ? "utf-8" : "windows-1252";
      const text = new TextDecoder(name).decode(bytes);
      return Promise.resolve({
        path,
        version: "1",
        text,
        encoding: `${name}, they say`,
        can_be_saved: !path.includes("odd"),
      });
    },
    write: async (path: string, content: Blob, expected: Expected) => {
      if (expected === "" && contents.has(path)) {
        throw new ApiError("refused", "changed", { status: 409, code: "file_conflict" });
      }
      if (path.includes("full")) throw new ApiError("refused", "no room left", { status: 409, code: "file_failed" });
      contents.set(path, await content.text());
      return entryAt(path);
    },
  };
  return api as unknown as FilesApi;
}

const shown = (tree: FileTree) => tree.rows.map((row) => `${row.kind} ${row.path} ${row.level}`);

Deno.test("a tree shows what was opened, and what is there now", async () => {
  const contents = new Map([["/a/b/c.txt", "c"], ["/a/d.txt", "d"], ["/e.txt", "e"]]);
  const tree = new FileTree(serving(contents));
  await tree.read();
  same(shown(tree), ["entry /a 1", "entry /e.txt 1"]);
  await tree.toggle("/a");
  same(shown(tree), ["entry /a 1", "entry /a/b 2", "entry /a/d.txt 2", "entry /e.txt 1"]);
  contents.delete("/a/d.txt");
  contents.set("/f.txt", "f");
  await tree.read();
  same(shown(tree), ["entry /a 1", "entry /a/b 2", "entry /e.txt 1", "entry /f.txt 1"]);
  await tree.toggle("/a");
  same(shown(tree).length, 3);
  await tree.reveal("/a/b/c.txt");
  same(shown(tree).slice(0, 3), ["entry /a 1", "entry /a/b 2", "entry /a/b/c.txt 3"]);
});

Deno.test("a long directory is read in pages, and its length is unknown until its end", async () => {
  const names = Array.from({ length: 250 }, (_, at) => `/${String(at).padStart(3, "0")}`);
  const tree = new FileTree(serving(new Map(names.map((name) => [name, ""]))));
  await tree.read();
  same([tree.rows.length, tree.rows[200].kind, tree.rows[0].size], [201, "more", -1]);
  await tree.more("/");
  same([tree.rows.length, tree.rows[249].kind, tree.rows[0].size], [250, "entry", 250]);
  await tree.read(); // what was read stays in sight
  same(tree.rows.length, 250);
});

Deno.test("paths are put together and taken apart", () => {
  same([parentOf("/a/b"), parentOf("/a"), joined("/", "x"), joined("/a", "x")], ["/a", "/", "/x", "/a/x"]);
});

Deno.test("a text is read in pieces, whatever a piece ends with", async () => {
  const text = "ä".repeat(600_000); // two bytes each: a piece of a million ends within one
  const api = serving(
    new Map<string, string | Uint8Array>([["/t", `x${text}`], ["/b", new Uint8Array([1, 255])], ["/e", ""]]),
  );
  const first = await FileText.open(api, await api.entry("/t"));
  same([first.isWhole, first.text?.length], [false, 500_000]); // the one that was cut comes with the next piece
  const whole = await first.more(api);
  same([whole.isWhole, whole.text === `x${text}`], [true, true]);
  same((await FileText.open(api, await api.entry("/b"))).text, null);
  same((await FileText.open(api, await api.entry("/e"))).text, "");
});

Deno.test("texts in other encodings come from the server, which says what they are and whether it can keep them", async () => {
  const utf16 = new Uint8Array([0xff, 0xfe, 0x47, 0, 0xf6, 0]); // Gö
  const western = new Uint8Array([0x4d, 0xfc, 0x6c, 0x6c, 0x65, 0x72]); // Müller
  const marked = new Uint8Array([0xef, 0xbb, 0xbf, 0x41]); // A
  const contents = new Map<string, string | Uint8Array>([
    ["/u", utf16],
    ["/w", western],
    ["/odd", western],
    ["/m", marked],
    ["/p", "plain"],
  ]);
  const api = serving(contents);
  const found = [];
  for (const path of contents.keys()) {
    const entry = { ...await api.entry(path), media_type: "text/plain" };
    const { text, encoding, canBeSaved } = await FileText.open(api, entry);
    found.push([text, encoding, canBeSaved]);
  }
  same(found, [
    ["Gö", "utf-16le, they say", true],
    ["Müller", "windows-1252, they say", true],
    ["Müller", "windows-1252, they say", false],
    ["A", "utf-8, they say", true],
    ["plain", "", true],
  ]);
  const unknown = { ...await api.entry("/w"), media_type: "application/octet-stream" };
  same((await FileText.open(api, unknown)).text, null);
});

Deno.test("the ends of lines are told apart", async () => {
  const contents = { "/lf": "a\nb", "/crlf": "a\r\nb\r\n", "/both": "a\r\nb\n", "/cr": "a\rb" };
  const api = serving(new Map(Object.entries(contents)));
  const found = [];
  for (const path of Object.keys(contents)) {
    const file = await FileText.open(api, await api.entry(path));
    found.push([file.hasCrLf, file.hasMixedEnds]);
  }
  same(found, [[false, false], [true, false], [false, true], [false, true]]);
});

Deno.test("an upload replaces only what the person lets it replace, and a failure stays", async () => {
  const contents = new Map([["/a", "old"], ["/b", "old"], ["/c", "old"]]);
  const asked: string[] = [];
  const uploads = new FileUploads(serving(contents), (name, areMore) => {
    asked.push(`${name} ${areMore}`);
    return Promise.resolve({ replaces: name !== "a", isForAll: name === "b" });
  }, () => undefined);
  const files = ["a", "b", "c", "new", "full"].map((name) => new File(["new"], name));
  same(await uploads.add(files, "/"), 3);
  same(asked, ["a true", "b true"]);
  same([...contents], [["/a", "old"], ["/b", "new"], ["/c", "new"], ["/new", "new"]]);
  same(uploads.items.map(({ name, state, error }) => [name, state, error]), [["full", "failed", "no room left"]]);
  uploads.remove(uploads.items[0].id);
  same(uploads.items, []);
});

Deno.test("a file that is too large is not sent, and the limit is said", async () => {
  const contents = new Map<string, string>();
  const ask = () => Promise.resolve({ replaces: false, isForAll: false });
  const uploads = new FileUploads(serving(contents), ask, () => 2_500_000);
  const files = [new File(["x".repeat(2_500_001)], "large"), new File(["x".repeat(2_500_000)], "as large as may be")];
  same(await uploads.add(files, "/"), 1);
  same([...contents.keys()], ["/as large as may be"]);
  const [left] = uploads.items;
  same([left.name, left.state], ["large", "failed"]);
  same(left.error.startsWith("It has 2.5 MB, and a file here may have 2.5 MB."), true);
});
