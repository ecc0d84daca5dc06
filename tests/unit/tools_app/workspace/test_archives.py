"""Zip files: what goes out comes back, and what is hostile is refused whole."""

import io
import os
import stat
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import override_settings

from tools_app.core.files.workspace import Workspace
from tools_app.errors import ArchiveInvalid, FileFailed
from tools_app.workspace import archive as archives
from tools_app.workspace.archive import export_zip, import_zip
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.memory import MemoryWorkspace


async def exported(workspace: Workspace, prefix: str = "/") -> bytes:
    return b"".join([piece async for piece in export_zip(workspace, prefix)])


def packed(*entries: tuple[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries:
            archive.writestr(name, data)
    return out.getvalue()


def with_mode(mode: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        info = zipfile.ZipInfo("entry")
        info.external_attr = mode << 16
        archive.writestr(info, "/etc/passwd")
    return out.getvalue()


def renamed(name: bytes) -> bytes:
    """An archive with a name that `zipfile` would not write."""
    return packed(("good", b"1"), ("X" * len(name), b"2")).replace(b"X" * len(name), name)


def doubled() -> bytes:
    return packed(("same", b"1"), ("SAME", b"2")).replace(b"SAME", b"same")


def encrypted() -> bytes:
    data = bytearray(packed(("f", b"x" * 50)))
    for signature, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        place = data.find(signature) + at
        data[place : place + 2] = struct.pack("<H", 1)
    return bytes(data)


def with_method(method: int) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        archive.writestr("f", b"x" * 500)
    return out.getvalue()


def lying_about_its_size() -> bytes:
    """Says that it has one byte, and has a million."""
    data = packed(("f", b"\0" * 1_000_000))
    return data.replace(struct.pack("<I", 1_000_000), struct.pack("<I", 1))


def damaged() -> bytes:
    data = bytearray(packed(("f", bytes(range(256)) * 100)))
    data[60] ^= 0xFF
    return bytes(data)


def with_zip64_end() -> bytes:
    data = packed(("f", b"x"))
    at = data.rfind(b"PK\x05\x06")
    locator = struct.pack("<4sLQL", b"PK\x06\x07", 0, 0, 1)
    return data[:at] + locator + data[at:]


HOSTILE: dict[str, Callable[[], bytes]] = {
    "no zip": lambda: b"hello",
    "nothing": lambda: b"",
    "up": lambda: packed(("good", b"1"), ("../evil", b"2")),
    "up from below": lambda: packed(("a/../../evil", b"2")),
    "absolute": lambda: packed(("/etc/passwd", b"2")),
    "backslash": lambda: renamed(b"..\\evil"),
    "drive": lambda: packed(("C:/evil", b"2")),
    "nul": lambda: renamed(b"ok\x00evil"),
    "newline": lambda: packed(("a\nb", b"2")),
    "bidi": lambda: packed(("a\u202egpj.exe", b"2")),
    "the target itself": lambda: packed(("./", b"")),
    "too long": lambda: packed(("x" * 300, b"")),
    "too deep": lambda: packed(("d/" * 101 + "f", b"")),
    "link": lambda: with_mode(stat.S_IFLNK | 0o777),
    "device": lambda: with_mode(stat.S_IFCHR | 0o777),
    "pipe": lambda: with_mode(stat.S_IFIFO | 0o777),
    "twice": doubled,
    "file and directory": lambda: packed(("a", b"1"), ("a/", b"")),
    "encrypted": encrypted,
    "lzma": lambda: with_method(zipfile.ZIP_LZMA),
    "bomb": lambda: packed(("bomb", b"\0" * 20_000_000)),
    "lie": lying_about_its_size,
    "damaged": damaged,
    "cut": lambda: packed(("f", b"x" * 1000))[:-30],
    "zip64 end": with_zip64_end,
}


@pytest.mark.parametrize("kind", ["memory", "directory"])
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused_whole(name: str, kind: str, tmp_path: Path) -> None:
    workspace = MemoryWorkspace() if kind == "memory" else DirectoryWorkspace(tmp_path / "root")
    await workspace.write_file("/kept", "x")
    with pytest.raises(ArchiveInvalid):
        await import_zip(workspace, io.BytesIO(HOSTILE[name]()), "/in")
    assert [entry.path for entry in await workspace.glob("**/*")] == ["/kept"]
    assert os.listdir(tmp_path) == (["root"] if kind == "directory" else [])


async def test_entries_that_exclude_each_other_are_refused_whole() -> None:
    workspace = MemoryWorkspace()
    with pytest.raises(FileFailed, match="ENOTDIR"):
        await import_zip(workspace, io.BytesIO(packed(("a", b"1"), ("a/b", b"2"))))
    assert await workspace.glob("**/*") == []


async def test_large_archives_and_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = MemoryWorkspace()
    archive = packed(("a", b"x" * 100), ("b", b"y" * 100))
    with override_settings(THINK_WORKSPACE_FILE_MAX_BYTES=99), pytest.raises(ArchiveInvalid):
        await import_zip(workspace, io.BytesIO(archive))
    for name, limit in (("ARCHIVE_ENTRIES", 1), ("ARCHIVE_BYTES", 199)):
        with monkeypatch.context() as patch:
            patch.setattr(archives, name, limit)
            with pytest.raises(ArchiveInvalid):
                await import_zip(workspace, io.BytesIO(archive))
    assert len(await import_zip(workspace, io.BytesIO(archive))) == 2


async def test_a_list_of_entries_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archives, "ARCHIVE_ENTRIES", 2)
    archive = packed(*((f"{number:0200}", b"") for number in range(10)))
    with pytest.raises(ArchiveInvalid, match="2 entries"):
        await import_zip(MemoryWorkspace(), io.BytesIO(archive))


async def test_what_is_exported_can_be_imported(tmp_path: Path) -> None:
    source = MemoryWorkspace()
    large = bytes(range(256)) * 8192
    await source.write_file("/a/ä.txt", "grüße")
    await source.write_file("/a/large", large)
    await source.mkdir("/a/empty")
    await source.symlink("ä.txt", "/a/link")
    await source.write_file("/b", "")
    data = await exported(source)
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert sorted(archive.namelist()) == ["a/", "a/empty/", "a/large", "a/ä.txt", "b"]
    target = DirectoryWorkspace(tmp_path)
    changes = await import_zip(target, io.BytesIO(data), "/into")
    assert {change.kind for change in changes} == {"created"}
    found = [entry.path for entry in await target.glob("/into/**/*")]
    assert found == ["/into/a", "/into/a/empty", "/into/a/large", "/into/a/ä.txt", "/into/b"]
    assert await target.read_bytes("/into/a/large") == large
    assert await target.read_file("/into/a/ä.txt") == "grüße"


async def test_a_part_is_exported_by_names_relative_to_it() -> None:
    workspace = MemoryWorkspace()
    await workspace.write_file("/a[1]/b/f", "1")
    await workspace.write_file("/a1/g", "2")
    for prefix, names in (("/a[1]", ["b/", "b/f"]), ("/a[1]/b/f", ["f"]), ("/a1", ["g"])):
        with zipfile.ZipFile(io.BytesIO(await exported(workspace, prefix))) as archive:
            assert archive.namelist() == names
    with pytest.raises(FileFailed, match="ENOENT"):
        await exported(workspace, "/absent")


async def test_an_export_comes_in_pieces() -> None:
    workspace = MemoryWorkspace()
    for number in range(5):
        await workspace.write_file(f"/{number}", bytes(range(256)) * 8192)
    pieces = [piece async for piece in export_zip(workspace)]
    assert len(pieces) > 20
    assert max(map(len, pieces)) < 1_000_000


async def test_a_large_file_that_goes_meanwhile_is_left_out_and_the_rest_is_whole() -> None:
    workspace = MemoryWorkspace()
    for name in "abc":
        await workspace.write_file(f"/{name}", bytes(range(256)) * 8192)
    sent = bytearray()
    async for piece in export_zip(workspace):
        sent += piece
        await workspace.rm("/b", force=True)
    with zipfile.ZipFile(io.BytesIO(bytes(sent))) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == ["a", "c"]


async def test_an_import_replaces_files() -> None:
    workspace = MemoryWorkspace()
    await workspace.write_file("/f", "old")
    [change] = await import_zip(workspace, io.BytesIO(packed(("./f", b"new"))))
    assert (change.kind, change.path) == ("updated", "/f")
    assert await workspace.read_file("/f") == "new"
