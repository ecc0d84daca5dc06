"""A workspace as functions for code."""

from typing import Any

import pytest

from tests.unit.tools_app.execute.memory_files import MemoryFiles
from thinkproject.kernel.errors import ThinkError
from tools_app.errors import CodeInvalid, FileFailed
from tools_app.execute.state.declared import DECLARED
from tools_app.execute.state.functions import FUNCTIONS, ONCE, StateFunctions


def state(files: MemoryFiles) -> Any:
    functions = StateFunctions(files)  # type: ignore[arg-type]  # as much of one as these tests need

    async def call(name: str, **value: Any) -> Any:
        return await functions.run(f"state.{name}", value)

    return call


async def test_files_are_written_read_and_removed() -> None:
    files = MemoryFiles()
    call = state(files)
    await call("writeFile", path="/a.txt", content="one")
    await call("appendFile", path="/a.txt", content=" two")
    assert await call("readFile", path="/a.txt") == "one two"
    await call("writeFileBytes", path="/b", content={"$bytes": "AQI="})
    assert files.files["/b"] == b"\1\2"
    assert await call("readFileBytes", path="/b") == {"$bytes": "AQI="}
    assert await call("exists", path="/none") is False
    assert (await call("stat", path="/b"))["type"] == "file"
    await call("rm", path="/b")
    with pytest.raises(FileFailed):
        await call("rm", path="/b")
    assert await call("readFile", path="/b") is None


async def test_json_is_read_asked_and_changed() -> None:
    call = state(MemoryFiles(data__json='{"items": [{"name": "a"}]}', bad="{"))
    assert await call("queryJson", path="/data.json", query="items[0].name") == "a"
    assert await call("queryJson", path="/data.json", query="items.5.name") is None
    await call("updateJson", path="/data.json", query="items.0.name", value="b")
    assert await call("readJson", path="/data.json") == {"items": [{"name": "b"}]}
    with pytest.raises(CodeInvalid, match="has no JSON"):
        await call("readJson", path="/bad")
    with pytest.raises(CodeInvalid, match="nothing to set"):
        await call("updateJson", path="/data.json", query="items.9", value=1)


async def test_text_is_searched_in_one_file_and_in_many() -> None:
    call = state(MemoryFiles(a="One\ntwo\none", b="none", c="\0one"))
    assert await call("searchText", path="/a", query="one") == [{"line": 1, "text": "One"}, {"line": 3, "text": "one"}]
    assert await call("searchText", path="/a", query="one", caseSensitive=True) == [{"line": 3, "text": "one"}]
    found = await call("searchFiles", pattern="/*", query="one")
    assert [each["path"] for each in found] == ["/a", "/b"]


async def test_text_is_replaced_or_shown_only() -> None:
    files = MemoryFiles(a="x y x", b="x", c="z")
    call = state(files)
    shown = await call("replaceInFiles", pattern="/*", search="x", replacement="$&", dryRun=True)
    assert [(each["path"], each["count"]) for each in shown] == [("/a", 2), ("/b", 1)]
    assert files.files["/a"] == b"x y x"
    await call("replaceInFiles", pattern="/*", search="x", replacement="$&")
    assert (files.files["/a"], files.files["/b"]) == (b"$& y $&", b"$&")
    assert (await call("replaceInFile", path="/c", search="q", replacement=""))["count"] == 0


async def test_edits_are_planned_and_applied_together() -> None:
    files = MemoryFiles(a="one two", b="x")
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
    assert files.files["/a"] == b"one two"
    await call("applyEdits", edits=edits)
    assert files.files == {"/a": b"1 2", "/new": b"n"}


async def test_one_edit_that_fits_nowhere_changes_nothing() -> None:
    files = MemoryFiles(a="one one")
    edits = [{"path": "/new", "content": "n"}, {"path": "/a", "search": "one", "replacement": "1"}]
    with pytest.raises(CodeInvalid, match="exactly once"):
        await state(files)("applyEdits", edits=edits)
    assert files.files == {"/a": b"one one"}


async def test_trees_and_digests() -> None:
    call = state(MemoryFiles(a="abc"))
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
    ("applyEdits", {"edits": "all"}),
    ("applyEdits", {"edits": [1]}),
    ("__class__", {}),
]


@pytest.mark.parametrize(("name", "value"), WRONG)
async def test_wrong_arguments_are_explained(name: str, value: dict[str, Any]) -> None:
    with pytest.raises(ThinkError):
        await state(MemoryFiles(a="x"))(name, **value)


def test_the_declaration_names_every_function() -> None:
    assert [name for name in FUNCTIONS if f"  {name}(input: {{" not in DECLARED] == []
    assert set(FUNCTIONS) >= ONCE
