"""The functions of `state.*` as a model reads them: the usual ones in short, all of them where they are looked up."""

import re
from collections.abc import Iterator
from typing import Final

from tools_app.core.code.signatures import Function

DECLARED: Final = """declare const state: {
  readFile(input: { path: string }): Promise<string | null>;
  readFileBytes(input: { path: string }): Promise<Uint8Array | null>;
  writeFile(input: { path: string; content: string | Uint8Array }): Promise<void>;
  writeFileBytes(input: { path: string; content: Uint8Array }): Promise<void>;
  appendFile(input: { path: string; content: string | Uint8Array }): Promise<void>;
  exists(input: { path: string }): Promise<boolean>;
  stat(input: { path: string }): Promise<Entry | null>;
  lstat(input: { path: string }): Promise<Entry | null>;
  readdir(input: { path: string; limit?: number; offset?: number }): Promise<Entry[]>;
  mkdir(input: { path: string; recursive?: boolean }): Promise<void>;
  rm(input: { path: string; recursive?: boolean; force?: boolean }): Promise<void>;
  cp(input: { source: string; target: string; recursive?: boolean }): Promise<void>;
  mv(input: { source: string; target: string }): Promise<void>;
  symlink(input: { target: string; path: string }): Promise<void>;
  readlink(input: { path: string }): Promise<string>;
  realpath(input: { path: string }): Promise<string>;
  glob(input: { pattern: string; limit?: number }): Promise<string[]>;
  find(input: { pattern?: string; type?: Entry["type"]; minSize?: number; maxSize?: number }): Promise<Entry[]>;
  diff(input: { path: string; other: string }): Promise<string>;
  diffContent(input: { path: string; content: string }): Promise<string>;
  readJson(input: { path: string }): Promise<unknown>;
  writeJson(input: { path: string; value: unknown; indent?: number }): Promise<void>;
  /** `query`: keys and indexes, as "items.0.name". */
  queryJson(input: { path: string; query: string }): Promise<unknown>;
  updateJson(input: { path: string; query: string; value: unknown }): Promise<void>;
  /** `regex`: `query` is an expression of RE2, without backreferences and lookaround, for each line. */
  searchText(input: { path: string; query: string; regex?: boolean; caseSensitive?: boolean }): Promise<Match[]>;
  searchFiles(input: {
    pattern: string; query: string; regex?: boolean; caseSensitive?: boolean;
  }): Promise<FileMatch[]>;
  /** `regex`: `search` is an expression for the whole text, as "(?mi)^name$"; `replacement` has $1, $<name>, $&. */
  replaceInFile(input: {
    path: string; search: string; replacement: string; regex?: boolean; dryRun?: boolean;
  }): Promise<Replaced>;
  /** All files or none, unless `rollbackOnError` is false. */
  replaceInFiles(input: {
    pattern: string; search: string; replacement: string; regex?: boolean; dryRun?: boolean;
    rollbackOnError?: boolean;
  }): Promise<Replaced[]>;
  walkTree(input: { path?: string; depth?: number }): Promise<Entry[]>;
  summarizeTree(input: { path?: string }): Promise<{ files: number; directories: number; bytes: number }>;
  hash(input: { path: string; algorithm?: "sha256" | "sha1" | "md5" }): Promise<string>;
  detect(input: { path: string }): Promise<{ mediaType: string; isText: boolean }>;
  /** A zip file of a file, or of all below a directory. */
  archive(input: { path: string; target: string }): Promise<Entry>;
  /** `target`: a directory. `paths`: the first 1000. */
  unarchive(input: { path: string; target: string }): Promise<{ count: number; paths: string[] }>;
  /** gzip; without `target` to or from the same name with ".gz". */
  compress(input: { path: string; target?: string }): Promise<Entry>;
  decompress(input: { path: string; target?: string }): Promise<Entry>;
  /** Check edits without writing: what each would change. */
  planEdits(input: { edits: Edit[] }): Promise<{ path: string; diff: string }[]>;
  /** Apply edits: all of them or none. */
  applyEdits(input: { edits: Edit[] }): Promise<{ path: string; kind: string }[]>;
};
type Entry = {
  path: string; name: string; type: "file" | "directory" | "symlink"; size: number; mediaType: string;
  modifiedAt: string;
};
type Match = { line: number; text: string };
type FileMatch = { path: string; matches: Match[] };
type Replaced = { path: string; count: number; diff: string };
type Edit = {
  path: string; content?: string; search?: string; replacement?: string; delete?: boolean; directory?: boolean;
};"""

USUAL: Final = (
    "readFile", "writeFile", "appendFile", "exists", "stat", "readdir", "mkdir", "rm", "cp", "mv", "glob", "diff",
    "readJson", "writeJson", "queryJson", "updateJson", "searchText", "searchFiles", "replaceInFile", "replaceInFiles",
    "planEdits", "applyEdits",
)  # fmt: skip
"""The functions whose short forms a description has; of the others it has the names."""

_MEMBER: Final = re.compile(
    r"^((?:  /\*\*[^\n]*\*/\n)?)  (\w+)\(input: \{(.*?)\}\): Promise<(.*?)>;$", re.MULTILINE | re.DOTALL
)
_TYPE: Final = re.compile(r"^type (\w+) = \{.*?\};$", re.MULTILINE | re.DOTALL)
_FIELD: Final = re.compile(r"(\w+\??): ")


def _functions() -> Iterator[Function]:
    types = {match[1]: match[0] for match in _TYPE.finditer(DECLARED)}
    for comment, name, fields, result in _MEMBER.findall(DECLARED):
        declared = f"{comment}  {name}(input: {{{fields}}}): Promise<{result}>;"
        used = [text for word, text in types.items() if re.search(rf"\b{word}\b", f"{fields} {result}")]
        plain = f"{name}({{{', '.join(_FIELD.findall(fields))}}})"
        gives = "" if result == "void" else f": {result.replace(' | ', '|')}"
        yield Function(
            path=f"state.{name}",
            description=comment.strip().removeprefix("/** ").removesuffix(" */"),
            declared="\n".join([*(line.removeprefix("  ") for line in declared.split("\n")), *used]),
            plain=plain,
            typed=f"{plain}{gives if len(gives) <= 20 else ''}",
        )


FUNCTIONS_DECLARED: Final = tuple(_functions())


def listed() -> str:
    """The functions of `state` as a description of a tool has them."""
    usual = [each.typed for each in FUNCTIONS_DECLARED if each.path.removeprefix("state.") in USUAL]
    others = [name for each in FUNCTIONS_DECLARED if (name := each.path.removeprefix("state.")) not in USUAL]
    return (
        "Functions of `state` (the files of the workspace):\n"
        f"{'; '.join(usual)}.\nAlso {', '.join(others)}.\n"
        "Entry: {path, name, type, size, mediaType, modifiedAt}. Match: {line, text}. FileMatch: {path, matches}. "
        "Replaced: {path, count, diff}. Edit: {path, content} or {path, search, replacement} or {path, delete: true}."
    )
