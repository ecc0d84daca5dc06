"""Writes the changes of a script back to the workspace, in one transaction, without losing anything.

Each operation carries the version that the script began with. Where others changed a file meanwhile, the file stays
as it is and is named, and all else is written.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.paths import is_within
from tools_app.core.files.workspace import Entry, EntryKind, FileChange, Operation, Put, Remove, Workspace
from tools_app.core.guard.reach import held_back
from tools_app.errors import FileFailed

MAX_TRIES: Final = 20
MAX_NAMED: Final = 200
CHANGED_MEANWHILE: Final = "{path}: changed by others meanwhile, so it was left as it is"
NOT_WRITTEN: Final = "Nothing was written: {reason}"
_UNREPAIRABLE: Final = frozenset({"ENOSPC", "EPERM", "EIO"})


@dataclass(slots=True, kw_only=True)
class WrittenBack:
    """The changes that were made. `errors`: one line for each file that was not, and why."""

    changes: list[FileChange] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)

    def to_json(self) -> JSONObject:
        """The changes as a model reads them: paths by what happened to them, the first 200 of each."""
        named: dict[str, list[str]] = {
            "created": [],
            "updated": [],
            "deleted": [],
            "directoriesCreated": [],
            "directoriesDeleted": [],
        }
        for change in self.changes:
            if change.entry_kind is not EntryKind.DIRECTORY:
                named[change.kind].append(change.path)
            elif change.kind != "updated":
                named[f"directories{change.kind.capitalize()}"].append(change.path)
        return {key: _first(sorted(paths)) for key, paths in named.items()}


async def write_back(workspace: Workspace, operations: Sequence[Operation]) -> WrittenBack:
    """Carry out operations at once, without those whose file has changed meanwhile.

    Durability: what `WrittenBack` says is stored when it returns. Errors: none of the workspace's own; they are named.
    """
    written = WrittenBack()
    left = await _real_changes(workspace, operations)
    for _ in range(MAX_TRIES):
        if not left:
            return written
        try:
            written.changes = await workspace.apply(left)
            return written
        except FileFailed as error:
            if error.errno in _UNREPAIRABLE:
                return _nothing(error.message)
            kept, lost = await _without_lost(workspace, left, error)
            if len(kept) == len(left):
                return _nothing(error.message)
            written.errors += _first(lost)
            left = kept
    return _nothing("too much was changed by others meanwhile")


def _nothing(reason: str) -> WrittenBack:
    return WrittenBack(errors=[NOT_WRITTEN.format(reason=reason)])


async def _real_changes(workspace: Workspace, operations: Sequence[Operation]) -> list[Operation]:
    """Leave out files whose content is what it was."""
    puts = {each.path: each for each in operations if isinstance(each, Put) and each.expected_version}
    most = max((len(each.content) for each in puts.values()), default=0)
    same: set[str] = set()
    with held_back():  # nothing of it is returned
        async for entry, data in workspace.read_many(list(puts), max_bytes=most):
            put = puts[entry.path]
            if data == put.content and entry.version == put.expected_version:
                same.add(entry.path)
    return [each for each in operations if not (isinstance(each, Put) and each.path in same)]


async def _without_lost(
    workspace: Workspace, operations: Sequence[Operation], error: FileFailed
) -> tuple[list[Operation], list[str]]:
    """The operations that can still be carried out, and one line for each that cannot."""
    named = str(error.data.get("path", ""))
    if error.errno == "ENOTEMPTY":  # others have put something there
        kept = [each for each in operations if not (isinstance(each, Remove) and is_within(named, each.path))]
        return kept, [CHANGED_MEANWHILE.format(path=named)]
    with held_back():  # the caller knows the names that are returned
        now = {entry.path: entry for entry in await workspace.glob("/**/*")}
    lost = [each.path for each in operations if _is_outdated(each, now.get(each.path))]
    if lost:
        words = [CHANGED_MEANWHILE.format(path=path) for path in lost]
    else:
        lost = [each.path for each in operations if is_within(each.path, named)]
        words = [error.message]
    return [each for each in operations if not _hangs_on(each, lost)], words


def _is_outdated(operation: Operation, entry: Entry | None) -> bool:
    expected = operation.expected_version if isinstance(operation, Put | Remove) else None
    return expected is not None and expected != (entry.version if entry else "")


def _hangs_on(operation: Operation, lost: Sequence[str]) -> bool:
    """Whether an operation is one of the lost, is below one, or removes a directory that holds one."""
    return any(
        is_within(operation.path, path) or (isinstance(operation, Remove) and is_within(path, operation.path))
        for path in lost
    )


def _first(names: list[str]) -> list[str]:
    more = len(names) - MAX_NAMED
    return names if more <= 0 else [*names[:MAX_NAMED], f"({more} more)"]
