"""Makes a tool of a model of its input and a function. What a file operation refuses becomes a value with `error`."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files.operations import CanStat
from tools_app.core.files.paths import MOUNT, chain, normalise, without_mount
from tools_app.core.guard.reach import held_back
from tools_app.core.permissions.subjects import UNKNOWN, Subject, path_subjects
from tools_app.core.schema import json_schema, parse_arguments
from tools_app.core.tool import NAME_PATTERN, Tool, ToolContext
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import FileFailed, ToolDeclarationInvalid, ToolError
from tools_app.file_tools.lookalikes import proposed
from tools_app.file_tools.naming import TITLES, FileToolKind

TIMEOUT_SECONDS = 60.0
_WILD: Final = re.compile(r"[*?\[{\\]")
PERMISSIONS: Final[dict[FileToolKind, str]] = {
    "read": "read",
    "write": "edit",
    "edit": "edit",
    "list": "list",
    "find": "find",
    "grep": "grep",
    "delete": "delete",
}
"""The keys of rules, whatever the tools are called."""

READING: Final[frozenset[FileToolKind]] = frozenset({"read", "list", "find", "grep"})


class Input(BaseModel):
    """Base of the inputs. Fields have the names of Python; models see the camel case of `alias`."""

    model_config = ConfigDict(extra="forbid")


PathField: TypeAlias = Annotated[str, Field(description="Absolute path in the workspace.")]
EncodingField: TypeAlias = Annotated[str | None, Field(description="Of the file, where its bytes do not tell.")]
IgnoredField: TypeAlias = Annotated[
    bool, Field(alias="includeIgnored", description="Also what .gitignore files exclude.")
]


def file_tool(
    kind: FileToolKind,
    name: str,
    arguments: type[Input],
    function: Callable[..., Awaitable[JSONObject | ToolOutput]],
    *,
    check: Callable[..., Awaitable[object]] | None = None,
    refusals_are_errors: bool = False,
) -> Tool:
    """Make a tool. Its description is the docstring of `arguments`. Errors: `ToolDeclarationInvalid` for its name.

    `check`: gives a value with `error` for a call that would do nothing; it has the arguments by name.
    `refusals_are_errors`: whether what the storage refuses is a failed call instead of a value with `error`.
    """
    if not NAME_PATTERN.match(name):
        raise ToolDeclarationInvalid(f"{name!r} is not a tool name: expected 1 to 64 letters, digits, '_' or '-'")

    async def run(**given: object) -> JSONObject | ToolOutput:
        try:
            return await function(**given)
        except FileFailed as error:
            if refusals_are_errors:
                raise
            return refused(error.message)

    async def checked(given: JSONObject, _context: ToolContext) -> None:
        assert check is not None, "is called where there is one"
        found = await check(**parse_arguments(arguments, given, tool_name=name))
        if isinstance(found, dict) and "error" in found:
            raise ToolError(found["error"])

    schema = json_schema(arguments)
    description = schema.pop("description")
    return Tool(
        name=name,
        description=description,
        input_schema=schema,
        function=run,
        timeout_seconds=TIMEOUT_SECONDS,
        arguments=arguments,
        context_parameter="call" if "call" in function.__annotations__ else None,
        title=TITLES[kind],
        check=checked if check is not None else None,
        read_only=kind in READING,
        permission=PERMISSIONS[kind],
    )


def about_paths(operations: object, kind: FileToolKind, made: Tool) -> Tool:
    """The tool whose calls rules judge by their paths. `operations`: the store, which knows what a path leads to."""
    return replace(made, patterns=lambda given, _context: _subjects(operations, kind, given))


async def _subjects(operations: object, kind: FileToolKind, given: JSONObject) -> list[Subject]:
    """The paths that a call is about: as it names them, and what links make of them. One look at the store, or more."""
    wanted = given.get("path", given.get("pattern", given.get("include", "/")))
    fixed = _WILD.split(str(wanted), maxsplit=1)[0] if kind in {"find", "grep"} else str(wanted)
    is_wild = fixed != str(wanted)
    named = fixed[: fixed.rfind("/") + 1] or "/" if is_wild else fixed
    is_tree = is_wild or kind == "find" or (kind == "grep" and "include" not in given)
    is_tree = is_tree or (kind == "delete" and given.get("recursive") is True)
    try:
        with held_back():  # a look at names before the call is no part of what it returns
            path = await own_path(operations, named)
            return path_subjects(path, await _real_path(operations, path), is_tree=is_tree)
    except FileFailed:
        return [UNKNOWN]  # no path: the call itself refuses it


async def _real_path(operations: object, path: str) -> str:
    """The path without links; of one where nothing is, the nearest directory above it without links."""
    if not isinstance(operations, CanStat):
        return path
    for above in [*reversed(chain(path)), "/"]:
        entry = await operations.stat(above)
        if entry is not None:
            return f"{entry.path.rstrip('/')}{path[len(above.rstrip('/')) :]}" or "/"
    return path


async def own_path(operations: object, path: str) -> str:
    """The path of the workspace that a model means, which may name it as programs do (`/workspace/a.py`).

    A workspace with a directory of that name keeps it, and operations that cannot tell are asked for the path as it is.
    """
    path = normalise(path)
    inner = without_mount(path)
    if inner is None or not isinstance(operations, CanStat) or await operations.stat(MOUNT) is not None:
        return path
    return inner


async def own_pattern(operations: object, pattern: str) -> str:
    """The same for a pattern of paths."""
    inner = without_mount(pattern)
    return pattern if inner is None or await own_path(operations, MOUNT) == MOUNT else inner


async def not_found(operations: object, path: str, kind: str = "File") -> JSONObject:
    """The value of a call for a file that is not there: where it was looked for, what looks alike, how to see more."""
    where = "in the workspace: / or /workspace; list and find show what is there"
    return refused(f"{kind} not found: {path} ({where}).{await proposed(operations, path)}")


def refused(message: str) -> JSONObject:
    """The value that says why a call did nothing."""
    return {"error": message}
