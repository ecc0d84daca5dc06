"""A workspace as functions for code."""

import gzip
import io
import re
import zipfile
from typing import Any

import pytest

from tests.filled_workspace import contents, filled
from thinkproject.kernel.errors import ThinkError
from tools_app.code_tool.state.declared import DECLARED, FUNCTIONS_DECLARED, USUAL, listed
from tools_app.code_tool.state.functions import FUNCTIONS, ONCE, StateFunctions
from tools_app.core.files.workspace import Workspace
from tools_app.errors import ArchiveInvalid, CodeInvalid, FileFailed
from tools_app.workspace import unpacking


def state(files: Workspace) -> Any:
    functions = StateFunctions(files)

    async def call(name: str, **value: Any) -> Any:
        return await functions.run(f"state.{name}", value)

    return call


async def test_files_are_written_read_and_removed() -> None:
    files = await filled()
    call = state(files)
    await call("writeFile", path="/a.txt", content="one")
    await call("appendFile", path="/a.txt", content=" two")
    assert await call("readFile", path="/a.txt") == "one two"
    await call("writeFileBytes", path="/b", content={"$bytes": "AQI="})
    assert await files.read_bytes("/b") == b"\1\2"
    assert await call("readFileBytes", path="/b") == {"$bytes": "AQI="}
    assert await call("exists", path="/none") is False
    assert (await call("stat", path="/b"))["type"] == "file"
    await call("writeFileBytes", path="/b", content={"$bytes": "TfxsbGVy"})  # what is no UTF-8 is never half a text
    with pytest.raises(FileFailed, match="readFileBytes"):
        await call("readFile", path="/b")
    await call("rm", path="/b")
    with pytest.raises(FileFailed):
        await call("rm", path="/b")
    assert await call("readFile", path="/b") is None


async def test_json_is_read_asked_and_changed() -> None:
    call = state(await filled({"/data.json": '{"items": [{"name": "a"}]}', "/bad": "{"}))
    assert await call("queryJson", path="/data.json", query="items[0].name") == "a"
    assert await call("queryJson", path="/data.json", query="items.5.name") is None
    await call("updateJson", path="/data.json", query="items.0.name", value="b")
    assert await call("readJson", path="/data.json") == {"items": [{"name": "b"}]}
    with pytest.raises(CodeInvalid, match="has no JSON"):
        await call("readJson", path="/bad")
    with pytest.raises(CodeInvalid, match="nothing to set"):
        await call("updateJson", path="/data.json", query="items.9", value=1)


async def test_text_is_searched_in_one_file_and_in_many() -> None:
    call = state(await filled({"/a": "One\ntwo\none", "/b": "none", "/c": "\0one"}))
    assert await call("searchText", path="/a", query="one") == [{"line": 1, "text": "One"}, {"line": 3, "text": "one"}]
    assert await call("searchText", path="/a", query="one", caseSensitive=True) == [{"line": 3, "text": "one"}]
    found = await call("searchFiles", pattern="/*", query="one")
    assert [each["path"] for each in found] == ["/a", "/b"]


async def test_text_is_replaced_or_shown_only() -> None:
    files = await filled({"/a": "x y x", "/b": "x", "/c": "z"})
    call = state(files)
    shown = await call("replaceInFiles", pattern="/*", search="x", replacement="$&", dryRun=True)
    assert [(each["path"], each["count"]) for each in shown] == [("/a", 2), ("/b", 1)]
    assert await files.read_bytes("/a") == b"x y x"
    await call("replaceInFiles", pattern="/*", search="x", replacement="$&")
    assert (await files.read_bytes("/a"), await files.read_bytes("/b")) == (b"$& y $&", b"$&")
    assert (await call("replaceInFile", path="/c", search="q", replacement=""))["count"] == 0


async def test_edits_are_planned_and_applied_together() -> None:
    files = await filled({"/a": "one two", "/b": "x"})
    call = state(files)
    edits = [
        {"path": "/a", "search": "one", "replacement": "1"},
        {"path": "/a", "search": "two", "replacement": "2"},
        {"path": "/b", "delete": True},
        {"path": "/new", "content": "n"},
    ]
    plan = await call("planEdits", edits=edits)
    assert [each["path"] for each in plan] == ["/a", "/b", "/new"]
    assert "+1 2" in plan[0]["diff"]
    assert "+n" in plan[2]["diff"]
    assert await files.read_bytes("/a") == b"one two"
    await call("applyEdits", edits=edits)
    assert await contents(files) == {"/a": b"1 2", "/new": b"n"}


async def test_one_edit_that_fits_nowhere_changes_nothing() -> None:
    files = await filled({"/a": "one one"})
    edits = [{"path": "/new", "content": "n"}, {"path": "/a", "search": "one", "replacement": "1"}]
    with pytest.raises(CodeInvalid, match="exactly once"):
        await state(files)("applyEdits", edits=edits)
    assert await contents(files) == {"/a": b"one one"}


async def test_trees_and_digests() -> None:
    call = state(await filled({"/a": "abc"}))
    assert await call("summarizeTree") == {"files": 1, "directories": 0, "bytes": 3}
    assert (await call("hash", path="/a")).startswith("ba7816bf")
    assert (await call("detect", path="/a"))["isText"] is True
    assert [each["path"] for each in await call("walkTree", path="/", depth=1)] == ["/a"]


WRONG: list[tuple[str, dict[str, Any]]] = [
    ("readFile", {}),
    ("readFile", {"path": 5}),
    ("writeFile", {"path": "/a", "content": 5}),
    ("writeFile", {"path": "/a", "content": {"$bytes": "%"}}),
    ("rm", {"path": "/a", "recursive": "yes"}),
    ("readdir", {"path": "/", "limit": -1}),
    ("hash", {"path": "/a", "algorithm": "crc"}),
    ("replaceInFile", {"path": "/a", "search": "", "replacement": "x"}),
    ("searchText", {"path": "/a", "query": ""}),
    ("searchText", {"path": "/a", "query": "(", "regex": True}),
    ("searchText", {"path": "/a", "query": "(?=x)", "regex": True}),
    ("searchText", {"path": "/a", "query": "\ud800"}),
    ("searchText", {"path": "/none", "query": "x"}),
    ("replaceInFile", {"path": "/a", "search": "(", "replacement": "x", "regex": True}),
    ("archive", {"path": "/none", "target": "/x.zip"}),
    ("unarchive", {"path": "/none", "target": "/"}),
    ("compress", {"path": "/none"}),
    ("applyEdits", {"edits": "all"}),
    ("applyEdits", {"edits": [1]}),
    ("__class__", {}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
async def test_wrong_arguments_are_explained(name: str, value: dict[str, Any]) -> None:
    with pytest.raises(ThinkError):
        await state(await filled({"/a": "x"}))(name, **value)


async def test_lines_are_searched_for_an_expression() -> None:
    call = state(await filled({"/a": "x = 1\ny = 22\nX = 333", "/b": "x.x", "/large": "x\n" * 600_000}))
    assert await call("searchText", path="/a", query=r"^x = \d+$", regex=True) == [
        {"line": 1, "text": "x = 1"},
        {"line": 3, "text": "X = 333"},
    ]
    assert await call("searchText", path="/a", query=r"= \d{2}$", regex=True, caseSensitive=True) == [
        {"line": 2, "text": "y = 22"}
    ]
    assert await call("searchText", path="/b", query="x.x") == [{"line": 1, "text": "x.x"}]
    found = await call("searchFiles", pattern="/*", query="x.(x|1)|= 1", regex=True)
    assert [each["path"] for each in found] == ["/a", "/b"]
    assert len(await call("searchText", path="/large", query="x")) == 200
    with pytest.raises(CodeInvalid, match="a text only"):
        await call("searchText", path="/large", query="x", regex=True)


async def test_what_an_expression_matches_is_replaced_by_its_groups() -> None:
    files = await filled({"/a": "Ada Lovelace\nAlan Turing\n", "/price": "5 EUR", "/raw": b"\xff1\xe2\x82\xac"})
    call = state(files)
    names = {"search": r"(?m)^(?P<first>\w+) (\w+)$", "replacement": "$2, $<first> ($&) $10$3", "regex": True}
    shown = await call("replaceInFile", path="/a", **names)
    assert shown["count"] == 2
    assert (await contents(files))["/a"] == (
        b"Lovelace, Ada (Ada Lovelace) Ada0$3\nTuring, Alan (Alan Turing) Alan0$3\n"
    )
    await call("replaceInFiles", pattern="/price", search=r"(\d) EUR", replacement="$$$1", regex=True)
    assert (await contents(files))["/price"] == b"$5"
    await call("replaceInFile", path="/raw", search=r"\d", replacement="2", regex=True)
    assert (await contents(files))["/raw"] == b"\xff2\xe2\x82\xac"
    await call("replaceInFile", path="/raw", search="z*", replacement="-", regex=True)
    assert "€" in (await contents(files))["/raw"].decode(errors="replace")


async def test_an_expression_that_others_take_years_for_ends_at_once() -> None:
    call = state(await filled({"/a": "a" * 100_000 + "!"}))
    assert await call("searchText", path="/a", query="^(a+)+$", regex=True) == []
    assert (await call("replaceInFile", path="/a", search="^(a+)+$", replacement="", regex=True))["count"] == 0


async def test_a_replacement_that_would_fill_the_memory_is_refused() -> None:
    files = await filled({"/a": "a" * 100_000})
    for is_regex in (False, True):
        with pytest.raises(CodeInvalid, match="would have more than"):
            await state(files)("replaceInFile", path="/a", search="a", replacement="b" * 10_000, regex=is_regex)
    with pytest.raises(CodeInvalid, match="more than 100000 places"):
        await state(files)("replaceInFile", path="/a", search="b*", replacement="", regex=True)
    assert await contents(files) == {"/a": b"a" * 100_000}


async def test_a_directory_is_packed_and_unpacked() -> None:
    files = await filled({"/docs/a.txt": "a", "/docs/deep/b": b"\0\1", "/other": "o"})
    call = state(files)
    made = await call("archive", path="/docs", target="/out.zip")
    assert (made["path"], made["mediaType"]) == ("/out.zip", "application/zip")
    unpacked = await call("unarchive", path="/out.zip", target="/copy")
    assert sorted(unpacked["paths"]) == ["/copy", "/copy/a.txt", "/copy/deep", "/copy/deep/b"]
    assert unpacked["count"] == 4
    found = await contents(files)
    assert (found["/copy/a.txt"], found["/copy/deep/b"]) == (b"a", b"\0\1")


async def test_archives_are_not_trusted(monkeypatch: Any) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        made.writestr("../outside", "x")
    files = await filled({"/out.zip": buffer.getvalue(), "/none.zip": "text", "/a": "12345678"})
    call = state(files)
    with pytest.raises(ArchiveInvalid, match="not allowed"):
        await call("unarchive", path="/out.zip", target="/in")
    with pytest.raises(ArchiveInvalid, match="no archive"):
        await call("unarchive", path="/none.zip", target="/in")
    await call("archive", path="/a", target="/a.zip")
    monkeypatch.setattr(unpacking, "ARCHIVE_BYTES", 7)
    with pytest.raises(ArchiveInvalid):
        await call("unarchive", path="/a.zip", target="/in")
    assert not await files.exists("/in")


async def test_a_file_is_compressed_and_decompressed() -> None:
    text = b"".join(b"%d lines\n" % number for number in range(100_000))
    files = await filled({"/a.txt": text, "/two.gz": gzip.compress(b"one ") + gzip.compress(b"two")})
    call = state(files)
    assert (await call("compress", path="/a.txt"))["path"] == "/a.txt.gz"
    packed = await files.read_bytes("/a.txt.gz")
    assert packed is not None
    assert gzip.decompress(packed) == text
    await call("decompress", path="/a.txt.gz", target="/b.txt")
    assert await files.read_bytes("/b.txt") == text
    assert (await call("decompress", path="/two.gz"))["path"] == "/two"
    assert await files.read_bytes("/two") == b"one two"
    await files.write_file("/cut.gz", packed[:-4])
    for path in ("/cut.gz", "/a.txt"):
        with pytest.raises(CodeInvalid, match="no gzip file"):
            await call("decompress", path=path, target="/c")
    with pytest.raises(CodeInvalid, match="name a 'target'"):
        await call("decompress", path="/b.txt")
    assert not await files.exists("/c")


async def test_what_decompresses_to_more_than_a_file_may_have_is_refused(settings: Any) -> None:
    files = await filled({"/bomb.gz": gzip.compress(b"\0" * 4_000_000)})
    settings.THINK_WORKSPACE_FILE_MAX_BYTES = 1_000_000
    with pytest.raises(FileFailed, match="EFBIG"):
        await state(files)("decompress", path="/bomb.gz")
    assert list(await contents(files)) == ["/bomb.gz"]


async def test_a_kind_is_that_of_the_bytes() -> None:
    call = state(await filled({"/photo.txt": b"\x89PNG\r\n\x1a\n", "/a.md": "# é" * 40_000, "/b": b"\0\1"}))
    assert await call("detect", path="/photo.txt") == {"mediaType": "image/png", "isText": False}
    assert await call("detect", path="/a.md") == {"mediaType": "text/markdown", "isText": True}
    assert await call("detect", path="/b") == {"mediaType": "application/octet-stream", "isText": False}


async def test_a_tree_below_a_name_with_wildcards_is_walked() -> None:
    call = state(await filled({"/[a]*/x": "1", "/a/y": "2"}))
    assert [each["path"] for each in await call("walkTree", path="/[a]*")] == ["/[a]*/x"]
    assert (await call("summarizeTree", path="/[a]*"))["files"] == 1


def test_the_declaration_names_every_function() -> None:
    assert [each.path for each in FUNCTIONS_DECLARED] == [
        f"state.{name}" for name in re.findall(r"^  (\w+)\(input: ", DECLARED, re.MULTILINE)
    ]
    assert {each.path.removeprefix("state.") for each in FUNCTIONS_DECLARED} == set(FUNCTIONS)
    assert set(USUAL) <= set(FUNCTIONS)


def test_each_function_of_the_workspace_is_listed_and_declared_with_its_types() -> None:
    by_name = {each.path.removeprefix("state."): each for each in FUNCTIONS_DECLARED}
    assert by_name["readFile"].typed == "readFile({path}): string|null"
    assert by_name["rm"].typed == "rm({path, recursive?, force?})"
    assert by_name["unarchive"].declared.startswith(
        "/** `target`: a directory. `paths`: the first 1000. */\nunarchive("
    )
    for name in ("searchFiles", "replaceInFiles", "applyEdits"):
        assert f"{name}(input: {{" in by_name[name].declared
        assert "type " in by_name[name].declared
    assert "type Entry" not in by_name["readFile"].declared
    assert [name for name in FUNCTIONS if not re.search(rf"\b{name}\b", listed())] == []
    assert set(FUNCTIONS) >= ONCE
