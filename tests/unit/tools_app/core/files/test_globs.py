"""Patterns of paths, by example."""

import pytest

from tools_app.core.files.globs import compile_glob, containing
from tools_app.errors import FileFailed


@pytest.mark.parametrize(
    ("pattern", "matching", "other"),
    [
        ("*.md", ["/a.md", "/.md"], ["/x/a.md", "/a.mdx"]),
        ("/src/*.py", ["/src/a.py"], ["/src/x/a.py"]),
        ("**/*.py", ["/a.py", "/x/y/a.py", "/.x/a.py"], ["/a.pyc"]),
        ("src/**/test_*.py", ["/src/test_a.py", "/src/x/y/test_a.py"], ["/test_a.py", "/srcx/test_a.py"]),
        ("/src/**", ["/src/a", "/src/x/a"], ["/src", "/srcx"]),
        ("a?c", ["/abc", "/aüc"], ["/ac", "/a/c"]),
        ("[ab]", ["/a", "/b"], ["/c"]),
        ("[!ab]", ["/c", "/!"], ["/a", "/b"]),
        ("[^ab]", ["/c"], ["/a"]),
        ("[]a]", ["/]", "/a"], ["/b"]),
        ("[+-9]", ["/5", "/."], ["/x"]),
        ("x[+-9]y", ["/x5y"], ["/x/y"]),
        ("[[:digit:]]", ["/5"], ["/d", "/:"]),
        ("*.{js,ts{,x}}", ["/a.js", "/a.ts", "/a.tsx"], ["/a.jsx", "/a."]),
        ("{src,lib}/**/*.c", ["/src/a.c", "/lib/x/a.c"], ["/a.c"]),
        ("{a}", ["/{a}"], ["/a"]),
        ("{a,b", ["/{a,b"], ["/a"]),
        ("[ab", ["/[ab"], ["/a"]),
        (r"\*.\{a,b\}", ["/*.{a,b}"], ["/x.a"]),
        ("./src//x.c", ["/src/x.c"], ["/x.c"]),
        ("a.c", ["/a.c"], ["/abc"]),
        ("a\n*", ["/a\nb"], ["/a"]),
    ],
)
def test_patterns(pattern: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_glob(pattern)
    assert [path for path in matching if not compiled.matches(path)] == []
    assert [path for path in other if compiled.matches(path)] == []


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        ("read", ["/README.md", "/x/y/unread", "/.read"], ["/red", "/read/me"]),
        ("Ärger", ["/großer ÄRGER.txt", "/ärger"], ["/arger"]),
        ("straße", ["/Straße"], ["/strasse"]),
        ("src/ma", ["/src/Main.py", "/x/mysrc/main.py"], ["/src/x/main.py"]),
        ("*[a]{b,c}?\\", ["/x*[A]{B,C}?\\y"], ["/xab", "/*[a]b"]),
        ("]", ["/]"], ["/["]),
        ("..", ["/a..b"], ["/ab"]),
    ],
)
def test_names_are_found_by_a_part_of_them_in_either_case(text: str, matching: list[str], other: list[str]) -> None:
    compiled = compile_glob(containing(text))
    assert [path for path in matching if not compiled.matches(path)] == []
    assert [path for path in other if compiled.matches(path)] == []


@pytest.mark.parametrize(
    ("pattern", "prefix"),
    [
        ("*.md", "/"),
        ("/src/lib/*.py", "/src/lib/"),
        ("src/**/*.py", "/src/"),
        ("src/{aa,ab}/x/*", "/src/"),
        ("{src/a,src/b}/*.c", "/src/"),
        ("src/x.c", "/src/"),
        (r"s\*c/x", "/"),
    ],
)
def test_the_prefix_is_the_directory_before_the_first_wildcard(pattern: str, prefix: str) -> None:
    assert compile_glob(pattern).prefix == prefix


@pytest.mark.parametrize("pattern", ["a" * 5_000, "{a,b}" * 10, "{" * 4_000 + "a,b" + "}" * 1, "\ud800*"])
def test_patterns_that_stand_for_too_many_are_refused(pattern: str) -> None:
    if pattern.startswith("{{"):
        assert compile_glob(pattern).matches("/" + "{" * 3_999 + "a")  # one group: the others are never closed
        return
    with pytest.raises(FileFailed) as caught:
        compile_glob(pattern)
    assert caught.value.errno == "EINVAL"


@pytest.mark.parametrize("pattern", ["/" + "*a" * 200 + "b", "/" + "**/a/" * 100 + "b", "/" + "[a-z]*" * 300 + "0"])
def test_hostile_patterns_take_linear_time(pattern: str) -> None:
    """An engine that backtracks would try these for years: that this test ends is its assertion."""
    assert compile_glob(pattern).matches("/" + "a" * 3_000 + "/" + "a/" * 400 + "a") is False
