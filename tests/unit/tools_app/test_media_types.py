"""What bytes are: by the bytes."""

import pytest

from tools_app.core.files.media_types import is_inline, sniff


@pytest.mark.parametrize(
    ("data", "name", "expected"),
    [
        (b"\x89PNG\r\n\x1a\n...", "a.html", "image/png"),
        (b"\xff\xd8\xff\xe0", "", "image/jpeg"),
        (b"GIF89a", "x", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "x", "image/webp"),
        (b"RIFF\x00\x00\x00\x00WAVE", "x.webp", "application/octet-stream"),
        (b"%PDF-1.7", "x.txt", "application/pdf"),
        (b"# Title", "readme.MD", "text/markdown"),
        (b"a,b", "t.csv", "text/csv"),
        (b"{}", "t.json", "application/json"),
        ("grüße".encode(), "t", "text/plain"),
        (b"<html><script>", "index.html", "text/plain"),
        (b"<svg xmlns=''>", "i.svg", "text/plain"),
        (b"a\x00b", "a.txt", "application/octet-stream"),
        (b"\xff\xfea\x00", "a.txt", "text/plain"),
        ("Müller;Köln".encode("cp1252"), "t.csv", "text/csv"),
        ("Müller;Köln".encode("utf-16"), "t.csv", "text/csv"),
        (b"PK\x03\x04", "a.docx", "application/octet-stream"),
    ],
)
def test_the_type_is_found_in_the_bytes(data: bytes, name: str, expected: str) -> None:
    assert sniff(data, name) == expected


def test_only_plain_images_show_inline() -> None:
    assert is_inline("image/png")
    for media_type in ("text/html", "image/svg+xml", "text/plain", "application/pdf", "application/octet-stream"):
        assert not is_inline(media_type)
