/// <reference lib="deno.ns" />
// Whether a file can be attached, before it is sent. Run by test_pure_modules.py.

import { fileProblem } from "../../../static/src/app/store/file_limits.ts";
import { same } from "./making.ts";

const limits = { max_bytes: 2_000_000, types: ["text/plain", "image/png", "application/pdf"] };
const problem = (name: string, size: number, type = "") => fileProblem({ name, size, type }, limits);

Deno.test("files of the types that are taken, and texts of any type, go to the server", () => {
  same(problem("a.png", 10, "image/png"), "");
  same(problem("a.py", 10, "text/x-python"), "");
  same(problem("unknown", 10), "");
  same(problem("page.ts", 10, "application/typescript"), "");
});

Deno.test("what cannot be attached is refused in words", () => {
  same(problem("big.pdf", 3_000_000, "application/pdf").startsWith("“big.pdf” is 3"), true);
  same(problem("film.mp4", 10, "video/mp4"), "“film.mp4” can’t be attached: videos can’t be read here.");
  same(
    problem("raw.tiff", 10, "image/tiff"),
    "“raw.tiff” can’t be attached: pictures of this kind can’t be read here.",
  );
  same(problem("all.zip", 10, "application/x-zip-compressed").includes("archives"), true);
  same(problem("none.txt", 0, "text/plain"), "“none.txt” is empty.");
});
