"""The tools `write`, `edit` and `delete`."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.editing import Edited, NotEdited, replace_once
from tools_app.core.files.encodings import Encoding
from tools_app.core.files.globs import is_encodable
from tools_app.core.files.operations import CanStat, DeleteOperations, EditOperations, WriteOperations
from tools_app.core.files.paths import parent_of
from tools_app.core.files.reading import count_lines, shown_size
from tools_app.core.files.workspace import EntryKind
from tools_app.core.guard.reach import held_back
from tools_app.core.tool import Tool, ToolContext
from tools_app.errors import FileConflict, FileFailed
from tools_app.file_tools.keeping import encoded, held_text
from tools_app.file_tools.lookalikes import proposed, refusal_of_double
from tools_app.file_tools.making import (
    EncodingField,
    Input,
    PathField,
    about_paths,
    file_tool,
    not_found,
    own_path,
    refused,
)

MAX_EDIT_BYTES: Final = 16 * 1024 * 1024
NOT_UNICODE: Final = "The text has halves of surrogate pairs, which no file can hold."


class WriteInput(Input):
    """Write a whole file. Directories above it are made; a file that is there is replaced.

    Its encoding and its line ends (CRLF) are kept; give `encoding`, such as UTF-8, to convert it.
    """

    path: PathField
    content: Annotated[str, Field(description="The whole new content.")]
    encoding: EncodingField = None


class EditInput(Input):
    """Replace one piece of a file, which must be there exactly once: give enough of the lines around it."""

    path: PathField
    old_string: Annotated[str, Field(description="The piece, as it is in the file; empty for a new file.")]
    new_string: Annotated[str, Field(description="What takes its place.")]


class DeleteInput(Input):
    """Delete a file or a directory. A path where there is nothing is no error."""

    path: Annotated[str, Field(description="Absolute path in the workspace.")]
    recursive: Annotated[bool, Field(description="For a directory with all that is in it.")] = False


def create_write_tool(operations: WriteOperations, *, name: str = "write") -> Tool:
    """Make the tool that writes a whole file, with its directories.

    Where the operations can look up a file and its bytes, the new text has the encoding and line ends of the old one.
    """

    async def write(path: str, content: str, encoding: str | None) -> JSONObject:
        path = await own_path(operations, path)
        if not is_encodable(content):
            return refused(NOT_UNICODE)
        if double := await refusal_of_double(operations, path):
            return refused(double)
        data, kept_facts = await encoded(operations, path, content, encoding)
        try:
            await operations.write_file(path, data)
        except FileFailed as error:
            if error.errno != "ENOENT":
                raise
            # A storage that does not make directories by itself.
            await operations.mkdir(parent_of(path), recursive=True)
            await operations.write_file(path, data)
        size = len(data.encode() if isinstance(data, str) else data)
        return {"path": path, "bytesWritten": size, "lines": count_lines(content), **kept_facts}

    async def check(path: str, content: str, encoding: str | None) -> JSONObject:
        if not is_encodable(content):
            return refused(NOT_UNICODE)
        path = await own_path(operations, path)
        entry = await operations.stat(path) if isinstance(operations, CanStat) else None
        if entry is not None and entry.kind is EntryKind.DIRECTORY:
            return refused(f"{path} is a directory, not a file")
        if double := await refusal_of_double(operations, path):
            return refused(double)
        await encoded(operations, path, content, encoding)
        return {}

    return about_paths(operations, "write", file_tool("write", name, WriteInput, write, check=check))


def create_edit_tool(operations: EditOperations, *, name: str = "edit") -> Tool:
    """Make the tool that replaces one piece of a file.

    Where the operations can look up the version of a file, an edit replaces only what it has read; otherwise the later
    of two writers wins.
    """

    async def edit(call: ToolContext, path: str, old_string: str, new_string: str) -> JSONObject:
        path = await own_path(operations, path)
        asked = AskedEdit(path=path, old=old_string, new=new_string, is_again=call.attempt > 1)
        if not is_encodable(new_string):
            return refused(NOT_UNICODE)
        try:
            if not old_string:
                return await _create(operations, asked)
            with held_back():  # the file keeps its mark, and nothing of its text is returned
                return await _replace(operations, asked)
        except FileConflict:
            return refused(
                f"{path} has changed since it was read. Read it again, and repeat the edit if it still fits."
            )

    async def check(path: str, old_string: str, new_string: str) -> JSONObject:
        if not is_encodable(new_string):
            return refused(NOT_UNICODE)
        path = await own_path(operations, path)
        if not old_string:
            if await operations.read_file(path) is not None:
                return _occupied(path)
            return refused(double) if (double := await refusal_of_double(operations, path)) else {}
        asked = AskedEdit(path=path, old=old_string, new=new_string)
        planned = await _planned(operations, asked)
        return planned if isinstance(planned, dict) else {}

    return about_paths(operations, "edit", file_tool("edit", name, EditInput, edit, check=check))


def create_delete_tool(operations: DeleteOperations, *, name: str = "delete") -> Tool:
    """Make the tool that deletes. A directory that is not empty is a failed call unless `recursive`."""

    async def delete(path: str, recursive: bool) -> JSONObject:
        path = await own_path(operations, path)
        is_gone = isinstance(operations, CanStat) and await operations.stat(path) is None
        if is_gone and (words := await proposed(operations, path)):
            raise FileFailed(f"There is nothing at {path}.{words}", errno="ENOENT", path=path)
        await operations.rm(path, recursive=recursive, force=True)
        return {"deleted": path}

    return about_paths(operations, "delete", file_tool("delete", name, DeleteInput, delete, refusals_are_errors=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedEdit:
    """An edit that is asked for. `is_again`: an attempt that a crash cut may have made it."""

    path: str
    old: str
    new: str
    is_again: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Planned:
    """The write of an edit. `version`: that it replaces, where it is known."""

    outcome: Edited
    data: str | bytes
    encoding: Encoding
    version: str | None


async def _create(operations: EditOperations, asked: AskedEdit) -> JSONObject:
    held = await operations.read_file(asked.path)
    if held is not None and not (asked.is_again and held == asked.new):  # the cut attempt had written it
        return _occupied(asked.path)
    if held is None:
        if double := await refusal_of_double(operations, asked.path):
            return refused(double)
        await operations.write_file(asked.path, asked.new, expected_version="")
    return {"path": asked.path, "created": True, "lines": count_lines(asked.new)}


def _occupied(path: str) -> JSONObject:
    return refused(f"{path} already exists. Give the piece to replace in old_string, or write the whole file.")


async def _replace(operations: EditOperations, asked: AskedEdit) -> JSONObject:
    planned = await _planned(operations, asked)
    if not isinstance(planned, _Planned):
        return planned
    await operations.write_file(asked.path, planned.data, expected_version=planned.version)
    value: JSONObject = {"path": asked.path, "replaced": True, "lines": count_lines(planned.outcome.content)}
    if planned.outcome.is_fuzzy:
        value["fuzzyMatch"] = True
    return value if planned.encoding.is_plain else value | {"encoding": planned.encoding.description}


async def _planned(operations: EditOperations, asked: AskedEdit) -> JSONObject | _Planned:
    """The write of an edit; the call's value where there is nothing to write. Errors: `FileFailed` (`EILSEQ`)."""
    path, old, new = asked.path, asked.old, asked.new
    # The version is looked up before the content is read: what is written between the two is a conflict, never lost.
    entry = await operations.stat(path) if isinstance(operations, CanStat) else None
    if entry is not None and entry.size > MAX_EDIT_BYTES:
        return refused(f"{path} has {shown_size(entry.size)}, which is too much to edit.")
    held = await held_text(operations, path)
    if held is None:
        return await not_found(operations, path)
    content, encoding = held
    outcome = await asyncio.to_thread(replace_once, content, old, new)
    if isinstance(outcome, NotEdited):
        if asked.is_again and outcome.reason == "missing" and new and new in content:
            return {"path": path, "replaced": True, "lines": count_lines(content)}  # as above: it is done
        return refused(_reason(path, outcome))
    data = (
        outcome.content if encoding.is_plain else await asyncio.to_thread(encoding.encode, outcome.content, path=path)
    )
    return _Planned(outcome=outcome, data=data, encoding=encoding, version=entry.version if entry else None)


def _reason(path: str, outcome: NotEdited) -> str:
    match outcome.reason:
        case "ambiguous":
            count = f"{outcome.count}" if outcome.count < 100 else "at least 100"
            return (
                f"old_string occurs {count} times in {path}. Include more of the lines around it so that it is unique."
            )
        case "ambiguous_fuzzy":
            return (
                f"old_string matches multiple locations after whitespace normalization in {path} "
                "(quotes, dashes and accents are compared in a plain form as well). "
                "Include more of the lines around it so that it is unique."
            )
        case _:
            return f"old_string was not found in {path}. Read the file first, and copy the piece exactly."
