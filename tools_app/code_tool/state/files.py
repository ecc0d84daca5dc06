"""Functions that are those of a workspace."""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.code_tool.state.arguments import content, flag, number, shown_entry, text
from tools_app.core.files.encodings import HEAD_BYTES, PLAIN, detected_head
from tools_app.core.files.workspace import Workspace
from tools_app.errors import FileFailed
from tools_app.sandbox.packing import packed

MAX_FILES: Final = 1000

Function: TypeAlias = Callable[[Workspace, JSONObject], Awaitable[JSONValue]]


async def read_file(files: Workspace, value: JSONObject) -> JSONValue:
    """Text of a file, or null. Errors: `EILSEQ` for what is no UTF-8: written back, it would be damaged."""
    path = text(value, "path")
    data = await files.read_bytes(path)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError as error:
        words = f"{path} is no text in UTF-8 (byte {error.start}): read it with readFileBytes, or change it with bash"
        raise FileFailed(words, errno="EILSEQ", path=path) from error


async def read_bytes(files: Workspace, value: JSONObject) -> JSONValue:
    """Bytes of a file, or null."""
    data = await files.read_bytes(text(value, "path"))
    return None if data is None else packed(data)


async def write_file(files: Workspace, value: JSONObject) -> JSONValue:
    """Write a file."""
    await files.write_file(text(value, "path"), content(value))
    return None


async def append_file(files: Workspace, value: JSONObject) -> JSONValue:
    """Add to the end of a file: a text in the encoding that the file has."""
    path, added = text(value, "path"), content(value)
    if isinstance(added, str):
        head = b""
        if await files.file_exists(path):
            async for piece in files.read_stream(path):
                head += piece
                if len(head) >= HEAD_BYTES:
                    break
        encoding = detected_head(head[:HEAD_BYTES], is_whole=len(head) < HEAD_BYTES) or PLAIN
        added = encoding.encode(added, path=path).removeprefix(encoding.mark)
    await files.append_file(path, added)
    return None


async def exists(files: Workspace, value: JSONObject) -> JSONValue:
    """Whether there is an entry."""
    return await files.exists(text(value, "path"))


async def stat(files: Workspace, value: JSONObject) -> JSONValue:
    """An entry, links followed."""
    entry = await files.stat(text(value, "path"))
    return None if entry is None else shown_entry(entry)


async def lstat(files: Workspace, value: JSONObject) -> JSONValue:
    """An entry, a link itself."""
    entry = await files.lstat(text(value, "path"))
    return None if entry is None else shown_entry(entry)


async def readdir(files: Workspace, value: JSONObject) -> JSONValue:
    """Children of a directory."""
    limit, offset = min(number(value, "limit", MAX_FILES), MAX_FILES), number(value, "offset", 0)
    return [shown_entry(entry) for entry in await files.read_dir(text(value, "path", "/"), limit=limit, offset=offset)]


async def mkdir(files: Workspace, value: JSONObject) -> JSONValue:
    """Make a directory."""
    await files.mkdir(text(value, "path"), recursive=flag(value, "recursive"))
    return None


async def rm(files: Workspace, value: JSONObject) -> JSONValue:
    """Remove an entry."""
    recursive, force = flag(value, "recursive"), flag(value, "force")
    await files.rm(text(value, "path"), recursive=recursive, force=force)
    return None


async def cp(files: Workspace, value: JSONObject) -> JSONValue:
    """Copy an entry."""
    await files.cp(text(value, "source"), text(value, "target"), recursive=flag(value, "recursive"))
    return None


async def mv(files: Workspace, value: JSONObject) -> JSONValue:
    """Move an entry."""
    await files.mv(text(value, "source"), text(value, "target"))
    return None


async def symlink(files: Workspace, value: JSONObject) -> JSONValue:
    """Make a link."""
    await files.symlink(text(value, "target"), text(value, "path"))
    return None


async def readlink(files: Workspace, value: JSONObject) -> JSONValue:
    """Target of a link."""
    return await files.readlink(text(value, "path"))


async def realpath(files: Workspace, value: JSONObject) -> JSONValue:
    """A path with its links resolved."""
    return await files.realpath(text(value, "path"))


async def glob(files: Workspace, value: JSONObject) -> JSONValue:
    """Paths that match a pattern."""
    limit = min(number(value, "limit", MAX_FILES), MAX_FILES)
    return [entry.path for entry in await files.glob(text(value, "pattern"), limit=limit)]


async def find(files: Workspace, value: JSONObject) -> JSONValue:
    """Entries that match a pattern, by type and size."""
    kind, smallest = value.get("type"), number(value, "minSize", 0)
    largest = number(value, "maxSize", 1 << 60)
    found = await files.glob(text(value, "pattern", "/**/*"))
    fitting = [
        entry for entry in found if (kind is None or entry.kind.value == kind) and smallest <= entry.size <= largest
    ]
    return [shown_entry(entry) for entry in fitting[:MAX_FILES]]


async def diff(files: Workspace, value: JSONObject) -> JSONValue:
    """Difference of two files."""
    return await files.diff(text(value, "path"), text(value, "other"))


async def diff_content(files: Workspace, value: JSONObject) -> JSONValue:
    """Difference of a file and a new text."""
    return await files.diff_content(text(value, "path"), text(value, "content"))


FILE_FUNCTIONS: Final[dict[str, Function]] = {
    "readFile": read_file,
    "readFileBytes": read_bytes,
    "writeFile": write_file,
    "writeFileBytes": write_file,
    "appendFile": append_file,
    "exists": exists,
    "stat": stat,
    "lstat": lstat,
    "readdir": readdir,
    "mkdir": mkdir,
    "rm": rm,
    "cp": cp,
    "mv": mv,
    "symlink": symlink,
    "readlink": readlink,
    "realpath": realpath,
    "glob": glob,
    "find": find,
    "diff": diff,
    "diffContent": diff_content,
}
