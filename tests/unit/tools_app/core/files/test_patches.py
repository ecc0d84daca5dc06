"""Patches that git applies, and hunks that are taken back one by one."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.files.hunks import hunks_of, without_hunks
from tools_app.core.files.patches import Blob, PatchedFile, git_patch

LINES = "".join(f"line {number}\n" for number in range(40))
RANDOM = bytes(range(256)) * 7
LONG = "x\n" * 11_000
FILES: dict[str, tuple[Blob | None, Blob | None]] = {
    "/src/changed.py": (Blob(LINES.encode()), Blob(LINES.replace("line 3\n", "").replace("30", "thirty").encode())),
    "/no newline": (Blob(b"a\nb"), Blob(b"a\nc")),
    "/newline comes": (Blob(b"a"), Blob(b"a\n")),
    "/crlf.txt": (Blob(b"a\r\nb\r\n"), Blob(b"a\r\nc\r\n")),
    "/new/file.txt": (None, Blob("grüße\n".encode())),
    "/new/empty": (None, Blob(b"")),
    "/gone": (Blob(b"gone\n"), None),
    "/gone empty": (Blob(b""), None),
    "/old/name": (Blob(b"moved\n"), None),
    "/other/n\u00e4me": (None, Blob(b"moved\n")),
    "/new.bin": (None, Blob(RANDOM)),
    "/changed.bin": (Blob(RANDOM), Blob(RANDOM[1:] + b"\0")),
    "/gone.bin": (Blob(b"\0gone"), None),
    "/latin1": (Blob(b"gr\xfc\xdfe\n"), Blob(b"gr\xfc\xdf\n")),
    "/long": (Blob(LONG.encode()), Blob(f"{LONG}y\n".encode())),
    "/link": (None, Blob(b"src/changed.py", is_link=True)),
    "/relinked": (Blob(b"gone", is_link=True), Blob(b"link", is_link=True)),
    "/becomes a link": (Blob(b"text\n"), Blob(b"link", is_link=True)),
    '/quo"ted\\name': (Blob(b"1\n"), Blob(b"2\n")),
    "/.git/index": (Blob(b"1"), Blob(b"2")),
    "/same": (Blob(b"same"), Blob(b"same")),
}


def put(folder: Path, path: str, blob: Blob | None) -> None:
    place = folder / path.lstrip("/")
    if blob is None or ".git" in place.parts:
        return
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(blob.content.decode()) if blob.is_link else place.write_bytes(blob.content)


def found_in(folder: Path) -> dict[str, Blob]:
    found = {}
    for place in folder.rglob("*"):
        name = f"/{place.relative_to(folder)}"
        if name.startswith("/.git") or (place.is_dir() and not place.is_symlink()):
            continue
        found[name] = (
            Blob(os.readlink(place).encode(), is_link=True) if place.is_symlink() else Blob(place.read_bytes())
        )
    return found


def git(folder: Path, *words: str, given: bytes = b"") -> str:
    home = {"HOME": str(folder), "PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *words], cwd=folder, env=home, input=given, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_applies_a_patch_and_takes_it_back(tmp_path: Path) -> None:
    git(tmp_path, "init", "-q")
    for path, (before, _) in FILES.items():
        put(tmp_path, path, before)
    first = found_in(tmp_path)
    patch = git_patch(PatchedFile(path=path, before=before, after=after) for path, (before, after) in FILES.items())
    assert git(tmp_path, "apply", "--check", "-", given=patch) == ""
    git(tmp_path, "apply", "--whitespace=nowarn", "-", given=patch)
    wanted = {path: after for path, (_, after) in FILES.items() if after is not None and path != "/.git/index"}
    assert found_in(tmp_path) == wanted
    assert "rename from old/name" in patch.decode()
    git(tmp_path, "apply", "--reverse", "--whitespace=nowarn", "-", given=patch)
    assert found_in(tmp_path) == first


def test_of_two_hunks_one_is_taken_back_and_the_other_keeps_its_name() -> None:
    after = LINES.replace("line 3\n", "line three\n").replace("line 30\n", "")
    first, second = hunks_of(LINES, after, "/f")
    assert (first.place, second.place) == ("@@ -1,7 +1,7 @@", "@@ -28,7 +28,6 @@")
    left = without_hunks(LINES, after, [first])
    assert left == LINES.replace("line 30\n", "")
    assert [each.id for each in hunks_of(LINES, left, "/f")] == [second.id]
    assert without_hunks(LINES, after, [first, second]) == LINES
    twice = hunks_of("a\n" * 30, "".join(["b\n", "a\n" * 28, "b\n"]), "/f")
    assert len({each.id for each in twice}) == 2


_TEXTS = st.lists(st.sampled_from(["a\n", "b\n", "\n", "c\r\n", "\x0c\n"]), max_size=40).map("".join)


@settings(max_examples=examples(50))
@given(before=_TEXTS, after=_TEXTS, ending=st.sampled_from(["", "end"]), data=st.data())
def test_any_hunks_taken_back_leave_the_others(before: str, after: str, ending: str, data: st.DataObject) -> None:
    after += ending
    hunks = hunks_of(before, after, "/f")
    assert (hunks == []) == (before == after)
    assert without_hunks(before, after, hunks) == before
    some = data.draw(st.lists(st.sampled_from(hunks), unique_by=lambda each: each.id)) if hunks else []
    left = without_hunks(before, after, some)
    assert without_hunks(before, left, hunks_of(before, left, "/f")) == before
