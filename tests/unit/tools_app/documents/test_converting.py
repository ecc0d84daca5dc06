"""Files read in a process of their own: text and pictures that are expected, and limits that hold."""

import io
import os
import re
import socket
import struct
import subprocess
import sys
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from tests.files_people_bring import DOCUMENTS, PICTURES, Brought
from tools_app.core.files import kinds
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.kinds import has_view
from tools_app.documents.converting import TOO_SLOW, View, convert
from tools_app.documents.readers.archive import MAX_UNPACKED_BYTES, TOO_LARGE
from tools_app.documents.walls import SYSTEM_CALLS, program

ROOT = Path(__file__).resolve().parents[4]
_LAUGHS = "".join(f'<!ENTITY l{n + 1} "{f"&l{n};" * 10}">' for n in range(9))
LAUGHING = f'<?xml version="1.0"?><!DOCTYPE d [<!ENTITY l0 "ha">{_LAUGHS}]><d>&l9;</d>'


@pytest.mark.parametrize("brought", DOCUMENTS, ids=str)
def test_a_document_becomes_its_text(brought: Brought) -> None:
    data = brought.data
    words = convert(data, brought.media_type).words if has_view(data, brought.media_type) else shown_text(data)[0]
    assert words.replace("\r\n", "\n").removesuffix("\n") == brought.expected


@pytest.mark.parametrize("brought", PICTURES, ids=str)
def test_a_picture_is_upright_and_small_enough(brought: Brought) -> None:
    view = convert(brought.data, brought.media_type)
    with Image.open(io.BytesIO(view.data or brought.data)) as picture:
        assert picture.size == brought.sides
        assert f"image/{str(picture.format).lower()}" == view.media_type
        assert view.media_type in {"image/png", "image/jpeg"}
        assert not picture.getexif(), "neither orientation nor place is left"
    assert convert(brought.data, brought.media_type) == view, "the same bytes give the same picture"


def test_a_photo_on_its_side_is_turned() -> None:
    photo = next(brought for brought in PICTURES if brought.name == "phone.jpg")
    view = convert(photo.data, photo.media_type)
    with Image.open(io.BytesIO(view.data)) as picture:
        left, right = (picture.convert("RGB").getpixel((x, 1000)) for x in (10, picture.width - 10))
    assert isinstance(left, tuple)
    assert isinstance(right, tuple)
    assert max(left) == left[1], "the grass, which was below"
    assert max(right) == right[2], "the sky, which was above"


def test_fine_greys_become_those_of_a_screen_and_not_white() -> None:
    greys = next(brought for brought in PICTURES if brought.name == "greys.png")
    with Image.open(io.BytesIO(convert(greys.data, greys.media_type).data)) as picture:
        values = [picture.convert("L").getpixel((at * 2047 // 4, 10)) for at in range(5)]
    assert values == [pytest.approx(each, abs=3) for each in (0, 64, 128, 191, 255)]


def test_a_picture_for_a_printer_keeps_its_colour() -> None:
    ink = next(brought for brought in PICTURES if brought.name == "printer.jpg")
    with Image.open(io.BytesIO(convert(ink.data, ink.media_type).data)) as picture:
        assert picture.mode == "RGB"
        colour = picture.getpixel((30, 20))
    assert isinstance(colour, tuple)
    assert [each > 128 for each in colour] == [True, False, False]


def zipped(**members: bytes | str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/") + ".xml", content)
    return made.getvalue()


def huge_png(side: int) -> bytes:
    """A picture of a few bytes with very many pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")


def streaming_pdf(megabytes: int) -> bytes:
    """A PDF whose page is so many bytes of nothing, packed."""
    page = zlib.compress(b"BT " + b" " * (megabytes << 20) + b"ET", 9)
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(page), page),
    ]
    made = b"%PDF-1.4\n"
    places = []
    for number, each in enumerate(objects, 1):
        places.append(len(made))
        made += b"%d 0 obj\n%s\nendobj\n" % (number, each)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    trailer = b"trailer << /Size 5 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(made)
    return made + b"xref\n0 5\n0000000000 65535 f \n" + table + trailer


def far_sheet() -> bytes:
    """A workbook with two cells: the first one, and the last one that there can be."""
    cells = '<row r="1"><c r="A1"><v>1</v></c></row><row r="1048576"><c r="XFD1048576"><v>2</v></c></row>'
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    links = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006"
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{links}"><sheets><sheet name="S" sheetId="1" r:id="r1"/></sheets>'
            "</workbook>",
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}/relationships"><Relationship Id="r1" Type="{links}/worksheet" '
            'Target="worksheets/sheet1.xml"/></Relationships>',
        )
        archive.writestr(
            "xl/worksheets/sheet1.xml", f'<worksheet xmlns="{main}"><sheetData>{cells}</sheetData></worksheet>'
        )
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{package}/content-types"/>')
    return made.getvalue()


def nested_mail(depth: int) -> bytes:
    """A mail of parts within parts."""
    open_parts = b"".join(
        b"Content-Type: multipart/mixed; boundary=b%d\n\n--b%d\n" % (number, number) for number in range(depth)
    )
    return b"From: a@example.org\nSubject: Deep\n" + open_parts + b"\nHello\n"


BOMBS: dict[str, tuple[Callable[[], bytes], str, str]] = {
    "zip bomb": (lambda: zipped(word__document=b"\0" * (MAX_UNPACKED_BYTES + 1)), kinds.DOCX, TOO_LARGE),
    "billion laughs in Word": (lambda: zipped(word__document=LAUGHING), kinds.DOCX, ""),
    "billion laughs in PowerPoint": (lambda: zipped(ppt__presentation=LAUGHING), kinds.PPTX, ""),
    "billion laughs in Excel": (lambda: zipped(xl__workbook=LAUGHING), kinds.XLSX, ""),
    "billion laughs in OpenDocument": (
        lambda: zipped(content=LAUGHING, **{"META-INF__manifest": "<m/>"}),
        kinds.ODT,
        "",
    ),
    "billion laughs in an e-book": (lambda: zipped(**{"META-INF__container": LAUGHING}), kinds.EPUB, ""),
    "deep OpenDocument": (lambda: zipped(content="<a>" * 100_000, **{"META-INF__manifest": "<m/>"}), kinds.ODT, ""),
    "deep links in Rich Text": (lambda: b"{\\rtf1 " + b"{\\field " * 100_000, kinds.RTF, ""),
    "deep XML": (lambda: zipped(ppt__presentation="<a>" * 100_000), kinds.PPTX, ""),
    "deep JSON": (lambda: b'{"cells": ' + b"[" * 100_000, kinds.NOTEBOOK, ""),
    "many pixels": (lambda: huge_png(60_000), "image/png", "This picture has too many pixels."),
    "pixels of a square": (lambda: huge_png(50_000), "image/png", "This picture has too many pixels."),
    "a stream of 700 MB in PDF": (lambda: streaming_pdf(700), kinds.PDF, ""),
    "a workbook with one cell at the end": (far_sheet, kinds.XLSX, ""),
    "billion laughs in a sheet": (lambda: zipped(xl__workbook="<a/>", xl__worksheets__sheet1=LAUGHING), kinds.XLSX, ""),
    "deep JSON of a cell": (lambda: b'{"cells": [{"source": ' + b"[" * 100_000, kinds.NOTEBOOK, ""),
    "endless PDF": (lambda: b"%PDF-1.4\n1 0 obj\n" + b"<<" * 50_000, kinds.PDF, ""),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_file_ends_as_a_sentence(name: str) -> None:
    make, media_type, sentence = BOMBS[name]
    data = make()
    started = time.monotonic()
    view = convert(data, media_type)
    assert view.note.startswith(sentence or ("This ", "The "))
    assert (view.text, view.media_type, view.data) == ("", "", b"")
    assert time.monotonic() - started < 60


@pytest.mark.parametrize(
    ("data", "media_type", "words"),
    [
        (nested_mail(3_000), kinds.EML, ""),
        (b"<p>end</p>" + b"<div>" * 100_000, kinds.HTML, ""),
        (b"<p>end</p>" + b"<table><tr><td>" * 20_000, kinds.HTML, ""),
        (b"{\\rtf1 " + b"{" * 1_000_000, kinds.RTF, ""),
        (b"{\\rtf1 {" + b"\\v " * 300_000 + b"}}", kinds.RTF, ""),
        (b"\xff\xd8\xff\xe1" + b"Exif" * 50_000, "image/jpeg", "This picture is damaged"),
        (b"II*\x00\x08\x00\x00\x00" + b"\xff" * 100_000, kinds.TIFF, "This picture is damaged"),
        (b"GIF89a" + b"\xff\xff\xff\xff" + b"\x00" * 100, "image/gif", "This picture"),
    ],
    ids=[
        "mail in mail",
        "deep page",
        "tables in tables",
        "deep groups",
        "hidden words",
        "JPEG of notes",
        "TIFF of tags",
        "wide GIF",
    ],
)
def test_a_hostile_file_ends_at_all_and_soon(data: bytes, media_type: str, words: str) -> None:
    started = time.monotonic()
    view = convert(data, media_type)
    assert view.words.lstrip("(").startswith(words)
    assert not view.media_type
    assert time.monotonic() - started < 60


REACHING = """
import pathlib, socket, subprocess, sys, threading
sys.path.insert(0, sys.argv[1])
from tools_app.documents import child, walls
child.limit(); walls.wall_off(); child.forbid_files()
def attempt(name, act):
    try:
        act()
    except (OSError, MemoryError) as error:
        print(name, "refused")
    else:
        print(name, "done")
attempt("network", lambda: socket.create_connection(("127.0.0.1", int(sys.argv[2])), 5))
attempt("process", lambda: subprocess.run(["/bin/true"]))
attempt("file", lambda: pathlib.Path(sys.argv[3]).write_text("x"))
attempt("thread", lambda: threading.Thread(target=int).start())
attempt("memory", lambda: bytearray(2 << 30))
print("rights", open("/proc/self/status").read().split("NoNewPrivs:")[1].split()[0])
print("first to end", open("/proc/self/oom_score_adj").read().strip())
"""


def test_the_walls_around_a_reader_hold(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        words = [str(ROOT), str(server.getsockname()[1]), str(tmp_path / "written")]
        done = subprocess.run([sys.executable, "-c", REACHING, *words], capture_output=True, text=True, check=True)
    assert dict(line.rsplit(" ", 1) for line in done.stdout.splitlines()) == {
        **dict.fromkeys(("network", "process", "file", "memory"), "refused"),
        "thread": "done",
        "rights": "1",
        "first to end": "1000",
    }


def test_another_processor_has_the_limits_alone() -> None:
    assert program("riscv64") == b""
    assert {len(program(machine)) % 8 for machine in SYSTEM_CALLS} == {0}


def test_a_reader_that_is_killed_is_a_sentence_and_the_next_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tools_app.documents.converting._PROGRAM", Path("/nonexistent.py"))
    assert convert(b"<p>a</p>", kinds.HTML).note == TOO_SLOW
    monkeypatch.undo()
    assert convert(b"<p>a</p>", kinds.HTML).text == "a"


def test_a_file_that_takes_too_long_is_given_up_and_may_be_tried_again() -> None:
    report = next(brought for brought in DOCUMENTS if brought.name == "report.docx")
    view = convert(report.data, report.media_type, seconds=0.01)
    assert view == View(note=TOO_SLOW, is_lasting=False)
    assert convert(report.data, report.media_type).is_lasting


@pytest.mark.parametrize("brought", [b for b in (*DOCUMENTS, *PICTURES) if has_view(b.data, b.media_type)], ids=str)
def test_half_a_file_is_read_or_named_and_never_fails(brought: Brought) -> None:
    data = brought.data
    view = convert(data[: len(data) // 2], brought.media_type)
    assert view.words or view.media_type


@pytest.mark.parametrize("name", ["talk.pptx", "report.docx", "budget.xlsx"])
def test_a_file_of_office_in_its_strict_form_has_the_same_text(name: str) -> None:
    usual = next(brought for brought in DOCUMENTS if brought.name == name)
    strict = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(usual.data)) as before, zipfile.ZipFile(strict, "w") as after:
        for part in before.namelist():
            names = rb"http://schemas\.openxmlformats\.org/(\w+ml|officeDocument)/2006/"
            after.writestr(part, re.sub(names, rb"http://purl.oclc.org/ooxml/\1/", before.read(part)))
    assert convert(strict.getvalue(), usual.media_type).words == usual.expected


def test_a_view_is_the_same_after_the_storage() -> None:
    view = View(text="Größe\n", media_type="image/png", data=os.urandom(100) + b"\n")
    assert View.unpacked(view.packed()) == view


def test_a_long_text_is_cut_once_with_a_notice() -> None:
    view = convert(b"<p>" + b"word " * 400_000 + b"</p>", kinds.HTML)
    assert 900_000 < len(view.text) <= 1_000_000
    assert view.text.count("cut") + view.text.count("omitted") + view.text.count("characters") >= 1


def test_encoded_bytes_never_are_part_of_the_text() -> None:
    notebook = next(brought for brought in DOCUMENTS if brought.name == "analysis.ipynb")
    assert b"iVBORw0KGgo" in notebook.data
    assert "iVBORw0KGgo" not in notebook.expected
    page = b"<p>a</p><p>data:image/png;base64," + b"QUJD" * 100 + b"</p>"
    assert convert(page, kinds.HTML).text == "a\n\n[image/png, 316 bytes]"
