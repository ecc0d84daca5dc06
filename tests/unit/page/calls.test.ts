/// <reference lib="deno.ns" />
// How calls of tools and their results are read. Run by test_pure_modules.py.

import { diffLines } from "../../../static/src/app/lib/diff.ts";
import { languageOf } from "../../../static/src/app/lib/language_of.ts";
import { lineDiff } from "../../../static/src/app/lib/line_diff.ts";
import { fileText, terminalText, withoutTricks } from "../../../static/src/app/lib/readable.ts";
import { browserVisit, isBrowserCall, isWebAddress } from "../../../static/src/app/store/browser_calls.ts";
import {
  codeRun,
  errorIn,
  fetched,
  hitsIn,
  listing,
  matchesIn,
  readText,
  terminalRun,
  textAndValue,
} from "../../../static/src/app/store/call_results.ts";
import { detailsOf } from "../../../static/src/app/store/tool_details.ts";
import { kindOf, normalised, pathOf } from "../../../static/src/app/store/tool_kinds.ts";
import { hintOf, titleOfTool } from "../../../static/src/app/store/tool_words.ts";
import type { Chunk } from "../../../static/src/app/net/frames.ts";
import { fromItem, type RawMessage } from "../../../static/src/app/store/path.ts";
import { TurnStream } from "../../../static/src/app/store/stream.ts";
import type { ToolPart } from "../../../static/src/app/lib/parts.ts";
import { same } from "./making.ts";

let made = 0;
const call = (toolName: string, input: unknown, output?: unknown, more: Partial<ToolPart> = {}): ToolPart => ({
  type: `tool-${toolName}`,
  toolCallId: `c${++made}`,
  state: output === undefined ? "input-available" : "output-available",
  input,
  output,
  ...more,
});
const kinds = (...calls: [string, unknown][]) => calls.map(([name, input]) => kindOf(call(name, input)));

Deno.test("a call is of a kind by its tool's name and its arguments", () => {
  same(kinds(["read", { path: "/a" }], ["read_file", { file_path: "a" }], ["readFile", { path: "a" }]), [
    "read",
    "read",
    "read",
  ]);
  same(kinds(["bash", { script: "ls" }], ["bash", { command: "ls" }], ["fetch_page", { url: "https://a" }]), [
    "bash",
    "bash",
    "fetch",
  ]);
  same(kinds(["list", {}], ["find", { pattern: "*" }], ["grep", { query: "a" }], ["execute", { code: "1" }]), [
    "list",
    "find",
    "grep",
    "execute",
  ]);
  same(kinds(["read", { sensor: 3 }], ["write", "text"], ["weather", { path: "/a" }], ["bash", undefined]), [
    null,
    null,
    null,
    null,
  ]);
});

Deno.test("people read the tool's own words, else those of its kind, else its name in words", () => {
  same(titleOfTool(call("bash", { script: "ls" })), "Terminal");
  same(titleOfTool(call("bash", { script: "ls" }, undefined, { title: "Shell" })), "Shell");
  same(titleOfTool(call("search_orders", { text: "ls" })), "Search orders");
  const reports = call("bash", { script: "make" }, undefined, { toolMetadata: { think: { title: "Building" } } });
  same(hintOf(reports), "Building");
});

Deno.test("what a running call tells is shown until its result says what it said last", () => {
  const stream = new TurnStream("r");
  const message = fromItem({ id: "a", role: "assistant", parts: [] } as unknown as RawMessage);
  const take = (chunk: unknown) => stream.take(chunk as Chunk, undefined, () => message);
  const told = () => [hintOf(message.parts[0] as ToolPart), detailsOf(message.parts[0] as ToolPart).metadata];
  take({ type: "start", messageId: "a" });
  take({ type: "tool-input-available", toolCallId: "c", toolName: "walk", input: { far: 3 } });
  const progress = { toolCallId: "c", title: "Half", metadata: { steps: 1 } };
  same(take({ type: "data-think-progress", data: progress, transient: true }), "applied");
  same(told(), ["Half", { steps: 1 }]);
  same(take({ type: "data-think-progress", data: { ...progress, toolCallId: "other" }, transient: true }), "ignored");
  take({ type: "tool-output-available", toolCallId: "c", output: 1, toolMetadata: { think: { title: "All" } } });
  same(told(), ["All", {}]);
  same(take({ type: "data-think-progress", data: progress, transient: true }), "ignored");
  same(told(), ["All", {}]);
});

Deno.test("paths are those of the workspace", () => {
  same(["a/b", "/a/../b", "./x//y/", "../../etc"].map(normalised), ["/a/b", "/b", "/x/y", "/etc"]);
  same([pathOf(call("read", { file_path: "a.txt" })), pathOf(call("read", {}))], ["/a.txt", ""]);
});

Deno.test("details of a call hold nothing of the wrong shape", () => {
  same(detailsOf(call("x", {}, 1, { toolMetadata: { think: { attachments: "no", whole: 3, metadata: [] } } })), {
    title: "",
    metadata: {},
    files: [],
    whole: null,
  });
  const whole = { id: "f", url: "/files/f", bytes: 12, lines: 3, next: 2 };
  const { files, whole: found } = detailsOf(
    call("x", {}, 1, {
      toolMetadata: { think: { attachments: [{ url: "/files/a", mediaType: "image/png" }], whole } },
    }),
  );
  same([files[0].url, files[0].mediaType, found], ["/files/a", "image/png", { url: "/files/f", bytes: 12, lines: 3 }]);
});

Deno.test("numbers for the model are taken from the lines of a file", () => {
  const read = readText(
    call("read", { path: "/a.py" }, { content: "9\tdef f():\n10\t    return 1\t# tab", totalLines: 20 }),
  );
  same(read, { path: "/a.py", text: "def f():\n    return 1\t# tab", firstLine: 9, totalLines: 20 });
  same(readText(call("read", { path: "/a" }, { content: "plain" }))?.firstLine, 1);
  same(readText(call("read", { path: "/a" }, { kind: "image" })), null);
});

Deno.test("listings are names and sizes", () => {
  same(listing({ entries: ["src/", "a (b).txt (1.2 KB)"] }), [
    { name: "src/", size: "", isDirectory: true },
    { name: "a (b).txt", size: "1.2 KB", isDirectory: false },
  ]);
  same(listing({ entries: [{ name: "x" }] }), null);
});

Deno.test("matches are grouped by file, with the lines around them", () => {
  const output = {
    matches: ["/a.py:3: x = 1", "/b:1: x", { file: "/a.py", line: 9, context: "  8\tbefore\n> 9\tx\n  10\tafter" }],
  };
  const found = matchesIn(output)!;
  same(found.map(({ path, matches }) => [path, matches.map((match) => [match.line, match.text, match.isContext])]), [
    ["/a.py", [[3, "x = 1", false], [8, "before", true], [9, "x", false], [10, "after", true]]],
    ["/b", [[1, "x", false]]],
  ]);
  same(matchesIn({ matches: ["no place"] }), null);
});

Deno.test("what was searched for is marked, and a pattern that could take for ever is not tried", () => {
  const hits = (query: string, text: string, more = {}) =>
    hitsIn(text, call("grep", { query, ...more })).filter((piece) => piece.isHit).map((piece) => piece.text);
  same(hits("ab+", "xAbbc ab"), ["Abb", "ab"]);
  same(hits("ab", "Ab ab", { caseSensitive: true }), ["ab"]);
  same(hits("a.b", "axb a.b", { fixedString: true }), ["a.b"]);
  same(hits("(a+)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), []);
  same(hits("(a|aa)+$", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"), []);
  same(hits(".*.*.*.*x", "a".repeat(400)), []);
  same(hits("(", "(("), []);
});

Deno.test("a run of a terminal is read, of one that goes on as well", () => {
  const ended = call("bash", { script: "ls", cwd: "/src" }, {
    stdout: "a",
    stderr: "",
    exitCode: 1,
    changedFiles: { created: ["/x"] },
  });
  same(terminalRun(ended, {}), {
    script: "ls",
    directory: "/src",
    stdout: "a",
    stderr: "",
    exitCode: 1,
    changed: [{ fate: "created", paths: ["/x"] }],
  });
  same(terminalRun(call("bash", { script: "ls" }), { stdout: "so far" })?.stdout, "so far");
  same(terminalRun(call("bash", { script: "ls" }, { other: 1 }), {}), null);
});

Deno.test("code is shown with its calls, its console and its value", () => {
  const run = codeRun(
    call("execute", { code: "1" }, {
      value: { a: 1 },
      console: [{ level: "log", text: "one" }, { level: "warn", text: "two" }],
      calls: [{ name: "read", ok: true, ms: 3 }, { name: "x", ok: false }],
    }),
    {},
  );
  same(run, {
    code: "1",
    calls: [{ name: "read", isOk: true, ms: 3 }, { name: "x", isOk: false, ms: null }],
    console: "one\n[warn] two",
    value: { a: 1 },
  });
  same(codeRun(call("execute", { code: "1" }), { calls: [{ name: "read" }] }).calls, [{
    name: "read",
    isOk: null,
    ms: null,
  }]);
});

Deno.test("a page of the web has its final address, and an error is a sentence", () => {
  const page = fetched(call("fetch_page", { url: "https://a" }, { url: "https://b", status: 200, content: "Hello" }));
  same([page?.address, page?.status, page?.text], ["https://b", 200, "Hello"]);
  same([errorIn({ error: "no" }), errorIn({ error: { code: "blocked", message: "Not allowed" } }), errorIn("text")], [
    "no",
    "Not allowed",
    "",
  ]);
});

Deno.test("output of programs has no commands and no tricks", () => {
  same(terminalText("\x1b[31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;https://evil\x1b\\link\x1b]8;;\x1b\\"), "red xlink");
  same(terminalText("10%\r50%\r100%\r\nnext"), "100%\nnext");
  same(terminalText("a\x1b[2J\x1b[Hb\x08\x00"), "ab\u2408\u2400");
  same(withoutTricks("user\u202e cod.exe\u2066"), "user[U+202E] cod.exe[U+2066]");
  same(withoutTricks("a\u{e0041}b"), "a[U+E0041]b");
  same(fileText("a\r\nb\x1b[31m"), "a\nb\u241b[31m");
  same(terminalText("<b>&amp;</b>"), "<b>&amp;</b>");
});

Deno.test("the language of a file is that of its name", () => {
  same(["/a/b.py", "/Dockerfile", "/x.tsx", "/constructor", "/a.constructor", "/noending"].map(languageOf), [
    "python",
    "dockerfile",
    "typescript",
    "",
    "",
    "",
  ]);
});

const texts = (before: string, after: string) => lineDiff(before, after).lines.map((line) => line.text);

Deno.test("a diff has the fewest lines and three equal ones around them", () => {
  same(texts("a\nb\nc\n", "a\nx\nc\n"), [" a", "-b", "+x", " c"]);
  same(texts("", "a\nb"), ["+a", "+b"]);
  same(texts("a\n", "a\n"), []);
  const many = Array.from({ length: 20 }, (_, at) => `${at + 1}`);
  same(texts(many.join("\n"), many.with(14, "new").join("\n")), [
    "@@ 12 @@",
    " 12",
    " 13",
    " 14",
    "-15",
    "+new",
    " 16",
    " 17",
    " 18",
  ]);
});

Deno.test("a diff leads from one text to the other, whatever they are", () => {
  let seed = 7;
  const random = (below: number) => (seed = (seed * 16_807) % 2_147_483_647) % below;
  const text = () => Array.from({ length: random(7) }, () => "abc"[random(3)]);
  for (let count = 0; count < 400; count += 1) {
    const [before, after] = [text(), text()];
    const { lines } = lineDiff(before.join("\n"), after.join("\n"));
    if (before.join() === after.join()) {
      same(lines, []);
      continue;
    }
    const kept = lines.filter(({ kind }) => kind !== "place");
    const reached = kept.filter(({ kind }) => kind !== "gone").map((line) => line.text.slice(1)).join();
    const began = kept.filter(({ kind }) => kind !== "added").map((line) => line.text.slice(1)).join();
    if (!after.join().includes(reached) || !before.join().includes(began)) throw new Error(`${before} ${after}`);
  }
});

Deno.test("two texts that have nothing in common are replaced without a search", () => {
  const text = (mark: string) => Array.from({ length: 3_000 }, (_, at) => `${mark}${at}`).join("\n");
  const { added, removed } = lineDiff(text("a"), text("b"));
  same([added, removed], [3_000, 3_000]);
});

Deno.test("names of files above a patch are left out", () => {
  same(diffLines("--- a\n+++ b\n@@ -1 +1 @@\n-x\n+y\n").map((line) => line.kind), ["place", "gone", "added"]);
  same(diffLines("--- x").map((line) => line.kind), ["gone"]);
});

Deno.test("a call of the browser is known by its name, and shows where it was and what it read", () => {
  same(
    ["browser_markdown", "browser_execute", "browser_other", "my_browser_links"].map((name) =>
      isBrowserCall(call(name, { url: "https://a.b/" }))
    ),
    [true, true, false, false],
  );
  same(isBrowserCall(call("browser_markdown", undefined)), false);
  const given = { url: "https://a.b/asked" };
  same(browserVisit(call("browser_markdown", given)).address, "https://a.b/asked");
  const output = {
    url: "https://a.b/there",
    title: "T",
    status: 404,
    markdown: "# T",
    refused: ["http://10.0.0.1/", 7],
  };
  const visit = browserVisit(call("browser_markdown", given, output));
  same([visit.address, visit.title, visit.status, visit.text], ["https://a.b/there", "T", 404, "# T"]);
  same([visit.refused, visit.links, visit.steps, visit.value], [["http://10.0.0.1/"], [], [], undefined]);
});

Deno.test("code that drives a browser shows its steps, its pages and its value", () => {
  const output = {
    value: 0,
    console: [{ level: "warn", text: "slow" }],
    steps: [
      { method: "Page.navigate", url: "https://a.b/", ok: true, ms: 12 },
      { method: "Browser.close", ok: false },
      1,
    ],
    pages: ["https://a.b/"],
  };
  const visit = browserVisit(call("browser_execute", { code: "async () => 0" }, output));
  same(visit.code, "async () => 0");
  same(visit.steps, [
    { method: "Page.navigate", address: "https://a.b/", isOk: true, ms: 12 },
    { method: "Browser.close", address: "", isOk: false, ms: null },
  ]);
  same([visit.pages, visit.console, visit.value, visit.address], [["https://a.b/"], "[warn] slow", 0, ""]);
});

Deno.test("an address that a page names is a link only if it is one of the web", () => {
  same(
    ["https://a.b/", "HTTP://a.b/", "javascript:alert(1)", "file:///etc/passwd", " https://a.b", "/c/1"].map(
      isWebAddress,
    ),
    [true, true, false, false, false, false],
  );
});

Deno.test("a result of text and value is shown as both, and any other as it is", () => {
  same(textAndValue({ text: "line 1\nline 2", structuredContent: { a: 1 } }), ["line 1\nline 2", { a: 1 }]);
  for (
    const one of ["a", null, [1], { text: "a" }, { text: 1, structuredContent: 2 }, {
      text: "a",
      structuredContent: 1,
      b: 2,
    }]
  ) {
    same(textAndValue(one), [one]);
  }
});
