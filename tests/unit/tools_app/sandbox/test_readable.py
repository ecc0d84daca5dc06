"""Files of a private folder are lent to other users: whole, safely, once for all processes, and not for ever."""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.house.repository import ROOT
from tests.open_folders import open_to_all
from tools_app.sandbox.readable import GONE, LARGE_BYTES, LOCK, WORK, is_open, readable, sweep


@pytest.fixture
def private(tmp_path: Path) -> Path:
    """A folder that its owner alone can enter, with a script, a large program and a folder within."""
    folder = tmp_path / "private"
    (folder / "sources" / "below").mkdir(parents=True)
    (folder / "sources" / "main.js").write_text("1")
    (folder / "sources" / "below" / "other.js").write_text("2")
    (folder / "program").write_bytes(b"#!" + os.urandom(LARGE_BYTES))
    (folder / "program").chmod(0o755)
    folder.chmod(0o700)
    return folder


@pytest.fixture
def place(settings: Any) -> Iterator[Path]:
    """A place for entries, in a folder that all can enter."""
    with tempfile.TemporaryDirectory(prefix="think-test-") as name:
        Path(name).chmod(0o755)
        made = Path(name, "copies")
        settings.THINK_SANDBOX_COPIES_DIR = str(made)
        yield made


def test_what_all_can_read_stays_where_it_is(tmp_path: Path, place: Path) -> None:
    script = tmp_path / "open.js"
    script.write_text("1")
    open_to_all(script)
    assert readable(script) == script.resolve()
    assert not place.exists()


def test_a_file_of_a_private_folder_is_lent(private: Path, place: Path) -> None:
    script = private / "sources" / "main.js"
    lent = readable(script)
    assert lent.is_relative_to(place)
    assert (lent.name, lent.read_text()) == ("main.js", "1")
    assert is_open(lent)
    assert readable(script) == lent
    assert lent.stat().st_ino != script.stat().st_ino, "an editor could write into a link"


def test_a_large_program_is_not_copied(private: Path, place: Path) -> None:
    lent = readable(private / "program")
    assert lent.stat().st_ino == (private / "program").stat().st_ino
    assert lent.stat().st_mode & 0o777 == 0o755


def test_a_program_that_others_could_change_is_copied(private: Path, place: Path) -> None:
    (private / "program").chmod(0o775)
    lent = readable(private / "program")
    assert lent.stat().st_ino != (private / "program").stat().st_ino
    assert lent.stat().st_mode & 0o777 == 0o755
    assert lent.read_bytes() == (private / "program").read_bytes()


def test_nothing_that_was_lent_can_be_written_by_others(private: Path, place: Path) -> None:
    mask = os.umask(0)
    try:
        lent = readable(private / "sources")
    finally:
        os.umask(mask)
    for each in (place, lent.parent, lent, *lent.rglob("*")):
        assert each.stat().st_uid == os.geteuid()
        assert not each.stat().st_mode & 0o022, each


def test_a_folder_is_lent_whole_whatever_the_mask_is(private: Path, place: Path) -> None:
    mask = os.umask(0o077)
    try:
        lent = readable(private / "sources")
    finally:
        os.umask(mask)
    assert (lent / "below" / "other.js").read_text() == "2"
    assert is_open(lent)


def test_other_contents_are_another_entry_and_the_former_one_stays(private: Path, place: Path) -> None:
    script = private / "sources" / "main.js"
    before = readable(script)
    script.write_text("other")
    after = readable(script)
    assert (before.read_text(), after.read_text()) == ("1", "other")


def test_an_entry_that_was_taken_away_is_made_again(private: Path, place: Path) -> None:
    script = private / "sources" / "main.js"
    lent = readable(script)
    for each in (lent, lent.parent / LOCK):
        each.unlink()
    lent.parent.rmdir()
    assert readable(script).read_text() == "1"


def test_a_place_that_is_a_link_is_not_used(private: Path, place: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    place.symlink_to(elsewhere)
    with pytest.raises(OSError, match="no folder to which this user alone can write"):
        readable(private / "program")
    assert list(elsewhere.iterdir()) == []


def test_a_place_in_which_others_can_write_is_not_used(private: Path, place: Path) -> None:
    place.mkdir()
    place.chmod(0o777)
    with pytest.raises(OSError, match="no folder to which this user alone can write"):
        readable(private / "program")


def test_a_place_of_another_user_is_not_used(private: Path, place: Path) -> None:
    place.mkdir()
    if os.geteuid() == 0:
        os.chown(place, 65533, 65533)
    else:
        place.parent.chmod(0o777)  # where that user could put one
    with pytest.raises(OSError, match=r"no folder to which|others can write"):
        readable(private / "program")


def test_a_place_below_a_folder_in_which_others_can_move_it_away_is_not_used(private: Path, place: Path) -> None:
    place.parent.chmod(0o777)
    with pytest.raises(OSError, match="others can write to"):
        readable(private / "program")


def test_a_place_that_others_cannot_enter_is_not_used(private: Path, place: Path) -> None:
    place.parent.chmod(0o700)
    with pytest.raises(OSError, match="others cannot enter"):
        readable(private / "program")


def test_an_entry_that_others_could_change_is_not_used(private: Path, place: Path) -> None:
    lent = readable(private / "program")
    (private / "program").write_bytes(b"of another process" * LARGE_BYTES)
    lent = readable(private / "program")
    lent.parent.chmod(0o777)
    assert OTHER_PROCESS_FAILS in in_another_process(private / "program", place)


OTHER_PROCESS_FAILS = "no folder to which this user alone can write"
READ = """
import os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings_test"
import django
from django.conf import settings
settings.THINK_SANDBOX_COPIES_DIR = sys.argv[2]
from pathlib import Path
from tools_app.sandbox.readable import readable
sys.stdin.readline()
print(readable(Path(sys.argv[1])), flush=True)
sys.stdin.readline()
"""


def begun(path: Path, place: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", READ, str(path), str(place)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def in_another_process(path: Path, place: Path) -> str:
    return "".join(begun(path, place).communicate("go\nend\n"))


def test_processes_that_start_at_once_make_one_entry(private: Path, place: Path) -> None:
    processes = [begun(private / "program", place) for _ in range(4)]
    for each in processes:
        assert each.stdin is not None
        each.stdin.write("go\n")
        each.stdin.flush()
    found = {each.stdout.readline() for each in processes if each.stdout is not None}
    for each in processes:
        each.communicate("end\n")
    assert found == {f"{readable(private / 'program')}\n"}
    assert len(list(place.iterdir())) == 1


def test_what_no_process_holds_goes_in_time_and_what_one_holds_stays(private: Path, place: Path) -> None:
    script = private / "sources" / "main.js"
    other = begun(script, place)
    assert other.stdin is not None
    assert other.stdout is not None
    other.stdin.write("go\n")
    other.stdin.flush()
    lent = Path(other.stdout.readline().strip())
    assert lent.exists()
    half_made = place / f"{WORK}x"
    half_made.mkdir()
    long_ago = time.time() - 30 * 24 * 3600
    for each in (lent.parent / LOCK, half_made):
        os.utime(each, (long_ago, long_ago))
    sweep(place)
    assert lent.exists()
    assert not half_made.exists()
    other.communicate("end\n")
    sweep(place)
    assert not lent.exists()
    assert [each for each in place.iterdir() if each.name.startswith(GONE)] == []


def test_what_was_held_lately_stays_between_two_starts(private: Path, place: Path) -> None:
    lent = Path(in_another_process(private / "program", place).strip())
    sweep(place)
    assert lent.exists()
