"""Folders of any depth are removed and measured, whatever is in them."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.deep_folders import LEVELS, deep_folder
from tests.open_folders import open_to_all
from thinkproject.kernel.trees import remove_tree, tree_size


def test_deeper_folders_than_python_recurses_and_paths_reach_are_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    deep_folder(top, b"x" * 10_000)
    assert sys.getrecursionlimit() < LEVELS
    remove_tree(top)
    assert not top.exists()
    remove_tree(top)


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "file").touch()
    (tmp_path / "top").mkdir()
    (tmp_path / "top" / "link").symlink_to(tmp_path / "kept")
    os.mkfifo(tmp_path / "top" / "pipe")
    remove_tree(tmp_path / "top")
    (tmp_path / "link").symlink_to(tmp_path / "kept")
    with pytest.raises(OSError, match=r"directory|symbolic"):
        remove_tree(tmp_path / "link")
    assert (tmp_path / "kept" / "file").exists()
    assert not (tmp_path / "top").exists()


TAKEN = """
import os, sys
from pathlib import Path
from thinkproject.kernel.trees import remove_tree, tree_size
if os.geteuid() == 0:
    os.setresuid(65534, 65534, 65534)
top = Path(sys.argv[1])
for name in ("a/b/c", "d/e"):
    (top / name).mkdir(parents=True)
    (top / name / "file").write_bytes(b"x" * 8192)
for name, mode in (("a/b/c", 0), ("a/b", 0), ("a", 0o500), ("d", 0o400)):
    (top / name).chmod(mode)
size, count = tree_size(top, most_entries=100)
assert count == 7 and size >= 16384, (size, count)
for name, mode in (("a/b/c", 0), ("a/b", 0), ("a", 0o500), ("d", 0o400)):
    (top / name).chmod(mode)
remove_tree(top)
print("removed")
"""


def test_permissions_that_were_taken_away_are_no_hindrance(tmp_path: Path) -> None:
    """As a user, since root may do all."""
    open_to_all(tmp_path)
    tmp_path.chmod(0o777)
    words = [sys.executable, "-c", TAKEN, str(tmp_path / "top")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout == "removed\n", done.stderr
    assert not (tmp_path / "top").exists()


def test_what_cannot_be_removed_is_an_error_and_all_else_has_gone(tmp_path: Path) -> None:
    (tmp_path / "top" / "kept").mkdir(parents=True)
    for name in ("a", "b", "c"):
        (tmp_path / "top" / name / "d").mkdir(parents=True)
    mount = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"]
    code = f"from thinkproject.kernel.trees import remove_tree; remove_tree({str(tmp_path / 'top')!r})"
    script = f'mount -t tmpfs tmpfs "$1" && exec "$2" -c "{code}"'
    words = [*mount, script, "sh", str(tmp_path / "top" / "kept"), sys.executable]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr:
        pytest.skip("no namespaces here")
    assert "Device or resource busy" in done.stderr
    assert os.listdir(tmp_path / "top") == ["kept"]


def test_the_size_of_a_deep_folder_counts_what_no_path_reaches(tmp_path: Path) -> None:
    deep_folder(tmp_path / "top", b"x" * 1_000_000)
    size, count = tree_size(tmp_path / "top", most_entries=20_000)
    assert size >= 1_000_000
    assert count == LEVELS + 1
    assert tree_size(tmp_path / "top", most_entries=100)[1] in range(101, 103)
    remove_tree(tmp_path / "top")
