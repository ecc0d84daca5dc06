"""Functions that change several files at once: planned without writing, applied all or none."""

import asyncio
import threading
from dataclasses import dataclass, replace
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.code_tool.state.arguments import flag, text
from tools_app.code_tool.state.data import HeldData, held_by, read_bytes
from tools_app.code_tool.state.files import MAX_FILES, Function
from tools_app.core.files.diffs import unified
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.paths import normalise
from tools_app.core.files.replacing import Replacement
from tools_app.core.files.workspace import EntryKind, MakeDirectory, Operation, Put, Remove, Workspace
from tools_app.core.guard.reach import held_back, note_here
from tools_app.errors import CodeInvalid, ToolInputInvalid

MAX_EDITS: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """The effect of an edit. `content`: of the file afterwards; `None` where it is no text or gone."""

    operation: Operation
    content: bytes | None = None


async def replace_in_file(files: Workspace, value: JSONObject) -> JSONValue:
    """Replace a text in a file, or what an expression matches."""
    path, replacement = text(value, "path"), _replacement(value)
    plan, shown = await _replaced(files, path, replacement)
    if shown["count"] and not flag(value, "dryRun"):
        await files.apply([plan])
    return shown


async def replace_in_files(files: Workspace, value: JSONObject) -> JSONValue:
    """Replace in many files: in all or in none."""
    replacement = _replacement(value)
    with held_back():  # names are returned with their lines
        entries = await files.glob(text(value, "pattern"))
    paths = [entry.path for entry in entries if entry.kind is EntryKind.FILE][:MAX_FILES]
    plans: list[Operation] = []
    shown: list[JSONValue] = []
    for path in paths:
        replacing, one = await _replaced(files, path, replacement)
        if one["count"]:
            plans.append(replacing)
            shown.append(one)
    if not flag(value, "dryRun"):
        batches: list[list[Operation]] = [[plan] for plan in plans]
        if flag(value, "rollbackOnError", default=True):
            batches = [plans]
        for batch in batches:
            await files.apply(batch)
    return shown


def _replacement(value: JSONObject) -> Replacement:
    try:
        return Replacement(text(value, "search"), text(value, "replacement"), is_regex=flag(value, "regex"))
    except ToolInputInvalid as error:
        raise CodeInvalid(f"'search' cannot be replaced: {error.message}") from error


async def _replaced(files: Workspace, path: str, replacement: Replacement) -> tuple[Put, JSONObject]:
    """The write that replaces in a file, and what code sees of it. Off the loop, no longer than the code waits."""
    before = await files.stat(path)
    data = await read_bytes(files, path)
    is_left = threading.Event()
    try:
        changed, count = await asyncio.to_thread(replacement.applied, data, is_left.is_set)
    except ToolInputInvalid as error:
        raise CodeInvalid(f"{path}: {error.message}") from error
    finally:
        is_left.set()
    version = before.version if before is not None else None
    diff = await _difference(files, path, changed) if changed != data else ""
    return Put(path=path, content=changed, expected_version=version), {"path": path, "count": count, "diff": diff}


async def plan_edits(files: Workspace, value: JSONObject) -> JSONValue:
    """Differences that edits would make; nothing is written."""
    shown: list[JSONValue] = []
    for planned in await _plan(files, value):
        diff = ""
        if planned.content is not None:
            diff = await _difference(files, planned.operation.path, planned.content)
        shown.append({"path": planned.operation.path, "diff": diff})
    return shown


async def _difference(files: Workspace, path: str, content: bytes) -> str:
    """The difference that a write would make; all lines are added where there is no file."""
    before = await files.read_bytes(path) or b""
    name = normalise(path)
    return await asyncio.to_thread(lambda: unified(shown_text(before)[0], shown_text(content)[0], name, name))


async def apply_edits(files: Workspace, value: JSONObject) -> JSONValue:
    """Apply edits: all or none."""
    with held_back() as texts:  # the files keep their marks, and nothing of their text is returned
        plan = [planned.operation for planned in await _plan(files, value)]
        changes = await files.apply(plan)
    known = {normalise(operation.path) for operation in plan}
    for each in texts:
        if each.source not in known:  # the name of what was below a directory that is gone
            note_here(each.origin, each.source)
    return [{"path": change.path, "kind": change.kind} for change in changes]


async def _plan(files: Workspace, value: JSONObject) -> list[_Planned]:
    """The effects of all edits: a later edit of a file sees what the earlier ones make of it."""
    edits = value.get("edits")
    if not isinstance(edits, list) or len(edits) > MAX_EDITS or not all(isinstance(edit, dict) for edit in edits):
        raise CodeInvalid(f"'edits' must be a list of at most {MAX_EDITS} objects.")
    texts: dict[str, HeldData] = {}
    plan: dict[str, _Planned] = {}
    for edit in edits:
        path = text(edit, "path")
        planned = await _planned(files, edit, path, texts)
        plan.pop(path, None)
        plan[path] = planned
    return list(plan.values())


async def _planned(files: Workspace, edit: JSONObject, path: str, texts: dict[str, HeldData]) -> _Planned:
    if flag(edit, "delete"):
        texts.pop(path, None)
        return _Planned(operation=Remove(path=path))
    if flag(edit, "directory"):
        return _Planned(operation=MakeDirectory(path=path))
    if "content" in edit:
        held = HeldData(text=text(edit, "content"))
        data = held.text.encode(errors="surrogateescape")
    else:
        search, replacement = text(edit, "search"), text(edit, "replacement")
        held = texts.get(path) or await held_by(files, path)
        if not search or held.text.count(search) != 1:
            raise CodeInvalid(f"{path}: 'search' must occur exactly once; it occurs {held.text.count(search)} times.")
        held = replace(held, text=held.text.replace(search, replacement))
        data = held.encoding.encode(held.text, path=path)
    texts[path] = held
    return _Planned(operation=Put(path=path, content=data), content=data)


EDIT_FUNCTIONS: Final[dict[str, Function]] = {
    "replaceInFile": replace_in_file,
    "replaceInFiles": replace_in_files,
    "planEdits": plan_edits,
    "applyEdits": apply_edits,
}
