"""Zip files: what goes out comes back, and what is hostile is refused whole."""

import io
import os
import stat
import struct
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.test import override_settings

from tools_app.core.files.workspace import Workspace
from tools_app.errors import ArchiveInvalid, FileFailed
from tools_app.workspace import unpacking
from tools_app.workspace.archive import export_zip
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.stores.memory import MemoryWorkspace
from tools_app.workspace.unpacking import import_archive, import_folder


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


def tarred(*entries: tuple[str, bytes], kind: bytes = tarfile.REGTYPE, link: str = "", mode: str = "w") -> bytes:
    """A tar file, packed with `w:gz`. `kind`, `link`: of the last entry."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as archive:  # type: ignore[call-overload]
        for at, (name, data) in enumerate(entries):
            info = tarfile.TarInfo(name)
            info.size = len(data)
            if at == len(entries) - 1:
                info.type, info.linkname = kind, link
            archive.addfile(info, io.BytesIO(data))
    return out.getvalue()


def with_a_header_of_megabytes() -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as archive:
        info = tarfile.TarInfo("f")
        info.pax_headers = {"comment": "x" * 2_000_000}
        archive.addfile(info)
    return out.getvalue()


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
    "tar: up": lambda: tarred(("good", b"1"), ("../evil", b"2")),
    "tar: absolute": lambda: tarred(("/etc/passwd", b"2")),
    "tar: link out": lambda: tarred(("a/l", b""), kind=tarfile.SYMTYPE, link="../../up"),
    "tar: absolute link": lambda: tarred(("l", b""), kind=tarfile.SYMTYPE, link="/etc/passwd"),
    "tar: below a link": lambda: tarred(("l/f", b"1"), ("l", b""), kind=tarfile.SYMTYPE, link="kept"),
    "tar: hard link": lambda: tarred(("f", b"1"), ("l", b""), kind=tarfile.LNKTYPE, link="f"),
    "tar: device": lambda: tarred(("d", b""), kind=tarfile.CHRTYPE),
    "tar: twice": lambda: tarred(("f", b"1"), ("./f", b"2")),
    "tar: bomb": lambda: tarred(("bomb", b"\0" * 20_000_000), mode="w:gz"),
    "tar: cut": lambda: tarred(("f", os.urandom(50_000)))[:20_000],
    "tar: cut gzip": lambda: tarred(("f", os.urandom(50_000)), mode="w:gz")[:20_000],
    "tar: long header": with_a_header_of_megabytes,
}


@pytest.mark.parametrize("kind", ["memory", "directory"])
@pytest.mark.parametrize("name", HOSTILE)
async def test_a_hostile_archive_is_refused_whole(name: str, kind: str, tmp_path: Path) -> None:
    workspace = MemoryWorkspace() if kind == "memory" else DirectoryWorkspace(tmp_path / "root")
    await workspace.write_file("/kept", "x")
    with pytest.raises(ArchiveInvalid):
        await import_archive(workspace, io.BytesIO(HOSTILE[name]()), "/in")
    assert [entry.path for entry in await workspace.glob("**/*")] == ["/kept"]
    assert os.listdir(tmp_path) == (["root"] if kind == "directory" else [])


async def test_entries_that_exclude_each_other_are_refused_whole() -> None:
    workspace = MemoryWorkspace()
    with pytest.raises(FileFailed, match="ENOTDIR"):
        await import_archive(workspace, io.BytesIO(packed(("a", b"1"), ("a/b", b"2"))))
    assert await workspace.glob("**/*") == []


async def test_large_archives_and_files_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = MemoryWorkspace()
    archive = packed(("a", b"x" * 100), ("b", b"y" * 100))
    with override_settings(THINK_WORKSPACE_FILE_MAX_BYTES=99), pytest.raises(ArchiveInvalid):
        await import_archive(workspace, io.BytesIO(archive))
    for name, limit in (("ARCHIVE_ENTRIES", 1), ("ARCHIVE_BYTES", 199)):
        with monkeypatch.context() as patch:
            patch.setattr(unpacking, name, limit)
            with pytest.raises(ArchiveInvalid):
                await import_archive(workspace, io.BytesIO(archive))
    assert len(await import_archive(workspace, io.BytesIO(archive))) == 2


async def test_a_list_of_entries_that_is_too_long_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unpacking, "ARCHIVE_ENTRIES", 2)
    archive = packed(*((f"{number:0200}", b"") for number in range(10)))
    with pytest.raises(ArchiveInvalid, match="2 entries"):
        await import_archive(MemoryWorkspace(), io.BytesIO(archive))


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
    changes = await import_archive(target, io.BytesIO(data), "/into")
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
    [change] = await import_archive(workspace, io.BytesIO(packed(("./f", b"new"))))
    assert (change.kind, change.path) == ("updated", "/f")
    assert await workspace.read_file("/f") == "new"


async def test_a_tar_file_keeps_its_links_and_hidden_files(tmp_path: Path) -> None:
    for mode in ("w", "w:gz"):
        workspace = DirectoryWorkspace(tmp_path / mode.replace(":", "-"))
        data = tarred(("./.git/HEAD", b"ref"), ("./a/l", b""), kind=tarfile.SYMTYPE, link="../.git", mode=mode)
        changes = await import_archive(workspace, io.BytesIO(data), "/in")
        assert [each.path for each in changes if each.entry_kind != "directory"] == ["/in/.git/HEAD", "/in/a/l"]
        assert await workspace.read_file("/in/.git/HEAD") == "ref"
        assert await workspace.readlink("/in/a/l") == "../.git"


async def test_a_folder_comes_in_whole_but_for_what_leads_out_of_it(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    (folder / "src" / "empty").mkdir(parents=True)
    (folder / ".env").write_bytes(b"\0\xff")
    (folder / "src" / "up").symlink_to("../.env")
    (folder / "out").symlink_to("/etc/passwd")
    (folder / "above").symlink_to("../secret")
    (folder / "loop").symlink_to(".")
    (folder / "a\nb").write_text("x")
    os.mkfifo(folder / "pipe")
    workspace = MemoryWorkspace()
    changes, left_out = await import_folder(workspace, folder)
    assert [each.split(":")[0] for each in left_out] == ["a\nb", "above", "out", "pipe"]
    assert {change.path for change in changes} == {"/.env", "/loop", "/src", "/src/empty", "/src/up"}
    assert await workspace.read_bytes("/src/up") == b"\0\xff"
    with pytest.raises(ArchiveInvalid, match="no folder"):
        await import_folder(workspace, folder / ".env")
