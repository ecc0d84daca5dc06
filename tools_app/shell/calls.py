"""Answers what the process of a script asks and tells: the entries, contents, changes."""

from collections.abc import Sequence
from typing import Any, Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.core.files.failures import failed
from tools_app.core.files.workspace import Entry, EntryKind, Workspace
from tools_app.core.guard.reach import note_here
from tools_app.core.permissions.file_rules import FileDeed, check_files
from tools_app.errors import CodeInvalid
from tools_app.sandbox.contract import Answer
from tools_app.sandbox.packing import packed, unpacked
from tools_app.shell.overlay import MAX_FILE_BYTES, MAX_READ_BYTES, FileOverlay

MAX_PATHS: Final = 1000
PIECE_BYTES: Final = 2_000_000
MAX_CHANGES: Final = 50_000
_KINDS: Final = {EntryKind.FILE: 0, EntryKind.DIRECTORY: 1, EntryKind.SYMLINK: 2}


class ShellCalls:
    """The files of one run. `opening`: what the process learns beside the entries.

    The process names the entries of strangers that the script gets to see; which these are is known here.

    Whatever the process says is checked: it may be a stranger's by then.
    """

    def __init__(
        self,
        workspace: Workspace,
        entries: Sequence[Entry],
        opening: JSONObject,
        *,
        whole_bytes: int = MAX_READ_BYTES,
    ) -> None:
        """`whole_bytes`: of the largest file that the process may hold whole."""
        self._workspace = workspace
        self._entries = entries
        self._opening = opening
        foreign = getattr(workspace, "foreign", None)
        self._named = {entry.path: origin for entry in entries if (origin := entry.origin or foreign)}
        self.overlay = FileOverlay(entries, whole_bytes=whole_bytes)

    async def answer(self, name: str, args: list[JSONValue]) -> Answer:
        """Answer a call. Errors: `FileFailed`, `CodeInvalid` for anything that is no call."""
        argument = args[0] if args else None
        match name:
            case "files.open":
                return Answer(value={**self._opening, "entries": [self._listed(entry) for entry in self._entries]})
            case "files.named":
                for path in _texts(argument):
                    if path in self._named:
                        note_here(self._named[path], path)
                return Answer()
            case "files.read":
                return Answer(value=await self._read(_texts(argument, MAX_PATHS)))
            case "files.piece":
                return Answer(value=await self._piece(args))
            case "files.change":
                self._note(_changes(argument))
                return Answer()
        raise CodeInvalid(f"There is no function {name[:100]}.")

    def _listed(self, entry: Entry) -> list[JSONValue]:
        modified = int(entry.modified_at.timestamp() * 1000)
        return [entry.path, _KINDS[entry.kind], entry.size, modified, entry.target, entry.path in self._named]

    async def _read(self, paths: list[str]) -> list[JSONObject | None]:
        check_files(FileDeed.READ, paths[:1])  # the others are read ahead, as far as they may be
        wanted = self.overlay.readable(paths)
        found: dict[str, bytes] = {}
        async for entry, data in self._workspace.read_many(wanted, max_bytes=MAX_FILE_BYTES):
            self.overlay.saw(entry.path, entry)
            if data is not None:
                found[entry.path] = data
        if paths and paths[0] not in found:
            self.overlay.readable(paths[:1])  # it may have become too large
            raise failed("ENOENT", paths[0])
        return [packed(found[path]) if path in found else None for path in paths]

    async def _piece(self, args: list[JSONValue]) -> JSONObject:
        """A piece of a large file. Arguments: its path, where the piece begins, and whether all of it is wanted."""
        match args:
            case [[str(path), int(start), bool(is_whole)]] if start >= 0:
                pass
            case _:
                raise CodeInvalid("This is no piece of a file.")
        self.overlay.check_piece(path, await self._workspace.lstat(path), is_whole=is_whole)
        data = bytearray()
        async for piece in self._workspace.read_stream(path, start=start):
            data += piece
            if len(data) >= PIECE_BYTES:
                break
        return packed(bytes(data[:PIECE_BYTES]))

    def _note(self, changes: list[dict[str, Any]]) -> None:
        """Note the changes of a call, as far as can be foreseen all or none: the process makes them afterwards."""
        check_files(FileDeed.DELETE, (_text(each, "path") for each in changes if each.get("op") == "remove"))
        check_files(FileDeed.WRITE, (_text(each, "path") for each in changes if each.get("op") != "remove"))
        if len(changes) > 1:
            size = sum(len(_data(each["data"])) for each in changes if "data" in each)
            self.overlay.check([_text(each, "path") for each in changes], size)
        for change in changes:
            self._change(change)

    def _change(self, change: dict[str, Any]) -> None:
        path = _text(change, "path")
        match change.get("op"):
            case "write":
                self.overlay.write(path, _data(change.get("data")))
            case "append":
                self.overlay.append(path, _data(change.get("data")))
            case "mkdir":
                self.overlay.make_directory(path)
            case "remove":
                self.overlay.remove(path)
            case "link":
                self.overlay.link(path, _text(change, "target"))
            case _:
                raise CodeInvalid("This is no change of a file.")


def _texts(value: JSONValue, most: int = MAX_CHANGES) -> list[str]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value) or len(value) > most:
        raise CodeInvalid("These are no paths.")
    return value


def _changes(value: JSONValue) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(each, dict) for each in value) or len(value) > MAX_CHANGES:
        raise CodeInvalid("These are no changes.")
    return value


def _text(change: dict[str, Any], key: str) -> str:
    value = change.get(key)
    if not isinstance(value, str):
        raise CodeInvalid(f"A change has no {key}.")
    return value


def _data(value: JSONValue) -> bytes:
    try:
        data = unpacked(value)
    except ValueError as error:
        raise CodeInvalid("The data of a change is not base64.") from error
    if data is None:
        raise CodeInvalid("A change has no data.")
    return data
