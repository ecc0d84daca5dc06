"""A directory with a repository as git sees it: git's own words, and nothing of the repository runs or changes."""

import os
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.budget import examples
from tests.git_commands import git
from tools_app.errors import FileFailed
from tools_app.workspace import repositories
from tools_app.workspace.repositories import Repository, RepositoryChange
from tools_app.workspace.stores.directory import DirectoryWorkspace


@pytest.fixture
def cloned_repository(tmp_path: Path) -> Path:
    """A repository with a commit."""
    folder = tmp_path / "clone"
    (folder / "src").mkdir(parents=True)
    for at in range(12):
        (folder / "src" / f"{at}.py").write_text("".join(f"line {at} {line}\n" for line in range(20)))
    (folder / "picture.bin").write_bytes(bytes(range(256)) * 20)
    (folder / ".gitignore").write_text("*.log\n")
    git(folder, "init", "-q", "-b", "main")
    git(folder, "add", ".")
    git(folder, "commit", "-qm", "begin")
    return folder


def opened(folder: Path) -> Repository:
    return Repository(DirectoryWorkspace(folder))


def inside(folder: Path) -> dict[str, tuple[bytes, int]]:
    """All that a repository consists of."""
    files = [path for path in (folder / ".git").rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


def work_tree(folder: Path) -> dict[str, tuple[bytes, bool]]:
    """Files beside the repository, and whether they can be run."""
    files = [path for path in folder.rglob("*") if path.is_file() and ".git" not in path.relative_to(folder).parts]
    return {str(path.relative_to(folder)): (path.read_bytes(), os.access(path, os.X_OK)) for path in files}


def edit(folder: Path, chance: random.Random) -> None:
    """Some changes as programs and people make them."""
    for _ in range(chance.randrange(1, 8)):
        files = [path for path in (folder / "src").rglob("*") if path.is_file()]
        path = chance.choice(files)
        match chance.choice(("change", "delete", "move", "make", "mode", "binary", "odd", "stage")):
            case "change":
                path.write_text(path.read_text(errors="replace").replace("5", "five"))
            case "delete" if len(files) > 3:
                path.unlink()
            case "move":
                (folder / "src" / "moved").mkdir(exist_ok=True)
                path.rename(folder / "src" / "moved" / f"{chance.randrange(99)}.py")
            case "make":
                (folder / "src" / f"new-{chance.randrange(99)}").write_text("new\n" * chance.randrange(3))
            case "mode":
                path.chmod(0o755)
            case "binary":
                (folder / "picture.bin").write_bytes(chance.randbytes(3_000))
            case "odd":
                (folder / "src" / 'a "b" \n é.txt').write_text("odd")
            case "stage":
                git(folder, "add", "--all")
            case _:
                pass


HUNKS = ("diff", "--no-renames", "HEAD")


def paths_of(change: RepositoryChange) -> list[str]:
    return [path.removeprefix("/") for path in (change.path, change.was) if path]


def hunks(patch: str) -> list[str]:
    """The lines of a patch of one file from its first place on."""
    lines = patch.splitlines()
    return lines[next((at for at, line in enumerate(lines) if line.startswith("@@")), len(lines)) :]


def staged(folder: Path, changes: Sequence[RepositoryChange]) -> dict[str, str]:
    """How much of each change is in the index, by the letters of `git status`: of the index, then of the files."""
    fields = git(folder, "status", "--porcelain", "--no-renames", "-z").split("\0")
    letters = {f"/{field[3:]}": field[:2] for field in fields if field}
    found = {}
    for each in changes:
        index, files = tuple(letters.get(each.path, "??"))
        found[each.path] = "none" if index in " ?" else "all" if files == " " else "part"
    return found


def test_a_patch_gives_what_is_there_and_the_list_names_it(cloned_repository: Path, tmp_path: Path) -> None:
    for seed in range(examples(40)):
        chance = random.Random(seed)
        edit(cloned_repository, chance)
        repository, before = opened(cloned_repository), inside(cloned_repository)
        state, patch = repository.state(), repository.patch()
        assert inside(cloned_repository) == before, "git wrote into the repository"
        assert (state.branch, state.commit) == ("main", git(cloned_repository, "rev-parse", "HEAD").strip())
        copy = tmp_path / f"copy-{seed}"
        git(tmp_path, "clone", "-q", "--no-local", str(cloned_repository), str(copy))
        if patch:
            (tmp_path / "patch").write_bytes(patch)
            git(copy, "apply", "--whitespace=nowarn", str(tmp_path / "patch"))
        assert work_tree(copy) == work_tree(cloned_repository)
        committed = set(git(cloned_repository, "ls-tree", "-r", "-z", "--name-only", "HEAD").split("\0")) - {""}
        ours = {f"/{path}" for path in work_tree(cloned_repository)}
        theirs = {f"/{path}" for path in committed}
        left = {each.path for each in state.changes if each.kind == "deleted"} | {each.was for each in state.changes}
        made = {each.path for each in state.changes if each.kind == "created" or each.was}
        assert (left - {""}, made) == (theirs - ours, ours - theirs)
        tracked = {f"/{path}" for path in git(cloned_repository, "ls-files", "-z").split("\0")}
        assert all(each.is_tracked == (each.path in tracked or each.kind == "deleted") for each in state.changes)
        assert {each.path: each.staged for each in state.changes} == staged(cloned_repository, state.changes)
        for each in state.changes:
            wanted = git(cloned_repository, *HUNKS, "--", *paths_of(each)) if each.is_tracked and not each.was else None
            found = repository.difference(each.path, each.was)
            assert wanted is None or found.diff.splitlines() == hunks(wanted)
        shutil.rmtree(copy)


def test_what_changed_within_the_second_in_which_it_was_staged_is_seen(cloned_repository: Path) -> None:
    picture = cloned_repository / "picture.bin"
    for content in range(20):
        picture.write_bytes(bytes([content]) * 3_000)
        git(cloned_repository, "add", "picture.bin")
        picture.write_bytes(bytes([100 + content]) * 3_000)
        staged = (cloned_repository / ".git" / "index").stat()
        if int(staged.st_mtime) == int(picture.stat().st_mtime):
            break
    while time.time() < int(staged.st_mtime) + 1:  # a look in the same second distrusts all
        time.sleep(0.05)
    assert opened(cloned_repository).patch() == git(cloned_repository, "diff", "--binary", "HEAD").encode()


def test_changes_are_told_apart(cloned_repository: Path) -> None:
    (cloned_repository / "src" / "0.py").write_text("changed\n")
    (cloned_repository / "src" / "1.py").unlink()
    git(cloned_repository, "mv", "src/2.py", "src/two.py")
    (cloned_repository / "new.txt").write_text("new\n")
    (cloned_repository / "build.log").write_text("ignored\n")
    (cloned_repository / "src" / "3.py").write_text("staged\n")
    (cloned_repository / "src" / "4.py").write_text("staged\n")
    git(cloned_repository, "add", "src/3.py", "src/4.py")
    (cloned_repository / "src" / "4.py").write_text("staged\nand changed again\n")
    state = opened(cloned_repository).state()
    assert sorted(state.changes, key=lambda each: each.path) == [
        RepositoryChange(path="/new.txt", kind="created", is_tracked=False),
        RepositoryChange(path="/src/0.py", kind="updated", is_tracked=True),
        RepositoryChange(path="/src/1.py", kind="deleted", is_tracked=True),
        RepositoryChange(path="/src/3.py", kind="updated", is_tracked=True, staged="all"),
        RepositoryChange(path="/src/4.py", kind="updated", is_tracked=True, staged="part"),
        RepositoryChange(path="/src/two.py", kind="updated", is_tracked=True, staged="all", was="/src/2.py"),
    ]
    assert not state.has_more


def test_the_difference_of_one_file(cloned_repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = cloned_repository / "src"
    (source / "0.py").write_text((source / "0.py").read_text().replace("line 0 10\n", "line 0 ten\n--- a/x\n"))
    git(cloned_repository, "mv", "src/2.py", "src/two.py")
    (source / "two.py").write_text((source / "two.py").read_text() + "more\n")
    (cloned_repository / "picture.bin").write_bytes(bytes(300))
    (cloned_repository / "new").mkdir()
    (cloned_repository / "new" / "[a].txt").write_text("new\n")
    (source / "1.py").chmod(0o755)
    repository, before = opened(cloned_repository), inside(cloned_repository)
    changed = repository.difference("/src/0.py")
    assert (changed.added, changed.removed) == (2, 1)
    assert changed.diff.splitlines()[0].startswith("@@ -8,7 +8,8 @@")
    assert "\n-line 0 10\n+line 0 ten\n+--- a/x\n line 0 11\n" in changed.diff
    moved = repository.difference("src/two.py", "/src/2.py")
    assert (moved.path, moved.added, moved.removed, "+more" in moved.diff) == ("/src/two.py", 1, 0, True)
    assert repository.difference("/new/[a].txt").diff == "@@ -0,0 +1 @@\n+new\n"
    for path in ("/picture.bin", "/src/1.py"):  # no text, and another mode alone
        assert (repository.difference(path).diff, repository.difference(path).is_cut) == ("", False)
    for path in ("/src/3.py", "/src", "/", "/nothing", "/.git/config", "/../outside", "/[!x]*"):
        with pytest.raises(FileFailed) as failure:
            repository.difference(path)
        assert failure.value.errno == "ENOENT"
    monkeypatch.setattr(repositories, "MAX_DIFFERENCE_BYTES", 100)
    cut = repository.difference("/src/0.py")
    assert (cut.diff, cut.is_cut) == ("", True)
    assert inside(cloned_repository) == before


def test_before_the_first_commit_and_away_from_a_branch(cloned_repository: Path, tmp_path: Path) -> None:
    git(cloned_repository, "checkout", "-q", "--detach")
    assert (opened(cloned_repository).state().branch, opened(cloned_repository).patch()) == ("", b"")
    git(cloned_repository, "pack-refs", "--all")
    git(cloned_repository, "checkout", "-q", "main")
    git(cloned_repository, "gc", "-q")
    assert opened(cloned_repository).state().commit == git(cloned_repository, "rev-parse", "main").strip()
    fresh = tmp_path / "fresh"
    fresh.mkdir()
    git(fresh, "init", "-q", "-b", "trunk")
    (fresh / "a").write_text("a\n")
    state = opened(fresh).state()
    assert (state.branch, state.commit, [each.path for each in state.changes]) == ("trunk", "", ["/a"])
    assert b"+a\n" in opened(fresh).patch()
    assert opened(fresh).difference("/a").added == 1


def test_nothing_of_the_repository_runs(cloned_repository: Path, tmp_path: Path) -> None:
    """Hooks, filters, converters, monitors, external diffs, aliases and includes: plain git would run them."""
    mark, program = tmp_path / "ran", tmp_path / "program"
    program.write_text(f'#!/bin/sh\necho "$@" >> {mark}\ncat\n')
    program.chmod(0o755)
    (cloned_repository / ".gitattributes").write_text("*.py filter=bad diff=bad\n")
    (tmp_path / "included").write_text(f"[diff]\nexternal = {program}\n")
    for key, value in {
        "filter.bad.clean": str(program),
        "filter.bad.smudge": str(program),
        "filter.bad.required": "true",
        "diff.bad.textconv": str(program),
        "diff.bad.command": str(program),
        "core.fsmonitor": str(program),
        "core.pager": str(program),
        "core.sshCommand": str(program),
        "core.hooksPath": str(tmp_path),
        "alias.diff": f"!{program}",
        "include.path": str(tmp_path / "included"),
        "core.autocrlf": "input",
    }.items():
        git(cloned_repository, "config", key, value)
    for name in ("post-index-change", "pre-commit", "fsmonitor-watchman"):
        shutil.copy(program, tmp_path / name)
    for path in (cloned_repository / "src").iterdir():
        path.write_text(path.read_text() + "more\n")
    repository = opened(cloned_repository)
    assert len(repository.state().changes) == 13
    patch = repository.patch()
    assert patch.count(b"+more\n") == 12
    assert not mark.exists(), mark.read_text()
    git(cloned_repository, "status")
    assert mark.exists(), "this test has no trap"


def test_what_a_repository_says_of_line_ends_counts(cloned_repository: Path) -> None:
    git(cloned_repository, "config", "core.autocrlf", "true")
    path = cloned_repository / "src" / "0.py"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert opened(cloned_repository).patch() == b""


def elsewhere(cloned_repository: Path, tmp_path: Path) -> Path:
    made = tmp_path / "tree"
    git(cloned_repository, "worktree", "add", "-q", str(made))
    return made


def linked(cloned_repository: Path, tmp_path: Path) -> Path:
    made = tmp_path / "linked"
    made.mkdir()
    (made / ".git").symlink_to(cloned_repository / ".git")
    return made


def borrowing(cloned_repository: Path, tmp_path: Path) -> Path:
    made = tmp_path / "borrowing"
    git(tmp_path, "clone", "-q", "--shared", str(cloned_repository), str(made))
    return made


def linked_objects(cloned_repository: Path, tmp_path: Path) -> Path:
    made = tmp_path / "objects"
    shutil.copytree(cloned_repository, made)
    shutil.rmtree(made / ".git" / "objects")
    (made / ".git" / "objects").symlink_to(cloned_repository / ".git" / "objects")
    return made


@pytest.mark.parametrize("make", [elsewhere, linked, borrowing, linked_objects])
def test_a_repository_that_is_kept_elsewhere_is_not_read(
    cloned_repository: Path, tmp_path: Path, make: Callable[[Path, Path], Path]
) -> None:
    repository = opened(make(cloned_repository, tmp_path))
    for ask in (repository.state, repository.patch):
        with pytest.raises(FileFailed) as failure:
            ask()
        assert failure.value.errno == "EINVAL"


def test_references_lead_to_no_other_file(cloned_repository: Path) -> None:
    for text in ("ref: refs/../../../etc/passwd", "ref: /etc/passwd", "not a commit", "ref: refs/heads/loop"):
        (cloned_repository / ".git" / "HEAD").write_text(f"{text}\n")
        (cloned_repository / ".git" / "refs" / "heads" / "loop").write_text("ref: refs/heads/loop\n")
        with pytest.raises(FileFailed):
            opened(cloned_repository).state()


def test_without_a_repository_there_is_none(tmp_path: Path) -> None:
    with pytest.raises(FileFailed) as failure:
        opened(tmp_path).state()
    assert failure.value.errno == "ENOENT"


def test_time_and_output_are_bounded(cloned_repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (cloned_repository / "src" / "0.py").write_text("x" * 5_000)
    monkeypatch.setattr(repositories, "MAX_PATCH_BYTES", 1_000)
    with pytest.raises(FileFailed) as failure:
        opened(cloned_repository).patch()
    assert failure.value.errno == "EFBIG"
    monkeypatch.undo()
    monkeypatch.setattr(repositories, "SECONDS", 0.0)
    with pytest.raises(FileFailed) as failure:
        opened(cloned_repository).patch()
    assert failure.value.errno == "EIO"
