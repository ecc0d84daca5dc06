"""Files of workspaces: reading, writing and searching where there are many, and code with the record of its calls.

    python -m bench files                        (both databases)
    python -m bench files --database postgres

Files have 1 kB of text, those in the archive 4 kB. The database lies in memory where the machine has such a folder.
"""

import asyncio
import gc
import itertools
import os
import random
import time
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import django
import uvloop

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.db import connection, transaction  # noqa: E402 - after the set-up
from django.db.models import Q  # noqa: E402 - after the set-up

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row, milliseconds, row, table  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from chat.think import ToolContext, tool  # noqa: E402 - after the set-up
from thinkproject.kernel.aio import db  # noqa: E402 - after the set-up
from tools_app.code_tool.tool import create_execute_tool  # noqa: E402 - after the set-up
from tools_app.core.files.workspace import Put  # noqa: E402 - after the set-up
from tools_app.core.tool import Tool  # noqa: E402 - after the set-up
from tools_app.file_tools.finding import create_find_tool  # noqa: E402 - after the set-up
from tools_app.file_tools.searching import create_grep_tool  # noqa: E402 - after the set-up
from tools_app.sandbox.deno import DenoSandbox  # noqa: E402 - after the set-up
from tools_app.workspace import services  # noqa: E402 - after the set-up
from tools_app.workspace.archive import export_zip  # noqa: E402 - after the set-up
from tools_app.workspace.copying import copy_workspaces  # noqa: E402 - after the set-up
from tools_app.workspace.stores.database import DatabaseWorkspace  # noqa: E402 - after the set-up
from tools_app.workspace.turn_files import changed_in_turn, compared  # noqa: E402 - after the set-up
from tools_app.workspace.undo import undo_files, undoable  # noqa: E402 - after the set-up

WORDS = ("amber", "basil", "cedar", "delta", "ember", "fable", "grove", "hazel", "ivory", "jolly")
CALLS = 200
ROUNDS, SMOKE_ROUNDS = 9, 1

Work = Callable[[], Awaitable[object]]


def text(seed: int, size: int) -> bytes:
    """Lines of words."""
    chance = random.Random(seed)
    lines = (" ".join(chance.choice(WORDS) for _ in range(10)) for _ in range(size // 50))
    return "\n".join(lines).encode()[:size]


def path_of(number: int, folders: int) -> str:
    """The path of a file; one in ten is Markdown."""
    return f"/src/{number % folders:03}/{number}.{'py' if number % 10 else 'md'}"


async def filled(scope: str, count: int, size: int, folders: int) -> DatabaseWorkspace:
    """A workspace of so many files in so many directories."""
    workspace = services.open_for_scope(scope, None)
    for begin in range(0, count, 5_000):
        numbers = range(begin, min(count, begin + 5_000))
        await workspace.apply([Put(path=path_of(at, folders), content=text(at, size)) for at in numbers])
    return workspace


async def times(work: Work, rounds: int) -> list[float]:
    """Seconds of each run, after one that does not count."""
    await work()
    found = []
    for _ in range(rounds):
        began = time.perf_counter()
        await work()
        found.append(time.perf_counter() - began)
    return found


async def rows_of(cases: dict[str, Work], rounds: int, *, among: str = "") -> list[Row]:
    """A row for each case."""
    return [row(f"{name}{among}", "ms", milliseconds(await times(work, rounds))) for name, work in cases.items()]


async def search_rows(count: int, rounds: int) -> list[Row]:
    """Searching in many files."""
    workspace = await filled("search", count, 1_000, 100)
    grep: Any = create_grep_tool(workspace).function
    find: Any = create_find_tool(workspace).function

    async def search(query: str, include: str = "**/*") -> None:
        await grep(
            query=query,
            include=include,
            fixed_string=False,
            case_sensitive=False,
            context_lines=0,
            include_ignored=False,
        )

    cases: dict[str, Work] = {
        "grep, in none": lambda: search("quokka"),
        "grep, 200 matches": lambda: search("am+ber"),
        "grep, in one directory of 100": lambda: search("quokka", "/src/007/**"),
        "find, one in ten": lambda: find(pattern="**/*.md", include_ignored=False),
        "glob, one in ten": lambda: workspace.glob("/**/*.md"),
        "glob, one directory of 100": lambda: workspace.glob("/src/007/*"),
    }
    return await rows_of(cases, rounds, among=f", of {count:,} files")


async def list_rows(count: int, rounds: int) -> list[Row]:
    """Paging through one directory."""
    workspace = await filled("list", count, 0, 1)
    cases: dict[str, Work] = {
        "first page of 200": lambda: workspace.read_dir("/src/000", limit=200),
        "last page of 200": lambda: workspace.read_dir("/src/000", limit=200, offset=count - 200),
    }
    return await rows_of(cases, rounds, among=f", of {count:,} entries")


async def whole_rows(count: int, rounds: int) -> list[Row]:
    """What takes all files of a workspace."""
    workspace = await filled("whole", count, 4_000, 20)
    forks, turns = itertools.count(), itertools.count()

    async def export() -> None:
        async for _piece in export_zip(workspace):
            pass

    async def change() -> None:
        number = next(turns)
        changed = [Put(path=path_of(at, 20), content=text(at + number + 1, 4_000)) for at in range(1, count, 10)]
        await workspace.in_turn(f"turn-{number}").apply(changed)

    async def compare() -> None:
        assert compared(await db(lambda: changed_in_turn("turn-0", limit=200)))

    cases: dict[str, Work] = {
        f"zip of {count:,} files of 4 kB": export,
        f"copy for a fork, {count:,} files": lambda: db(copy_workspaces, "whole", f"fork-{next(forks)}", None),
        f"a turn changes {count // 10} files, kept": change,
        f"files of a turn, {min(200, count // 10)} compared": compare,
    }
    return await rows_of(cases, rounds)


async def undo_rows(count: int, rounds: int) -> list[Row]:
    """Undo and redo of few files and of all, in a workspace of many."""
    workspace = await filled("undo", count, 1_000, 100)
    few, numbers = 10, itertools.count()
    for turn, changed in (("few", range(few)), ("most", range(few, count))):
        await workspace.in_turn(turn).apply([Put(path=path_of(at, 100), content=text(at + 1, 1_000)) for at in changed])
    made = [Put(path=f"/made{path_of(at, 1_000)}", content=text(at, 1_000)) for at in range(few, count)]
    await workspace.in_turn("made").apply(made)

    def put_back(some: Q, undo_id: str) -> None:
        with transaction.atomic():
            assert not undo_files(some, undo_id=undo_id, may_write=Q())[1]

    async def both(turn: str) -> None:
        name = f"{turn}-{next(numbers)}"
        await db(put_back, Q(turn_id=turn) | Q(turn_id__startswith=f"{turn}-"), f"{name}-undo")
        await db(put_back, Q(turn_id=f"{name}-undo"), f"{name}-redo")

    async def compare(turn: str) -> None:
        assert compared(await db(lambda: changed_in_turn(turn, limit=200)))

    cases: dict[str, Work] = {}
    for turn, what in (
        ("few", f"{few} changed"),
        ("most", f"{count - few:,} changed"),
        ("made", f"{count - few:,} made"),
    ):
        cases |= {
            f"files of a turn, {what}": partial(compare, turn),
            f"preview of an undo, {what}": partial(db, partial(undoable, Q(turn_id=turn), may_write=Q())),
            f"undo and its redo, {what}": partial(both, turn),
        }
    return await rows_of(cases, rounds, among=f", of {count:,} files")


async def small_rows(rounds: int) -> list[Row]:
    """One small file."""
    workspace = services.open_for_scope("small", None)
    turn = workspace.in_turn("small")
    await workspace.write_file("/d/f", "x")
    cases: dict[str, Work] = {
        "read a file": lambda: workspace.read_file("/d/f"),
        "write a file": lambda: workspace.write_file("/d/f", "y" * 1_000),
        "write a file in a turn": lambda: turn.write_file("/d/f", "z" * 1_000),
    }
    return await rows_of(cases, rounds * 20)


@tool
async def same(value: int) -> int:
    """Give it back."""
    return value


async def code_rows(rounds: int) -> list[Row]:
    """Code as the tool runs it: its row, a record before and after each call."""
    sandbox = DenoSandbox(spare=True)
    made: Tool = create_execute_tool([same], sandbox=sandbox)
    function: Any = made.function
    numbers = itertools.count()

    async def run(code: str) -> None:
        call = f"c{next(numbers)}"
        context = ToolContext(
            call_id=call,
            tool_name=made.name,
            user_id=None,
            agent="bench",
            instance_name="bench",
            turn_id="bench",
            attempt=1,
            idempotency_key=f"bench:{call}",
        )
        await function(context, code)
        await sandbox.warmed()

    one_by_one = f"for (let i = 0; i < {CALLS}; i++) await tools.same({{value: i}}); 1"
    at_once = f"(await Promise.all([...Array({CALLS}).keys()].map((value) => tools.same({{value}})))).length"
    plain = await times(lambda: run("1"), rounds * 3)
    rows = [row("execute, with its record", "ms", milliseconds(plain))]
    for name, code in (("a recorded call, one after the other", one_by_one), ("a recorded call, all at once", at_once)):
        found = await times(partial(run, code), rounds)
        rows.append(row(name, "µs", [value / CALLS * 1e6 for value in found]))
    await sandbox.close()
    return rows


async def measure(*, is_smoke: bool) -> list[Row]:
    """Measure all."""
    rounds = SMOKE_ROUNDS if is_smoke else ROUNDS
    return [
        *await small_rows(rounds),
        *await search_rows(200 if is_smoke else 10_000, rounds),
        *await list_rows(400 if is_smoke else 100_000, rounds),
        *await whole_rows(100 if is_smoke else 1_000, rounds),
        *await undo_rows(100 if is_smoke else 10_000, min(rounds, 3)),
        *await code_rows(rounds),
    ]


def run(options: Options) -> list[Row]:
    """Measure; returns the table's rows."""
    gc.freeze()  # as the product's processes do: what was loaded is not looked through
    with database(), asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(measure(is_smoke=options.is_smoke))


def main() -> None:
    """Measure and print the table."""
    print(table([(f"Files of workspaces ({connection.vendor})", run(Options()))]))


if __name__ == "__main__":
    main()
