"""Texts in the encodings that files have: shown right, named, searched, and kept by all that writes."""

import codecs

import pytest

from tests.unit.tools_app.core.files.calling import call
from tools_app.core.files.encodings import as_utf_8, detected, detected_head, named, shown_text
from tools_app.core.files.workspace import Workspace
from tools_app.core.tool import Tool
from tools_app.errors import FileFailed

TEXT = "Name;Ort;Preis\r\nMüller;Köln;7,00 €\r\nÉtienne’s “Café” – 3 ½;;\r\n"
ASSUMED = " (assumed: its bytes do not say)"
FILES = {
    "UTF-8": TEXT.encode(),
    "UTF-8 with BOM": TEXT.encode("utf-8-sig"),
    "UTF-16 LE with BOM": codecs.BOM_UTF16_LE + TEXT.encode("utf-16-le"),
    "UTF-16 BE with BOM": codecs.BOM_UTF16_BE + TEXT.encode("utf-16-be"),
    "UTF-32 LE with BOM": codecs.BOM_UTF32_LE + TEXT.encode("utf-32-le"),
    "UTF-16 LE" + ASSUMED: TEXT.encode("utf-16-le"),
    "UTF-16 BE" + ASSUMED: TEXT.encode("utf-16-be"),
    "Windows-1252" + ASSUMED: TEXT.encode("cp1252"),
}
each_file = pytest.mark.parametrize(("told", "data"), FILES.items(), ids=FILES)


@each_file
async def test_read_shows_the_text_and_tells_the_encoding(
    workspace: Workspace, file_tools: dict[str, Tool], told: str, data: bytes
) -> None:
    await workspace.write_file("/a.csv", data)
    shown = await call(file_tools["read"], path="/a.csv")
    assert shown["content"].split("\n") == [f"{n}\t{line}" for n, line in enumerate(TEXT.splitlines(), 1)]
    assert shown.get("encoding", "UTF-8") == told


@each_file
@pytest.mark.parametrize("query", ["^Name", "Müller", "“Café”", "€$"])
async def test_grep_finds_the_words(
    workspace: Workspace, file_tools: dict[str, Tool], told: str, data: bytes, query: str
) -> None:
    await workspace.write_file("/a.csv", data)
    found = await call(file_tools["grep"], query=query)
    assert (found["totalMatches"], found["filesSearched"]) == (1, 1), told


@each_file
async def test_an_edit_changes_its_words_only(
    workspace: Workspace, file_tools: dict[str, Tool], told: str, data: bytes
) -> None:
    await workspace.write_file("/a.csv", data)
    edited = await call(file_tools["edit"], path="/a.csv", old_string="7,00 €", new_string="8,50 €\nBöhm;Graz;1")
    assert edited.get("encoding", "UTF-8") == told
    wanted = TEXT.replace("7,00 €", "8,50 €\r\nBöhm;Graz;1")
    found = detected(data)
    assert found is not None
    assert await workspace.read_bytes("/a.csv") == found.encode(wanted, path="/a.csv")


@each_file
async def test_a_file_that_is_written_again_keeps_encoding_and_line_ends(
    workspace: Workspace, file_tools: dict[str, Tool], told: str, data: bytes
) -> None:
    await workspace.write_file("/a.csv", data)
    written = await call(file_tools["write"], path="/a.csv", content=TEXT.replace("\r\n", "\n"))
    assert await workspace.read_bytes("/a.csv") == data
    assert written["bytesWritten"] == len(data)
    assert written["lineEnds"] == "CRLF, as before"
    assert written.get("encoding", "UTF-8, as before") == f"{told}, as before"


async def test_what_an_encoding_does_not_have_is_refused_or_converted_on_wish(
    workspace: Workspace, file_tools: dict[str, Tool]
) -> None:
    data = "Größe\n".encode("cp1252")
    await workspace.write_file("/a.txt", data)
    edited = await call(file_tools["edit"], path="/a.txt", old_string="Größe", new_string="Łódź")
    written = await call(file_tools["write"], path="/a.txt", content="Łódź\n")
    for refusal in (edited, written):
        assert "Windows-1252, the encoding of the file, does not have 'Ł' (U+0141), 'ź' (U+017A)" in refusal["error"]
    assert await workspace.read_bytes("/a.txt") == data
    converted = await call(file_tools["write"], path="/a.txt", content="Łódź\n", encoding="UTF-8")
    assert converted == {"path": "/a.txt", "bytesWritten": 8, "lines": 1}
    assert await workspace.read_file("/a.txt") == "Łódź\n"
    await call(file_tools["write"], path="/a.txt", content="x", encoding="UTF-16")
    assert await workspace.read_bytes("/a.txt") == codecs.BOM_UTF16_LE + b"x\0"
    assert "is no encoding" in (await call(file_tools["write"], path="/a.txt", content="x", encoding="base64"))["error"]


async def test_bytes_that_are_none_of_a_text_stay(workspace: Workspace, file_tools: dict[str, Tool]) -> None:
    data = "Müller übt äußerst\n".encode() + b"\xff\xfe cut \xc3\n"
    await workspace.write_file("/a.log", data)
    shown = await call(file_tools["read"], path="/a.log")
    assert shown["content"] == "1\tMüller übt äußerst\n2\t\ufffd\ufffd cut \ufffd"
    assert shown["encoding"].startswith("UTF-8 except for 3 bytes")
    assert (await call(file_tools["edit"], path="/a.log", old_string="cut", new_string="ü"))["replaced"] is True
    assert await workspace.read_bytes("/a.log") == data.replace(b"cut", "ü".encode())


@pytest.mark.parametrize("encoding", ["windows-1251", "koi8-r", "cp866", "utf-8"])
async def test_an_encoding_that_bytes_do_not_tell_is_named(
    workspace: Workspace, file_tools: dict[str, Tool], encoding: str
) -> None:
    data = "Привет, это обычный русский текст\n".encode(encoding)
    await workspace.write_file("/a.txt", data)
    shown = await call(file_tools["read"], path="/a.txt", encoding=encoding)
    assert shown["content"] == "1\tПривет, это обычный русский текст"
    plain = await call(file_tools["read"], path="/a.txt")
    assert ("read it again with its encoding" in plain.get("note", "")) == (encoding != "utf-8")
    assert "EILSEQ" in (await call(file_tools["read"], path="/a.txt", encoding="ascii"))["error"]


@pytest.mark.parametrize(
    "data",
    [b"PK\x03\x04\x14\0\0\0", bytes(range(256)), b"\xff\xfe\0", b"\x1f\x8b\x08\0", b"\0\0\0\x18ftypheic", b"a\0b"],
)
def test_what_is_no_text_is_none(data: bytes) -> None:
    assert detected(data) is None
    assert as_utf_8(data) is None


def test_a_head_that_is_cut_within_a_character_tells_the_same() -> None:
    for told, data in FILES.items():
        for cut in range(1, 12):
            found = detected_head(data[:-cut])
            assert found is not None
            assert found.description == told
            assert "\ufffd" not in shown_text(data[:-cut], is_head=True)[0].rstrip("\ufffd")


def test_names_of_encodings_are_those_of_texts() -> None:
    for name in ("hex", "rot13", "idna", "punycode", "iso2022_jp", "raw_unicode_escape", "\0", "x" * 100):
        with pytest.raises(FileFailed):
            named(name)
    assert [named(each).description for each in ("utf8", "UTF-16", "latin-1", "UTF-8 with BOM")] == [
        "UTF-8",
        "UTF-16 LE with BOM",
        "latin-1",
        "UTF-8 with BOM",
    ]


@pytest.mark.parametrize(
    ("text", "codec", "shown_name"),
    [
        ('<!doctype html><meta charset="windows-1251"><p>Привет', "cp1251", "windows-1251"),
        ("<meta http-equiv=Content-Type content='text/html; charset=koi8-r'>Привет", "koi8-r", "koi8-r"),
        ('<?xml version="1.0" encoding="Shift_JIS"?><a>こんにちは</a>', "shift_jis", "Shift_JIS"),
        ('<?xml version="1.0" encoding="ISO-8859-2"?><a>Zażółć</a>', "iso-8859-2", "ISO-8859-2"),
        ("#!/usr/bin/python\n# -*- coding: latin-1 -*-\nname = 'Größe'\n", "cp1252", "Windows-1252"),
    ],
)
async def test_a_text_that_declares_its_encoding_is_read_and_edited_in_it(
    workspace: Workspace, file_tools: dict[str, Tool], text: str, codec: str, shown_name: str
) -> None:
    await workspace.write_file("/a.txt", text.encode(codec))
    shown = await call(file_tools["read"], path="/a.txt", limit=100)
    assert text.split("\n")[-2 if text.endswith("\n") else -1] in shown["content"]
    assert shown["encoding"] == shown_name
    old = text.rstrip("\n'/a<>")[-3:]
    await call(file_tools["edit"], path="/a.txt", old_string=old, new_string=old * 2)
    assert await workspace.read_bytes("/a.txt") == text.replace(old, old * 2).encode(codec)


@pytest.mark.parametrize("declared", ["utf-8", "x-unknown", "shift_jis", "utf-16"])
async def test_a_declaration_that_is_not_so_is_not_believed(
    workspace: Workspace, file_tools: dict[str, Tool], declared: str
) -> None:
    data = f'<meta charset="{declared}">Größe für Müller'.encode("cp1252")
    await workspace.write_file("/a.txt", data)
    shown = await call(file_tools["read"], path="/a.txt")
    assert shown["encoding"].startswith("Windows-1252 (assumed")
    await workspace.write_file("/b.txt", f'<meta charset="{declared}">Größe'.encode())
    assert "encoding" not in await call(file_tools["read"], path="/b.txt")
