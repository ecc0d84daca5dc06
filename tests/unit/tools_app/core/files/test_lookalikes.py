"""Names that look alike: what is missing proposes them, and none is taken for another or made beside it."""

import unicodedata
from typing import Any

import pytest

from tests.unit.tools_app.core.files.calling import call
from tools_app.code_tool.state.functions import StateFunctions
from tools_app.core.files.workspace import Workspace
from tools_app.core.tool import Tool
from tools_app.errors import FileFailed
from tools_app.file_tools.lookalikes import alike, alike_among, proposal
from tools_app.workspace.stores.memory import MemoryWorkspace

COMPOSED = unicodedata.normalize("NFC", "/Café.txt")
DECOMPOSED = unicodedata.normalize("NFD", COMPOSED)
PAIRS = {
    "letters": (COMPOSED, DECOMPOSED, "it has U+0065 U+0301 for U+00E9"),
    "quotes": ("/Anna's notes.txt", "/Anna’s notes.txt", "it has U+2019 for U+0027"),
    "dash": ("/2024-2025.csv", "/2024–2025.csv", "it has U+2013 for U+002D"),
    "space": ("/Annual report.md", "/Annual\u00a0report.md", "it has U+00A0 for U+0020"),
    "narrow space": ("/10 km.md", "/10\u202fkm.md", "it has U+202F for U+0020"),
    "dots": ("/wait....md", "/wait….md", "it has U+2026 for U+002E U+002E U+002E"),
    "directory": ("/Bücher/a.md", unicodedata.normalize("NFD", "/Bücher/a.md"), "it has U+0075 U+0308 for U+00FC"),
}


@pytest.fixture(params=PAIRS, ids=str)
def pair(request: pytest.FixtureRequest) -> tuple[str, str, str]:
    """The name that is asked for, the one that is there, and how they differ."""
    return PAIRS[str(request.param)]


async def test_a_missing_name_proposes_the_one_that_looks_alike(
    workspace: Workspace, file_tools: dict[str, Tool], pair: tuple[str, str, str]
) -> None:
    asked, there, difference = pair
    await workspace.write_file(there, "one\n")
    calls: dict[str, Any] = {"read": {}, "edit": {"old_string": "one", "new_string": "two"}}
    for name, rest in calls.items():
        refusal = (await call(file_tools[name], path=asked, **rest))["error"]
        assert f"There is {there} ({difference}), which looks alike" in refusal
    with pytest.raises(FileFailed, match="looks alike"):
        await call(file_tools["delete"], path=asked)
    assert await workspace.read_file(there) == "one\n"


@pytest.mark.parametrize("name", [name for name in PAIRS if name != "directory"])
async def test_no_file_is_made_beside_one_that_looks_the_same(
    workspace: Workspace, file_tools: dict[str, Tool], name: str
) -> None:
    asked, there, difference = PAIRS[name]
    await workspace.write_file(there, "one\n")
    calls: dict[str, Any] = {"write": {"content": "two\n"}, "edit": {"old_string": "", "new_string": "two\n"}}
    for tool, rest in calls.items():
        refusal = (await call(file_tools[tool], path=asked, **rest))["error"]
        assert f"{there} is, which looks the same ({difference})" in refusal
        assert "error" not in await call(file_tools[tool], path=f"{asked}.new.{tool}", **rest)
    assert not await workspace.exists(asked)
    assert "error" not in await call(file_tools["write"], path=there, content="two\n")


async def test_two_names_that_look_alike_are_both_named_and_each_is_reached(
    workspace: Workspace, file_tools: dict[str, Tool]
) -> None:
    await workspace.write_file(COMPOSED, "composed\n")
    await workspace.write_file(DECOMPOSED, "decomposed\n")
    refusal = (await call(file_tools["read"], path="/cafÉ.txt"))["error"]
    assert COMPOSED in refusal
    assert DECOMPOSED in refusal
    for path, text in ((COMPOSED, "composed"), (DECOMPOSED, "decomposed")):
        assert text in (await call(file_tools["read"], path=path))["content"]
        await call(file_tools["edit"], path=path, old_string=text, new_string=f"{text}!")
        assert await workspace.read_file(path) == f"{text}!\n"


async def test_another_case_is_proposed_and_may_be_made(workspace: Workspace, file_tools: dict[str, Tool]) -> None:
    await workspace.write_file("/README.md", "one\n")
    assert "/README.md" in (await call(file_tools["read"], path="/Readme.md"))["error"]
    assert "error" not in await call(file_tools["write"], path="/Readme.md", content="two\n")


async def test_what_looks_like_nothing_is_only_missing(workspace: Workspace, file_tools: dict[str, Tool]) -> None:
    await workspace.write_file("/Cafe.txt", "one\n")
    assert (await call(file_tools["read"], path=COMPOSED))["error"].endswith("show what is there).")
    assert await call(file_tools["delete"], path="/none.txt") == {"deleted": "/none.txt"}


@pytest.mark.parametrize("name", ["rm", "mv", "cp", "replaceInFile", "readlink"])
async def test_code_reads_the_proposal_in_the_error(name: str) -> None:
    workspace = MemoryWorkspace()
    await workspace.write_file(DECOMPOSED, "one\n")
    given = {"path": COMPOSED, "source": COMPOSED, "target": "/b.txt", "search": "one", "replacement": "two"}
    with pytest.raises(FileFailed, match="which looks alike") as caught:
        await StateFunctions(workspace).run(f"state.{name}", given)
    assert caught.value.errno == "ENOENT"
    assert await workspace.read_file(DECOMPOSED) == "one\n"


def test_known_paths_are_looked_through_as_well() -> None:
    paths = ["/a/b.md", DECOMPOSED, COMPOSED]
    assert alike_among(COMPOSED, paths) == [DECOMPOSED]
    assert proposal(COMPOSED, []) == ""


async def test_a_storage_that_cannot_list_proposes_nothing() -> None:
    assert await alike(object(), COMPOSED) == []
