"""Names that look alike: a missing one proposes those that are there, and none is taken for another.

Composed and decomposed letters, typographic quotes and dashes, and spaces of all kinds look the same to people and
models, and are different names to a storage.
"""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Final

from tools_app.core.files.editing import plain_form
from tools_app.core.files.operations import CanStat, ListOperations
from tools_app.core.files.paths import name_of, normalise, parent_of
from tools_app.core.guard.reach import reaching
from tools_app.errors import FileFailed

MAX_FOUND: Final = 3
MAX_LISTED: Final = 1000
"""Entries of a directory that are looked at."""


async def alike(operations: object, path: str) -> list[str]:
    """Paths that are there and look like one that is not; none where the storage cannot list directories."""
    if not isinstance(operations, CanStat) or not isinstance(operations, ListOperations):
        return []
    places = ["/"]
    for name in normalise(path).split("/")[1:]:
        wanted = _folded(name)
        found: list[str] = []
        for place in places:
            try:
                children = await operations.read_dir(place, limit=MAX_LISTED)
            except FileFailed:  # a file, or gone meanwhile
                continue
            found += [child.path for child in children if _folded(child.name) == wanted]
        places = found[:MAX_FOUND]
    return [place for place in places if place != path]


def alike_among(path: str, paths: Iterable[str]) -> list[str]:
    """The same among paths that are known."""
    wanted = _folded(path)
    return [each for each in paths if each != path and _folded(each) == wanted][:MAX_FOUND]


def proposal(path: str, found: list[str]) -> str:
    """The sentence that proposes what is there, with the numbers of characters that differ; empty for nothing."""
    if not found:
        return ""
    named = " and ".join(f"{each} ({_difference(path, each)})" for each in found)
    return f"There is {named}, which looks alike: use that name exactly, or bash with a pattern."


async def proposed(operations: object, path: str) -> str:
    """The sentence for a path that is not there, with a space before it; empty where nothing looks like it."""
    words = proposal(path, await alike(operations, path))
    return f" {words}" if words else ""


@asynccontextmanager
async def naming_alike(operations: object) -> AsyncIterator[None]:
    """Have `ENOENT` say which name looks like the one that is missing."""
    try:
        yield
    except FileFailed as error:
        path = error.data.get("path")
        if error.errno != "ENOENT" or not isinstance(path, str):
            raise
        words = await proposed(operations, path)
        if not words:
            raise
        raise FileFailed(f"{error.message}.{words}", errno="ENOENT", path=path) from error


async def refusal_of_double(operations: object, path: str) -> str:
    """The reason why a file of this name is not made: another one looks the same, case apart. Empty where none does."""
    if not isinstance(operations, CanStat) or not isinstance(operations, ListOperations):
        return ""
    if await operations.stat(path) is not None:
        return ""
    folder = parent_of(path)
    try:
        with reaching(None):  # names that are only compared are not read by the model
            children = await operations.read_dir(folder, limit=MAX_LISTED)
    except FileFailed:
        return ""
    wanted = plain_form(name_of(path))
    found = next((child.path for child in children if plain_form(child.name) == wanted), "")
    if not found:
        return ""
    await operations.read_dir(folder, limit=MAX_LISTED)  # now one of them is
    return (
        f"{path} is not there, and {found} is, which looks the same ({_difference(path, found)}). Write to that name "
        "exactly, or choose one that looks different."
    )


def _folded(text: str) -> str:
    return plain_form(text).casefold()


def _difference(mine: str, other: str) -> str:
    """The first characters in which two texts differ, as `it has U+0065 U+0301 for U+00E9`."""
    start = next((at for at, (a, b) in enumerate(zip(mine, other, strict=False)) if a != b), min(len(mine), len(other)))
    end = 0
    while end < min(len(mine), len(other)) - start and mine[-1 - end] == other[-1 - end]:
        end += 1
    return f"it has {_numbers(other[start : len(other) - end])} for {_numbers(mine[start : len(mine) - end])}"


def _numbers(text: str) -> str:
    return " ".join(f"U+{ord(char):04X}" for char in text[:4]) + (" …" if len(text) > 4 else "") or "nothing"
