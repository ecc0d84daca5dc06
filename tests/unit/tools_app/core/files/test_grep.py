"""The tool `grep` over a workspace in memory, and over a storage that reads one file at a time."""

from typing import Any

import pytest

from tests.unit.tools_app.core.files.calling import call
from tools_app.core.files.searching import Search
from tools_app.core.files.workspace import Entry, Workspace
from tools_app.core.tool import Tool
from tools_app.file_tools.searching import create_grep_tool
from tools_app.workspace.stores.memory import MemoryWorkspace


class OneAtATime:
    """The two operations that `grep` needs, and no more."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        return await self._workspace.glob(pattern, limit=limit, ignored=ignored)

    async def read_file(self, path: str) -> str | None:
        return await self._workspace.read_file(path)


@pytest.fixture(params=["many", "one"])
def grep(workspace: Workspace, request: pytest.FixtureRequest) -> Tool:
    return create_grep_tool(workspace if request.param == "many" else OneAtATime(workspace))


async def test_matches_are_lines(workspace: Workspace, grep: Tool) -> None:
    await workspace.write_file("/a.py", "import os\r\n\r\nIMPORT sys\r\n")
    await workspace.write_file("/x/b.py", "print()\n")
    assert await call(grep, query="^import .*s$") == {
        "query": "^import .*s$",
        "filesSearched": 2,
        "filesWithMatches": 1,
        "totalMatches": 2,
        "matches": ["/a.py:1: import os", "/a.py:3: IMPORT sys"],
    }
    sensitive = await call(grep, query="^import", caseSensitive=True, include="*.py")
    assert (sensitive["matches"], sensitive["filesSearched"]) == (["/a.py:1: import os"], 1)


async def test_context_shows_the_lines_around(workspace: Workspace, grep: Tool) -> None:
    await workspace.write_file("/a", "1\n2\n3\n4\n5")
    found = await call(grep, query="[25]", contextLines=1)
    assert found["matches"] == [
        {"file": "/a", "line": 2, "context": "  1\t1\n> 2\t2\n  3\t3"},
        {"file": "/a", "line": 5, "context": "  4\t4\n> 5\t5"},
    ]


async def test_a_fixed_string_is_no_expression(workspace: Workspace, grep: Tool) -> None:
    await workspace.write_file("/a", "a.c\nabc\n[x](y)")
    assert (await call(grep, query="A.C", fixedString=True))["matches"] == ["/a:1: a.c"]
    assert (await call(grep, query="[x](y", fixedString=True))["matches"] == ["/a:3: [x](y)"]


@pytest.mark.parametrize(
    "query", ["(", "[a", r"(a)\1", "(?=a)", "a{2000}", "(a?){999}" * 20, r"(\pL?\pN?){99}", "", "x" * 1_001, "\ud800"]
)
async def test_what_is_no_expression_is_an_error_value(workspace: Workspace, grep: Tool, query: str) -> None:
    assert (await call(grep, query=query))["error"].startswith("Invalid regex: ")


@pytest.mark.parametrize("query", [r"(a+)+$", r"(a|aa)+$", r"(.*)*x", r"([a-z]+)*\d"])
async def test_hostile_expressions_take_linear_time(workspace: Workspace, grep: Tool, query: str) -> None:
    """An engine that backtracks would not end in this universe: that this test ends is its assertion."""
    await workspace.write_file("/a", "a" * 100_000 + "!")
    assert (await call(grep, query=query))["totalMatches"] == 0


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16"])
async def test_large_files_are_searched_in_pieces(workspace: Workspace, encoding: str) -> None:
    lines = [f"{number} {'needle' if number % 100_000 == 99_999 else 'hay'} für" for number in range(1, 450_000)]
    await workspace.write_file("/big", "\r\n".join(lines).encode(encoding))
    await workspace.write_file("/big.bin", b"\0needle" * 200_000)
    await workspace.write_file("/small", "needle")
    found = await call(create_grep_tool(workspace), query="(needle|^449999 hay) für$")
    hits = [99_999, 199_999, 299_999, 399_999]
    assert found["matches"] == [f"/big:{number}: {number} needle für" for number in hits] + [
        "/big:449999: 449999 hay für"
    ]
    assert (found["filesSearched"], found["filesWithMatches"]) == (2, 1)
    assert found["note"] == "1 files are no text and were not searched."


async def test_a_line_that_is_longer_than_a_piece_counts_once(workspace: Workspace) -> None:
    lines = [b"head", b"x" * 9_000_000 + b"needle", b"needle", *[b"hay"] * 1_500_000, b"needle"]
    await workspace.write_file("/big", b"\n".join(lines))
    found = await call(create_grep_tool(workspace), query="needle")
    assert [match.split(":")[1] for match in found["matches"]] == ["2", "3", str(len(lines))]


async def test_large_files_that_cannot_be_read_in_pieces_are_counted(workspace: Workspace) -> None:
    await workspace.write_file("/big", "needle\n" * 160_000)
    found = await call(create_grep_tool(OneAtATime(workspace)), query="needle")
    assert (found["filesSearched"], found["filesSkipped"]) == (0, 1)
    assert found["note"] == "1 files above 1 MiB were not searched."


async def test_binary_files_are_left_out(workspace: Workspace) -> None:
    await workspace.write_file("/a.bin", b"needle\x00")
    await workspace.write_file("/b", b"needle caf\xe9")
    found = await call(create_grep_tool(workspace), query="needle")
    assert found["matches"] == ["/b:1: needle café"]
    assert found["note"] == "1 files are no text and were not searched."


async def test_the_search_stops_at_200_matches(workspace: Workspace, grep: Tool) -> None:
    for number in range(3):
        await workspace.write_file(f"/{number}", "needle\n" * 150)
    found = await call(grep, query="needle")
    assert (found["totalMatches"], len(found["matches"]), found["truncated"]) == (200, 200, True)
    assert (found["filesSearched"], found["filesWithMatches"]) == (2, 2)


async def test_long_lines_are_cut(workspace: Workspace, grep: Tool) -> None:
    await workspace.write_file("/a", "needle" + "x" * 1_000)
    [match] = (await call(grep, query="needle"))["matches"]
    assert match == "/a:1: needle" + "x" * 494 + "... (truncated)"


async def test_ignored_files_and_links_are_left_out(workspace: Workspace, grep: Tool) -> None:
    await workspace.write_file("/.gitignore", "vendor/\n")
    await workspace.write_file("/vendor/a", "needle")
    await workspace.write_file("/b", "needle")
    await workspace.symlink("/b", "/link")
    assert (await call(grep, query="needle"))["matches"] == ["/b:1: needle"]
    everything = await call(grep, query="needle", includeIgnored=True)
    assert everything["matches"] == ["/b:1: needle", "/vendor/a:1: needle"]


async def test_a_pattern_of_one_directory_gets_a_hint(workspace: Workspace, grep: Tool) -> None:
    await workspace.write_file("/x/a.py", "needle")
    assert "**" in (await call(grep, query="needle", include="*.py"))["note"]


async def test_ten_thousand_files_are_searched_in_one_call(workspace: Workspace) -> None:
    tool = create_grep_tool(workspace)
    for number in range(10_000):
        await workspace.write_file(f"/d{number % 100}/{number}.txt", f"line\nnumber {number}\n" + "filler " * 50)
    found = await call(tool, query=r"number 99\d\d$")
    assert (found["filesSearched"], found["totalMatches"]) == (10_000, 100)


def test_a_search_stops_between_pieces_of_a_file() -> None:
    search = Search("needle", is_fixed=True, is_case_sensitive=True)
    data = b"needle\n" * 100_000
    asked: list[bool] = []

    def should_stop() -> bool:
        asked.append(True)
        return len(asked) > 2

    numbers = [match.number for match in search.lines_of(data, 1_000_000, should_stop)]
    assert numbers == list(range(1, len(numbers) + 1))
    assert 2 * 64 * 1024 / 7 <= len(numbers) < 3 * 64 * 1024 / 7
    assert len(search.lines_of(data, 1_000_000)) == 100_000


class Vanishing(MemoryWorkspace):
    """A workspace whose files are gone, or are directories, once they have been listed."""

    async def glob(self, pattern: str, *, limit: int | None = None, ignored: bool = True) -> list[Entry]:
        found = await super().glob(pattern, limit=limit, ignored=ignored)
        await self.rm("/a")
        await self.rm("/b")
        await self.mkdir("/b")
        return found


@pytest.mark.parametrize("wrap", [lambda workspace: workspace, OneAtATime])
async def test_files_that_go_during_the_search_are_left_out(wrap: Any) -> None:
    workspace = Vanishing()
    for path in ("/a", "/b", "/c"):
        await workspace.write_file(path, "needle")
    found = await call(create_grep_tool(wrap(workspace)), query="needle")
    assert found["matches"] == ["/c:1: needle"]
