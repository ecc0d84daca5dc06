"""Searching a file agrees with trying each of its lines."""

import asyncio
import re
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tests.unit.tools_app.core.files.calling import call
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.files import joined, searching
from tools_app.core.files.searching import Search, searchable
from tools_app.file_tools.searching import create_grep_tool
from tools_app.workspace.stores.memory import MemoryWorkspace

texts = st.lists(st.sampled_from(["a", "b", "A", " ", ".", "é", "\n", "\n", "\r\n"]), max_size=20).map("".join)
# fmt: off
expressions = st.sampled_from([
    "a", "^a", "a$", "^$", "^a.*b$", r"\s", r"a\s*b", r"[^a]", r"[^a]*b", r"\ba\b", r"\Ba", r"a|^b", "(?i)b", "(?s)a.b",
    r"\Aa", r"a\z", "(?-s)a.b", "é", ".", "a*", "(?m)^a", "(?-m)^a",
])
# fmt: on


@pytest.fixture(autouse=True, scope="module")
def small_pieces() -> Iterator[None]:
    """Make a few characters a piece, so that texts of examples have several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(searching, "_PIECE_BYTES", 4)
        patch.setattr(joined, "TOGETHER", 3)
        yield


@settings(max_examples=examples(1500))
@given(text=texts, expression=expressions, is_case_sensitive=st.booleans(), limit=st.integers(1, 5))
def test_lines_match_as_each_does_alone(text: str, expression: str, is_case_sensitive: bool, limit: int) -> None:
    pythons = expression.replace(r"\z", r"\Z").replace("(?-s)a.b", "a.b").replace("(?-m)^a", "^a")
    flags = re.ASCII if is_case_sensitive else re.ASCII | re.IGNORECASE
    expected = [
        (number, line)
        for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1)
        if re.search(pythons, line, flags)
    ]
    search = Search(expression, is_fixed=False, is_case_sensitive=is_case_sensitive)
    assert [(match.number, match.text) for match in search.lines_of(text.encode(), limit)] == expected[:limit]


@settings(max_examples=examples(500))
@given(text=texts, needle=st.text(alphabet="aA .(é", min_size=1, max_size=3))
def test_fixed_strings_match_to_the_letter(text: str, needle: str) -> None:
    expected = [number for number, line in enumerate(text.replace("\r\n", "\n").split("\n"), 1) if needle in line]
    search = Search(needle, is_fixed=True, is_case_sensitive=True)
    assert [match.number for match in search.lines_of(text.encode(), 1_000)] == expected


contents = texts.map(str.encode) | texts.map(lambda text: text.encode("utf-16")) | st.sampled_from([b"a\x00b", b"\xff"])


@settings(max_examples=examples(300))
@given(files=st.lists(contents, min_size=1, max_size=8), expression=expressions)
def test_many_files_match_as_each_does_alone(files: list[bytes], expression: str) -> None:
    search = Search(expression, is_fixed=False, is_case_sensitive=True)
    plain = [(f"/{at}", searchable(data)) for at, data in enumerate(files)]
    expected = [
        f"{path}:{line.number}: {line.text}"
        for path, text in plain
        if text is not None
        for line in search.lines_of(text, 200)
    ]

    async def found() -> JSONObject:
        workspace = MemoryWorkspace()
        for path, data in zip([path for path, _ in plain], files, strict=True):
            await workspace.write_file(path, data)
        value: JSONObject = await call(create_grep_tool(workspace), query=expression, caseSensitive=True)
        return value

    value = asyncio.run(found())
    assert value["matches"] == expected
    assert value["filesSearched"] == sum(text is not None for _, text in plain)
