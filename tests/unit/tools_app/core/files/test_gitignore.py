"""The rules of `.gitignore` files, by example; the law is in `tests/properties/test_gitignore.py`."""

import pytest

from tools_app.core.files.gitignore import IgnoreRules


@pytest.mark.parametrize(
    ("text", "ignored", "kept"),
    [
        ("*.log", ["/a.log", "/x/y/b.log"], ["/a.txt"]),
        ("/build", ["/build", "/build/x/y"], ["/src/build"]),
        ("docs/*.txt", ["/docs/a.txt"], ["/docs/x/a.txt", "/x/docs/a.txt"]),
        ("node_modules/", ["/node_modules/x.js", "/a/node_modules/x.js"], ["/x/node_modules"]),
        ("**/tmp", ["/tmp", "/a/b/tmp"], ["/tmpx"]),
        ("a/**/z", ["/a/z", "/a/b/c/z"], ["/z"]),
        ("*\n!*/\n!*.py", ["/a.txt", "/x/a.txt"], ["/a.py", "/x/y/a.py"]),
        ("*.log\n!keep.log", ["/a.log"], ["/keep.log", "/x/keep.log"]),
        ("dir\n!dir/keep", ["/dir/keep"], []),
        ("# a comment\n\\#a\n\\!b", ["/#a", "/!b"], ["/# a comment"]),
        ("a  \nb\\ \r\nc\r\n", ["/a", "/b ", "/c"], ["/a  ", "/b"]),
        ("\ufeffa", ["/a"], ["/b"]),
        ("\n/\n!\n  \n", [], ["/a", "/ "]),
    ],
)
def test_one_file(text: str, ignored: list[str], kept: list[str]) -> None:
    rules = IgnoreRules.empty().with_file("/", text)
    assert [path for path in ignored if not rules.ignores(path, is_directory=False)] == []
    assert [path for path in kept if rules.ignores(path, is_directory=False)] == []


def test_the_nearest_file_decides() -> None:
    rules = IgnoreRules.empty().with_file("/", "*.log\n/only").with_file("/sub", "!a.log\n/only")
    assert rules.ignores("/a.log", is_directory=False)
    assert not rules.ignores("/sub/a.log", is_directory=False)
    assert rules.ignores("/sub/b.log", is_directory=False)
    assert rules.ignores("/sub/only", is_directory=True)
    assert not rules.ignores("/sub/x/only", is_directory=True)


def test_adding_a_file_leaves_the_value_as_it_was() -> None:
    before = IgnoreRules.empty()
    assert before.with_file("/", "a").ignores("/a", is_directory=False)
    assert not before.ignores("/a", is_directory=False)


def test_hostile_lines_take_linear_time_and_hide_no_others() -> None:
    hostile = "\n".join(["*a" * 300 + "b", "**/a/" * 300 + "b", "{" * 3_000, "x" * 10_000, "\ud800", "[a" * 900])
    rules = IgnoreRules.empty().with_file("/", hostile + "\nsecret")
    assert not rules.ignores("/" + "a" * 2_000, is_directory=False)
    assert rules.ignores("/secret", is_directory=False)
