"""Functions that read within files: JSON, trees, digests, kinds."""

import hashlib
import re
from dataclasses import dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump, load
from tools_app.code_tool.state.arguments import number, shown_entry, text
from tools_app.code_tool.state.files import MAX_FILES, Function
from tools_app.core.files.encodings import PLAIN, Encoding
from tools_app.core.files.media_types import sniff, sniff_head
from tools_app.core.files.workspace import Entry, EntryKind, Workspace
from tools_app.core.guard.reach import held_back
from tools_app.errors import CodeInvalid, FileFailed
from tools_app.file_tools.keeping import encoded, held_text

HEAD_BYTES: Final = 64 * 1024
ALGORITHMS: Final = frozenset({"sha256", "sha1", "md5"})


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldData:
    """A text with the encoding of its file."""

    text: str
    encoding: Encoding = PLAIN


async def held_by(files: Workspace, path: str) -> HeldData:
    """The text of a file. Errors: `ENOENT`, `EILSEQ` for what is no text."""
    found = await held_text(files, path)
    if found is None:
        raise FileFailed(f"File not found: {path}", errno="ENOENT", path=path)
    return HeldData(text=found[0], encoding=found[1])


async def read_bytes(files: Workspace, path: str) -> bytes:
    """The bytes of a file. Errors: `ENOENT`."""
    found = await files.read_bytes(path)
    if found is None:
        raise FileFailed(f"File not found: {path}", errno="ENOENT", path=path)
    return found


async def read_json(files: Workspace, value: JSONObject) -> JSONValue:
    """JSON of a file. Errors: `CodeInvalid` where it has none."""
    path = text(value, "path")
    try:
        return load((await held_by(files, path)).text)
    except ValueError as error:
        raise CodeInvalid(f"{path} has no JSON: {error}") from error


async def write_json(files: Workspace, value: JSONObject) -> JSONValue:
    """Write a value as JSON."""
    path, made = text(value, "path"), dump(value.get("value")) + "\n"
    data, _told = await encoded(files, path, made, None)
    await files.write_file(path, data, media_type="application/json")
    return None


async def query_json(files: Workspace, value: JSONObject) -> JSONValue:
    """A part of the JSON of a file, or null."""
    found = await read_json(files, value)
    for step in _steps(value):
        found = _member(found, step)
    return found


async def update_json(files: Workspace, value: JSONObject) -> JSONValue:
    """Replace a part of the JSON of a file."""
    root, steps = await read_json(files, value), _steps(value)
    if not steps:
        return await write_json(files, value)
    node = root
    for step in steps[:-1]:
        node = _member(node, step)
    last = steps[-1]
    if isinstance(node, list) and last.isdigit() and int(last) < len(node):
        node[int(last)] = value.get("value")
    elif isinstance(node, dict):
        node[last] = value.get("value")
    else:
        raise CodeInvalid(f"There is nothing to set at {'.'.join(steps)!r}.")
    return await write_json(files, {"path": value["path"], "value": root})


def _steps(value: JSONObject) -> list[str]:
    return [
        step for step in text(value, "query").replace("[", ".").replace("]", "").split(".") if step not in {"", "$"}
    ]


def _member(node: JSONValue, step: str) -> JSONValue:
    if isinstance(node, dict):
        return node.get(step)
    if isinstance(node, list) and step.isdigit() and int(step) < len(node):
        return node[int(step)]
    return None


async def walk_tree(files: Workspace, value: JSONObject) -> JSONValue:
    """Entries below a directory, to a depth."""
    root, depth = await files.realpath(text(value, "path", "/")), number(value, "depth", 100)
    start = root.rstrip("/")
    entries = await _below(files, start)
    near = [entry for entry in entries if entry.path[len(start) :].count("/") <= depth]
    return [shown_entry(entry) for entry in near[:MAX_FILES]]


async def summarize_tree(files: Workspace, value: JSONObject) -> JSONValue:
    """Counts and bytes below a directory."""
    root = (await files.realpath(text(value, "path", "/"))).rstrip("/")
    with held_back():  # no name is returned
        entries = await _below(files, root)
    kinds = [entry.kind for entry in entries]
    return {
        "files": kinds.count(EntryKind.FILE),
        "directories": kinds.count(EntryKind.DIRECTORY),
        "bytes": sum(entry.size for entry in entries),
    }


async def _below(files: Workspace, root: str) -> list[Entry]:
    literal = re.sub(r"[*?\[\]{}\\!,]", r"\\\g<0>", root)
    return await files.glob(f"{literal}/**/*")


async def hash_file(files: Workspace, value: JSONObject) -> JSONValue:
    """Digest of a file, in hex."""
    algorithm = text(value, "algorithm", "sha256")
    if algorithm not in ALGORITHMS:
        raise CodeInvalid(f"'algorithm' is one of {', '.join(sorted(ALGORITHMS))}.")
    digest = hashlib.new(algorithm, usedforsecurity=False)
    async for piece in files.read_stream(text(value, "path")):
        digest.update(piece)
    return digest.hexdigest()


async def detect(files: Workspace, value: JSONObject) -> JSONValue:
    """Kind of a file, from its bytes and not from what was said when it was written."""
    path = text(value, "path")
    entry = await files.stat(path)
    if entry is None or entry.kind is not EntryKind.FILE:
        raise FileFailed(f"File not found: {path}", errno="ENOENT", path=path)
    head = b""
    async for piece in files.read_stream(path):
        head += piece[: HEAD_BYTES - len(head)]
        if len(head) == HEAD_BYTES:
            break
    is_whole = len(head) < HEAD_BYTES
    found = sniff(head, entry.name) if is_whole else sniff_head(head, entry.name)
    return {"mediaType": found, "isText": found == "application/json" or found.startswith("text/")}


DATA_FUNCTIONS: Final[dict[str, Function]] = {
    "readJson": read_json,
    "writeJson": write_json,
    "queryJson": query_json,
    "updateJson": update_json,
    "walkTree": walk_tree,
    "summarizeTree": summarize_tree,
    "hash": hash_file,
    "detect": detect,
}
