"""The rules of `.gitignore` files agree with git's own."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.files.gitignore import IgnoreRules

NAMES = ("a", "b", "ab", "a.b", "a b", "#a", "!a", "a-", "[a]", "a\\b")
DIRECTORIES = ("/a", "/b", "/ab", "/a/a", "/a/b", "/b/ab", "/a/b/a")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    git = shutil.which("git")
    if git is None:
        pytest.skip("git is not installed")
    root = tmp_path_factory.mktemp("repository")
    subprocess.run([git, "init", "--quiet", str(root)], check=True, env=_environment(root))
    (root / ".git" / "info" / "exclude").write_text("")
    for path in paths():
        target = root / path.lstrip("/")
        if path in DIRECTORIES:
            target.mkdir(parents=True, exist_ok=True)
        else:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text("")
    return root


def paths() -> list[str]:
    """A directory for each of the directories, and in each a file of each name that is none of them."""
    found = list(DIRECTORIES)
    for directory in ("", *DIRECTORIES):
        found += [path for name in NAMES if (path := f"{directory}/{name}") not in DIRECTORIES]
    return found


def _environment(root: Path) -> dict[str, str]:
    return {"HOME": str(root), "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null", "LC_ALL": "C.UTF-8"}


def ignored_by_git(root: Path, files: dict[str, str]) -> set[str]:
    for old in root.rglob(".gitignore"):
        old.unlink()
    for directory, text in files.items():
        (root / directory.lstrip("/") / ".gitignore").write_bytes(text.encode())
    asked = "\0".join(path.lstrip("/") for path in paths())
    found = subprocess.run(
        ["git", "check-ignore", "--no-index", "-z", "--stdin"],
        cwd=root,
        env=_environment(root) | {"PATH": "/usr/local/bin:/usr/bin:/bin"},
        input=asked.encode(),
        capture_output=True,
        check=False,
    )
    assert found.returncode in {0, 1}, found.stderr
    return {"/" + path for path in found.stdout.decode().split("\0") if path}


# fmt: off
pieces = st.sampled_from([
    "a", "b", "ab", "*", "**", "**/", "/**", "?", "/", "/", ".", " ", "\\", "!", "#", "[a]", "[!a]", "[a-b", "[^b-z]",
    "]", "-", "a/", "b/", "\\*", "\\ ", "[[:alpha:]]", "[]a]", "[b-a]", "[a/b]", "[\\]]", "[a-]", "[[:x:]]",
])
# fmt: on
lines = st.lists(pieces, max_size=6).map("".join).filter(lambda line: not re.search(r"[^/*!]\*\*", line))
"""Without stars directly after a literal beginning: git compares that first, and takes `a**/b` for `a` and `**/b`, but
its documentation says that these are ordinary stars."""

texts = st.lists(lines, max_size=5).flatmap(
    lambda found: st.sampled_from(["\n", "\r\n"]).map(lambda end: end.join([*found, ""]))
)
files_of_rules = st.dictionaries(st.sampled_from(["/", "/a", "/a/b", "/b"]), texts, max_size=3)


@settings(max_examples=examples(300), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(files=files_of_rules)
def test_the_rules_agree_with_git(repository: Path, files: dict[str, str]) -> None:
    rules = IgnoreRules.empty()
    for directory, text in files.items():
        rules = rules.with_file(directory, text)
    ours = {path for path in paths() if rules.ignores(path, path in DIRECTORIES)}
    assert ours == ignored_by_git(repository, files)
