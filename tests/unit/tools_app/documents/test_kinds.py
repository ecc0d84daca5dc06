"""Kinds of files: found in the bytes, and a sentence with a way on where nothing can be read."""

import io
import zipfile

import pytest

from tests.files_people_bring import ALL, REFUSED, Brought
from tools_app.core.files import kinds
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.kinds import Unreadable, kind_of_file, refusal


@pytest.mark.parametrize("brought", ALL, ids=str)
def test_a_file_is_known_by_its_bytes(brought: Brought) -> None:
    found = kind_of_file(brought.data, brought.name)
    assert (found if isinstance(found, str) else "") == brought.media_type


@pytest.mark.parametrize("brought", REFUSED, ids=str)
def test_a_refusal_names_the_file_and_a_way_on(brought: Brought) -> None:
    found = kind_of_file(brought.data, brought.name)
    assert isinstance(found, Unreadable)
    assert str(refusal(found, brought.name)) == brought.expected


HEADS = [
    (b"\x7fELF\x02\x01\x01\x00", "program"),
    (b"MZ\x90\x00\x03\x00\x00\x00", "program"),
    (b"SQLite format 3\x00\x10\x00", "data"),
    (b"PAR1\x15\x04\x15\x00", "data"),
    (b"\x1f\x8b\x08\x00\x00\x00\x00\x00", "archive"),
    (b"7z\xbc\xaf\x27\x1c\x00\x04", "archive"),
    (b"Rar!\x1a\x07\x01\x00", "archive"),
    (b"ID3\x04\x00\x00\x00\x00", "sound"),
    (b"RIFF\x24\x00\x00\x00WAVEfmt ", "sound"),
    (b"\x00\x00\x00\x18ftypM4A \x00\x00", "sound"),
    (b"\x00\x00\x00\x14ftypqt  \x00\x00", "video"),
    (b"\x1aE\xdf\xa3\x9fB\x86\x81\x01\x00", "video"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "WordDocument".encode("utf-16-le"), ".docx"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "PowerPoint Document".encode("utf-16-le"), ".pptx"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + "__substg1.0_".encode("utf-16-le"), "Outlook"),
    (bytes(range(256)), "files of the conversation"),
    (b"PK\x03\x04", "damaged"),
    (b"PK\x05\x06" + b"\0" * 18, "without files"),
    (b"\xff\xf3\x44\xc4" + b"\0" * 9, "sound"),
    (b"#!AMR\n\0", "sound"),
    (b"FLV\x01\x05\0", "video"),
    (b"\0" * 257 + b"ustar\x0000", "archive"),
    (b"8BPS\0\x01", "PNG or JPEG"),
    (b"\0\0\0\x0cjP  \r\n", "PNG or JPEG"),
    (b"wOF2\0\x01", "font"),
    (b"\0asm\x01\0\0\0", "program"),
    (b"\0\x01\0\0Standard Jet DB\0", "data"),
    ("Привет, мир. Это русский текст.".encode("cp1251"), "UTF-8"),
]


@pytest.mark.parametrize(("head", "word"), HEADS, ids=[f"{word} {head[:4].hex()}" for head, word in HEADS])
def test_each_kind_without_text_has_a_sentence(head: bytes, word: str) -> None:
    found = kind_of_file(head, "x.bin")
    assert isinstance(found, Unreadable)
    sentence = str(refusal(found, "x.bin"))
    assert sentence.startswith("x.bin is ")
    assert word in sentence
    assert "octet-stream" not in sentence


@pytest.mark.parametrize(
    ("member", "wanted"),
    [("word/document.xml", kinds.DOCX), ("xl/workbook.xml", kinds.XLSX), ("inner/report.docx", kinds.ZIP)],
)
def test_a_zip_file_is_what_its_own_directory_says(member: str, wanted: str) -> None:
    inner, outer = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("word/document.xml", "<w/>")
    with zipfile.ZipFile(outer, "w") as archive:
        archive.writestr(member, inner.getvalue())  # stored: the names of the inner one stand in the bytes
    assert kind_of_file(outer.getvalue(), "a.zip") == wanted


@pytest.mark.parametrize(
    ("data", "name", "wanted"),
    [
        (b"def f():\n    pass\n", "a.py", "text/plain"),
        (b"From: the start: of a text\n\nTo: be or not\n", "a.eml", "text/plain"),
        (b"From: a@example.org\nSubject: Hi\n\nHello\n", "a.txt", "text/plain"),
        (b"From: a@example.org\nSubject: Hi\n\nHello\n", "a.eml", kinds.EML),
        (b'{"cells": 3}', "a.ipynb", "text/plain"),
        (b"just words", "a.html", "text/plain"),
        ("Grüße, Zoë".encode("cp1252"), "a.txt", "text/plain"),
        ("Grüße".encode("utf-16"), "a.md", "text/markdown"),
        ("<html><meta charset=windows-1251>Привет".encode("cp1251"), "a.html", kinds.HTML),
        (b"<html><table><tr><td>1</table>", "export.xls", kinds.HTML),
        (b"From: <Saved>\nSubject: Page\n\nHello\n", "a.mht", kinds.EML),
        (b"\n\nHTTP\n%PDF-1.4\n1 0 obj\n%%EOF\n", "a.pdf", kinds.PDF),
        (b"A line about %PDF-1.4\nand %%EOF\n", "a.txt", "text/plain"),
    ],
)
def test_text_stays_text_unless_it_is_what_its_name_says(data: bytes, name: str, wanted: str) -> None:
    assert kind_of_file(data, name) == wanted


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_text_is_decoded_by_its_mark_or_as_western(encoding: str) -> None:
    assert shown_text("Größe “5 €”".encode(encoding))[0] == "Größe “5 €”"
