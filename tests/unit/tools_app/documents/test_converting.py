"""Files read in a process of their own: text and pictures that are expected, and limits that hold."""

import io
import os
import struct
import time
import zipfile
import zlib

import pytest
from PIL import Image

from tests.files_people_bring import DOCUMENTS, PICTURES, Brought
from tools_app.core.files import kinds
from tools_app.core.files.encodings import shown_text
from tools_app.core.files.kinds import has_view
from tools_app.documents.converting import TOO_SLOW, View, convert
from tools_app.documents.readers.archive import MAX_UNPACKED_BYTES, TOO_LARGE

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


BOMBS = {
    "zip bomb": (zipped(word__document=b"\0" * (MAX_UNPACKED_BYTES + 1)), kinds.DOCX, TOO_LARGE),
    "billion laughs in Word": (zipped(word__document=LAUGHING), kinds.DOCX, ""),
    "billion laughs in PowerPoint": (zipped(ppt__presentation=LAUGHING), kinds.PPTX, ""),
    "billion laughs in Excel": (zipped(xl__workbook=LAUGHING), kinds.XLSX, ""),
    "deep XML": (zipped(ppt__presentation="<a>" * 100_000), kinds.PPTX, ""),
    "deep JSON": (b'{"cells": ' + b"[" * 100_000, kinds.NOTEBOOK, ""),
    "many pixels": (huge_png(60_000), "image/png", "This picture has too many pixels."),
    "endless PDF": (b"%PDF-1.4\n1 0 obj\n" + b"<<" * 50_000, kinds.PDF, ""),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_hostile_file_ends_as_a_sentence(name: str) -> None:
    data, media_type, sentence = BOMBS[name]
    started = time.monotonic()
    view = convert(data, media_type)
    assert view.note.startswith(sentence or "This ")
    assert (view.text, view.media_type, view.data) == ("", "", b"")
    assert time.monotonic() - started < 60


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
