"""Whatever writes into a file changes the span that it was asked to change, and no other byte of it."""

import asyncio
import codecs
from dataclasses import dataclass

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tests.unit.tools_app.core.files.calling import call
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.code_tool.state.functions import StateFunctions
from tools_app.file_tools.keeping import replace_text, stored_text
from tools_app.file_tools.workspace_tools import create_workspace_tools
from tools_app.workspace.stores.memory import MemoryWorkspace

ENCODINGS = {
    "utf-8": b"",
    "utf-8-sig": codecs.BOM_UTF8,
    "utf-16-le": codecs.BOM_UTF16_LE,
    "utf-16-be": codecs.BOM_UTF16_BE,
    "cp1252": b"",
}
OLD, NEW = "<<Größe: 7>>", "<<Maß: 8 €>>"
words = st.lists(
    st.sampled_from(["Müller", "Köln", " ", "\t", "\u00a0", "“x”", "–", "é", "7,00 €", "a", ";"]), max_size=6
)


@dataclass(frozen=True, slots=True)
class File:
    """A file with one place to be changed. `ends`: the ends of its lines."""

    encoding: str
    before: str
    after: str
    ends: list[str]

    def data(self, middle: str) -> bytes:
        codec = self.encoding.removesuffix("-sig")
        return ENCODINGS[self.encoding] + f"{self.before}{middle}{self.after}".encode(codec)


@st.composite
def made_files(draw: st.DrawFn) -> File:
    ends = draw(st.sampled_from([["\n"], ["\r\n"], ["\n", "\r\n"]]))
    texts = ["Größe nach Maß", *("".join(each) for each in draw(st.lists(words, max_size=6)))]
    lines = [line + draw(st.sampled_from(ends)) for line in texts]
    at = draw(st.integers(1, len(lines)))
    encoding = draw(st.sampled_from(list(ENCODINGS)))
    return File(encoding, "".join(lines[:at]), "".join(lines[at:]), ends)


WRITERS: dict[str, JSONObject] = {
    "edit": {"path": "/a", "old_string": OLD, "new_string": NEW},
    "state.replaceInFile": {"path": "/a", "search": OLD, "replacement": NEW},
    "state.replaceInFiles": {"pattern": "/*", "search": "<<Gr(ö)ße: 7>>", "replacement": NEW, "regex": True},
    "state.applyEdits": {"edits": [{"path": "/a", "search": OLD, "replacement": NEW}]},
    "the editor of the page": {"old": OLD, "new": NEW},
}


async def written(data: bytes, name: str, value: JSONObject) -> bytes:
    workspace = MemoryWorkspace()
    await workspace.write_file("/a", data)
    tools = {tool.name: tool for tool in create_workspace_tools(workspace)}
    if name == "the editor of the page":
        held = await stored_text(workspace, "/a")
        assert held.can_be_saved
        text = held.text.replace(value["old"], value["new"])
        await replace_text(workspace, "/a", text, expected_version=held.version)
    elif name in tools:
        assert "error" not in await call(tools[name], **value)
    else:
        await StateFunctions(workspace).run(name, value)
    return await workspace.read_bytes("/a") or b""


@settings(max_examples=examples(400), deadline=None)
@given(file=made_files(), name=st.sampled_from(list(WRITERS)))
def test_what_surrounds_a_change_keeps_its_bytes(file: File, name: str) -> None:
    assert asyncio.run(written(file.data(OLD), name, WRITERS[name])) == file.data(NEW)


@settings(max_examples=examples(200), deadline=None)
@given(file=made_files())
def test_a_change_in_other_spelling_keeps_the_bytes_around_it(file: File) -> None:
    asked = {"path": "/a", "old_string": "<<“Größe” – 7>>", "new_string": "<<“Größe” – 8>>"}
    plain = {key: each.translate({0x201C: '"', 0x201D: '"', 0x2013: "-"}) for key, each in asked.items()}
    assert asyncio.run(written(file.data(asked["old_string"]), "edit", plain)) == file.data(asked["new_string"])


@settings(max_examples=examples(200), deadline=None)
@given(file=made_files())
def test_a_text_that_is_added_has_the_encoding_of_the_file(file: File) -> None:
    value = {"path": "/a", "content": "Größe"}
    codec = file.encoding.removesuffix("-sig")
    added = asyncio.run(written(file.data(""), "state.appendFile", value))
    assert added == file.data("") + "Größe".encode(codec)


@settings(max_examples=examples(200), deadline=None)
@given(file=made_files().filter(lambda file: len(file.ends) == 1))
def test_a_text_that_is_written_again_has_the_same_bytes(file: File) -> None:
    text = f"{file.before}{OLD}{file.after}".replace("\r\n", "\n")
    assert asyncio.run(written(file.data(OLD), "write", {"path": "/a", "content": text})) == file.data(OLD)


@settings(max_examples=examples(200), deadline=None)
@given(file=made_files(), extra=st.sampled_from(["→", "Ł", "日", "\U0001f600"]))
def test_a_letter_that_an_encoding_does_not_have_is_named_and_changes_nothing(file: File, extra: str) -> None:
    async def attempt() -> tuple[str, bytes]:
        workspace = MemoryWorkspace()
        await workspace.write_file("/a", file.data(OLD))
        tools = {tool.name: tool for tool in create_workspace_tools(workspace)}
        done = await call(tools["edit"], path="/a", old_string=OLD, new_string=f"{NEW}{extra}")
        return str(done.get("error", "")), await workspace.read_bytes("/a") or b""

    refusal, data = asyncio.run(attempt())
    if file.encoding == "cp1252":
        assert f"does not have {extra!r} (U+{ord(extra):04X})" in refusal
        assert data == file.data(OLD)
    else:
        assert (refusal, data) == ("", file.data(f"{NEW}{extra}"))
