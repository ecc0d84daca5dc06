"""The file tools over a workspace in memory."""

from typing import Any

import pytest

from tests.pictures import PNG
from tests.unit.tools_app.core.files.calling import call
from tools_app.core.files.workspace import Workspace
from tools_app.core.tool import Tool
from tools_app.core.tool_output import ToolOutput
from tools_app.errors import FileFailed, ToolInputInvalid
from tools_app.file_tools.naming import NAMES, NameSet
from tools_app.file_tools.workspace_tools import create_workspace_tools
from tools_app.workspace.stores.memory import MemoryWorkspace

CYRILLIC = "Привет, это обычный русский текст\n".encode("cp1251")


@pytest.fixture
def tools(workspace: Workspace) -> dict[str, Tool]:
    return {tool.name: tool for tool in create_workspace_tools(workspace)}


# read


async def test_read_numbers_the_lines(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.txt", "one\r\ntwo\nthree")
    assert await call(tools["read"], path="a.txt") == {
        "path": "/a.txt",
        "content": "1\tone\n2\ttwo\n3\tthree",
        "totalLines": 3,
    }


async def test_a_file_has_the_name_that_programs_give_it_as_well(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await call(tools["write"], path="/workspace/src/a.py", content="one")
    assert await workspace.read_file("/src/a.py") == "one"
    assert (await call(tools["read"], path="/workspace/src/a.py"))["content"] == "1\tone"
    await call(tools["edit"], path="workspace/src/a.py", old_string="one", new_string="two")
    assert (await call(tools["list"], path="/workspace"))["entries"] == ["src/"]
    assert (await call(tools["find"], pattern="/workspace/**/*.py"))["files"] == ["/src/a.py"]
    assert (await call(tools["grep"], query="two", include="/workspace/src/*"))["matches"] == ["/src/a.py:1: two"]
    assert await call(tools["delete"], path="/workspace/src/a.py") == {"deleted": "/src/a.py"}


async def test_a_directory_of_that_name_keeps_it(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.mkdir("/workspace")
    await call(tools["write"], path="/workspace/a.py", content="one")
    assert await workspace.read_file("/workspace/a.py") == "one"
    assert (await call(tools["find"], pattern="/workspace/*"))["files"] == ["/workspace/a.py"]


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("one", 1), ("one\n", 1), ("one\ntwo\nthree\nfour\n", 4), ("one\n\n", 2), ("\n", 1)]
)
async def test_every_tool_counts_the_same_lines(
    workspace: Workspace, tools: dict[str, Tool], text: str, lines: int
) -> None:
    assert (await call(tools["write"], path="/a.txt", content=text + "x"))["lines"] == len((text + "x").split("\n"))
    assert (await call(tools["edit"], path="/a.txt", old_string=text + "x", new_string=text))["lines"] == lines
    shown = await call(tools["read"], path="/a.txt")
    assert (shown["totalLines"], len(shown["content"].splitlines())) == (lines, max(lines, 1))


async def test_read_shows_a_page(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.txt", "\n".join(f"line {number}" for number in range(1, 11)))
    shown = await call(tools["read"], path="/a.txt", offset=4, limit=2)
    assert shown["content"] == "4\tline 4\n5\tline 5"
    assert (shown["totalLines"], shown["fromLine"], shown["toLine"]) == (10, 4, 5)
    rest = await call(tools["read"], path="/a.txt", offset=9)
    assert (rest["fromLine"], rest["toLine"]) == (9, 10)
    beyond = await call(tools["read"], path="/a.txt", offset=11)
    assert beyond["error"].endswith("/a.txt has 10 lines, so there is no line 11")


async def test_read_cuts_long_lines_and_long_files(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.txt", "x" * 2_001 + "\n" * 2_001)
    lines = (await call(tools["read"], path="/a.txt"))["content"].split("\n")
    assert lines[0] == "1\t" + "x" * 2_000 + "... (truncated)"
    assert len(lines) == 2_001
    assert lines[-1] == "... (1 more lines truncated)"


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/none.txt", "File not found: /none.txt"),
        ("/dir", "/dir is a directory, not a file"),
        ("/", "/ is a directory, not a file"),
        ("../../dir", "/dir is a directory, not a file"),
        ("/a\x00b", "EINVAL"),
        ("/circle", "Could not read file: ELOOP"),
    ],
)
async def test_read_says_what_it_cannot_read(
    workspace: Workspace, tools: dict[str, Tool], path: str, error: str
) -> None:
    await workspace.mkdir("/dir")
    await workspace.symlink("/circle", "/circle")
    assert (await call(tools["read"], path=path))["error"].startswith(error)


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252", "utf-16", "utf-8-sig"])
async def test_read_shows_pages_of_a_huge_text(workspace: Workspace, tools: dict[str, Tool], encoding: str) -> None:
    lines = [f"{number} für " + "x" * 60 for number in range(1, 260_001)]
    await workspace.write_file("/huge.log", "\r\n".join(lines).encode(encoding))
    for offset, limit in ((1, 2), (123_456, 3), (259_999, 9)):
        shown = await call(tools["read"], path="/huge.log", offset=offset, limit=limit)
        page = lines[offset - 1 : offset - 1 + limit]
        assert shown["content"].split("\n") == [f"{n}\t{line}" for n, line in enumerate(page, offset)]
        assert (shown["totalLines"], shown["toLine"]) == (260_000, offset + len(page) - 1)
    whole = await call(tools["read"], path="/huge.log")
    assert whole["content"].endswith("\n... (258000 more lines truncated)")
    assert "has 260000 lines" in (await call(tools["read"], path="/huge.log", offset=260_001))["error"]


async def test_read_names_a_huge_file_that_is_no_text(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/huge.bin", b"\0" * (16 * 1024 * 1024 + 1))
    assert (await call(tools["read"], path="/huge.bin"))["kind"] == "binary"


async def test_edit_leaves_huge_files_alone(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/huge.txt", b"x" * (16 * 1024 * 1024 + 1))
    edited = await call(tools["edit"], path="/huge.txt", old_string="x", new_string="y")
    assert "/huge.txt has 16.0 MB" in edited["error"]


@pytest.mark.parametrize(
    ("data", "kind", "media_type"), [(PNG, "image", "image/png"), (b"%PDF-1.7\n", "file", "application/pdf")]
)
async def test_read_gives_pictures_and_pdfs_as_media(
    workspace: Workspace, tools: dict[str, Tool], data: bytes, kind: str, media_type: str
) -> None:
    await workspace.write_file("/x/a.bin", data, media_type="text/plain")  # what was said of the type is not believed
    output = await call(tools["read"], path="/x/a.bin")
    assert isinstance(output, ToolOutput)
    assert output.value == {
        "kind": kind,
        "path": "/x/a.bin",
        "name": "a.bin",
        "mediaType": media_type,
        "sizeBytes": len(data),
        **({"note": "If you cannot see it, read it as text: with offset 1."} if kind == "file" else {}),
    }
    assert [(media.data, media.name) for media in output.media] == [(data, "a.bin")]


async def test_read_describes_other_files_without_their_bytes(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.zip", b"PK\x03\x04\x00\x00")
    assert await call(tools["read"], path="/a.zip") == {
        "kind": "binary",
        "path": "/a.zip",
        "name": "a.zip",
        "mediaType": "application/octet-stream",
        "sizeBytes": 6,
        "unsupported": True,
        "note": "a.zip is damaged or not complete. Make or download it again, then attach it again.",
    }
    await workspace.write_file("/big.png", PNG[:8] + bytes(16) + b"x" * 3_670_016)
    big = await call(tools["read"], path="/big.png")
    assert (big["kind"], big["unsupported"]) == ("image", True)


async def test_read_shows_svg_and_other_encodings_as_text(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.svg", "<svg/>")
    await workspace.write_file("/latin.txt", "caf\xe9 au lait, s'il vous pla\xeet".encode("latin-1"))
    assert (await call(tools["read"], path="/a.svg"))["content"] == "1\t<svg/>"
    latin = await call(tools["read"], path="/latin.txt")
    assert latin["content"] == "1\tcafé au lait, s'il vous plaît"
    assert latin["encoding"] == "Windows-1252 (assumed: its bytes do not say)"


# write


async def test_write_makes_directories_and_replaces(workspace: Workspace, tools: dict[str, Tool]) -> None:
    written = await call(tools["write"], path="x/y/a.txt", content="é\nb")
    assert written == {"path": "/x/y/a.txt", "bytesWritten": 4, "lines": 2}
    await call(tools["write"], path="/x/y/a.txt", content="new")
    assert await workspace.read_file("/x/y/a.txt") == "new"
    assert await call(tools["write"], path="plain", content="") == {"path": "/plain", "bytesWritten": 0, "lines": 0}
    assert await workspace.file_exists("/plain")


@pytest.mark.parametrize("path", ["/dir", "/", "/file/below", "/a\nb"])
async def test_write_refuses_as_a_value(workspace: Workspace, tools: dict[str, Tool], path: str) -> None:
    await workspace.mkdir("/dir")
    await workspace.write_file("/file", "")
    assert set(await call(tools["write"], path=path, content="x")) == {"error"}


async def test_write_refuses_half_characters(workspace: Workspace, tools: dict[str, Tool]) -> None:
    assert "error" in await call(tools["write"], path="/a", content="\ud800")
    assert not await workspace.exists("/a")


# edit


async def test_edit_replaces_one_piece(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.txt", "one\ntwo\n")
    edited = await call(tools["edit"], path="a.txt", old_string="two", new_string="$& 2")
    assert edited == {"path": "/a.txt", "replaced": True, "lines": 2}
    assert await workspace.read_file("/a.txt") == "one\n$& 2\n"


async def test_edit_tolerates_other_white_space(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.txt", "hello   world")
    edited = await call(tools["edit"], path="/a.txt", old_string="hello world", new_string="bye")
    assert edited == {"path": "/a.txt", "replaced": True, "lines": 1, "fuzzyMatch": True}


async def test_edit_makes_a_new_file_only_where_there_is_none(workspace: Workspace, tools: dict[str, Tool]) -> None:
    made = await call(tools["edit"], path="x/new.txt", old_string="", new_string="a\nb")
    assert made == {"path": "/x/new.txt", "created": True, "lines": 2}
    again = await call(tools["edit"], path="/x/new.txt", old_string="", new_string="c")
    assert again["error"].startswith("/x/new.txt already exists")
    assert await workspace.read_file("/x/new.txt") == "a\nb"


@pytest.mark.parametrize(
    ("path", "old", "error"),
    [
        ("/none", "a", "File not found: /none (in the workspace: / or"),
        ("/a.txt", "b", "old_string occurs 2 times in /a.txt"),
        ("/a.txt", "zzz", "old_string was not found in /a.txt. Read the file first"),
        ("/a.txt", "c d", "old_string matches multiple locations after whitespace normalization in /a.txt"),
        ("/dir", "a", "EISDIR"),
        ("/dir", "", "EISDIR"),
        ("/odd.txt", "x", "EILSEQ: no text in an encoding that its bytes tell"),
    ],
)
async def test_edit_refuses_as_a_value(
    workspace: Workspace, tools: dict[str, Tool], path: str, old: str, error: str
) -> None:
    await workspace.mkdir("/dir")
    await workspace.write_file("/odd.txt", CYRILLIC)
    await workspace.write_file("/a.txt", "b b c  d\nc\td")
    assert (await call(tools["edit"], path=path, old_string=old, new_string="x"))["error"].startswith(error)
    assert await workspace.read_bytes("/odd.txt") == CYRILLIC


async def test_edit_keeps_a_replacement_character_that_is_the_texts_own(
    workspace: Workspace, tools: dict[str, Tool]
) -> None:
    await workspace.write_file("/a.txt", "a \ufffd b")
    assert (await call(tools["edit"], path="/a.txt", old_string="b", new_string="c"))["replaced"] is True
    assert await workspace.read_file("/a.txt") == "a \ufffd c"


class Interleaved(MemoryWorkspace):
    """A workspace in which another writer changes a file right after it has been read."""

    async def read_file(self, path: str) -> str | None:
        text = await super().read_file(path)
        await self.write_file(path, (text or "") + " and more")
        return text


@pytest.mark.parametrize("old", ["", "one"])
async def test_an_edit_loses_no_other_writers_work(old: str) -> None:
    workspace = Interleaved()
    if old:
        await workspace.write_file("/a.txt", "one")
    tools = {tool.name: tool for tool in create_workspace_tools(workspace)}
    edited = await call(tools["edit"], path="/a.txt", old_string=old, new_string="two")
    assert "Read it again" in edited["error"]
    assert await workspace.read_bytes("/a.txt") == (old + " and more").encode()


async def test_an_edit_that_runs_again_after_a_crash_is_done(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/a.txt", "one two")
    for attempt in (1, 2):
        edited = await call(tools["edit"], attempt=attempt, path="/a.txt", old_string="two", new_string="2")
        assert edited["replaced"] is True
        made = await call(tools["edit"], attempt=attempt, path="/b.txt", old_string="", new_string="x")
        assert made["created"] is True
    assert await workspace.read_file("/a.txt") == "one 2"


# list


async def test_list_shows_directories_then_sizes(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/b.txt", b"x" * 12)
    await workspace.write_file("/a.txt", b"x" * 1_229)
    await workspace.write_file("/z/c.bin", b"x" * 3_565_158)
    await workspace.symlink("a.txt", "/link")
    assert await call(tools["list"]) == {
        "path": "/",
        "count": 4,
        "entries": ["z/", "a.txt (1.2 KB)", "b.txt (12 B)", "link -> a.txt"],
    }
    assert (await call(tools["list"], path="z"))["entries"] == ["c.bin (3.4 MB)"]


async def test_list_shows_pages(workspace: Workspace, tools: dict[str, Tool]) -> None:
    for number in range(5):
        await workspace.write_file(f"/{number}", "")
    first = await call(tools["list"], limit=3)
    assert (first["count"], first["hasMore"], first["nextOffset"]) == (3, True, 3)
    rest = await call(tools["list"], limit=3, offset=3)
    assert rest == {"path": "/", "count": 2, "entries": ["3 (0 B)", "4 (0 B)"]}


async def test_list_tells_an_empty_directory_from_none(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.mkdir("/empty")
    await workspace.write_file("/file", "")
    assert await call(tools["list"], path="/empty") == {"path": "/empty", "count": 0, "entries": []}
    missing = await call(tools["list"], path="/none")
    assert missing["error"].startswith("Directory not found: /none (in the workspace")
    assert set(await call(tools["list"], path="/file")) == {"error"}


async def test_list_leaves_out_what_is_ignored(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/.gitignore", "*.log\n/build/\n")
    await workspace.write_file("/sub/.gitignore", "!keep.log\nx\n")
    for path in ("/a.log", "/build/out", "/sub/a.log", "/sub/keep.log", "/sub/x", "/sub/y"):
        await workspace.write_file(path, "")
    root = await call(tools["list"])
    assert (root["count"], root["ignored"]) == (2, 2)
    assert [entry.partition(" ")[0] for entry in root["entries"]] == ["sub/", ".gitignore"]
    below = await call(tools["list"], path="/sub")
    assert [entry.partition(" ")[0] for entry in below["entries"]] == [".gitignore", "keep.log", "y"]
    assert (await call(tools["list"], includeIgnored=True))["count"] == 4
    assert (await call(tools["list"], path="/build"))["entries"] == ["out (0 B)"]  # what is asked for is shown


@pytest.mark.parametrize("given", [{"limit": 0}, {"limit": 1_001}, {"offset": -1}])
async def test_list_has_limits(tools: dict[str, Tool], given: dict[str, Any]) -> None:
    with pytest.raises(ToolInputInvalid):
        await call(tools["list"], **given)


# find


async def test_find_roots_a_pattern(workspace: Workspace, tools: dict[str, Tool]) -> None:
    for path in ("/a.md", "/x/b.md", "/x/c.txt"):
        await workspace.write_file(path, "")
    assert await call(tools["find"], pattern="*.md") == {"pattern": "*.md", "count": 1, "files": ["/a.md"]}
    assert (await call(tools["find"], pattern="**/*.{md,txt}"))["files"] == ["/a.md", "/x/b.md", "/x/c.txt"]
    assert (await call(tools["find"], pattern="*"))["files"] == ["/a.md", "/x/"]
    assert "**" in (await call(tools["find"], pattern="*.py"))["note"]


async def test_find_names_200_and_counts_all(workspace: Workspace, tools: dict[str, Tool]) -> None:
    for number in range(201):
        await workspace.write_file(f"/{number}", "")
    found = await call(tools["find"], pattern="*")
    assert (found["count"], len(found["files"]), found["truncated"], found["showing"]) == (201, 200, True, 200)


async def test_find_leaves_out_what_is_ignored(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/.gitignore", "node_modules/\n")
    await workspace.write_file("/node_modules/a.js", "")
    await workspace.write_file("/b.js", "")
    assert (await call(tools["find"], pattern="**/*.js"))["files"] == ["/b.js"]
    assert (await call(tools["find"], pattern="**/*.js", includeIgnored=True))["count"] == 2


async def test_find_refuses_a_pattern_that_is_too_large(tools: dict[str, Tool]) -> None:
    assert set(await call(tools["find"], pattern="{a,b}" * 40)) == {"error"}


# delete


async def test_delete_succeeds_where_there_is_nothing(workspace: Workspace, tools: dict[str, Tool]) -> None:
    await workspace.write_file("/x/a", "")
    assert await call(tools["delete"], path="x/a") == {"deleted": "/x/a"}
    assert await call(tools["delete"], path="/x/a") == {"deleted": "/x/a"}
    assert await call(tools["delete"], path="/x") == {"deleted": "/x"}
    assert not await workspace.exists("/x")


@pytest.mark.parametrize(("path", "errno"), [("/x", "ENOTEMPTY"), ("/", "EPERM")])
async def test_delete_fails_where_it_may_not(
    workspace: Workspace, tools: dict[str, Tool], path: str, errno: str
) -> None:
    await workspace.write_file("/x/a", "")
    with pytest.raises(FileFailed) as caught:
        await call(tools["delete"], path=path)
    assert caught.value.errno == errno
    assert await workspace.exists("/x/a")
    await call(tools["delete"], path="/x", recursive=True)
    assert not await workspace.exists("/x")


# all


@pytest.mark.parametrize("names", list(NAMES))
async def test_the_tools_have_the_names_of_each_convention(names: NameSet) -> None:
    workspace = MemoryWorkspace()
    tools = create_workspace_tools(workspace, names=names)
    assert [tool.name for tool in tools] == list(NAMES[names].values())
    assert all(tool.title and tool.description and tool.input_schema["additionalProperties"] is False for tool in tools)
    await call(tools[1], path="/a", content="b")
    assert (await call(tools[0], path="/a"))["content"] == "1\tb"


def test_models_see_camel_case(tools: dict[str, Tool]) -> None:
    assert list(tools["grep"].input_schema["properties"]) == [
        "query",
        "include",
        "fixedString",
        "caseSensitive",
        "contextLines",
        "includeIgnored",
    ]
    assert tools["grep"].input_schema["required"] == ["query"]
    assert list(tools["edit"].input_schema["properties"]) == ["path", "old_string", "new_string"]
