"""Patterns of paths agree with a plain reading of their rules, by trying everything."""

import dataclasses
import itertools
import re

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.budget import examples
from tools_app.core.files.globs import compile_glob

pieces = st.sampled_from(
    ["a", "b", "ab", "*", "**", "?", "/", "/**/", "[a]", "[!a]", "[a-b]", "[^b]", "{a,b}", "{,a/}"]
)
patterns = st.lists(pieces | st.sampled_from(["{a,{b,*}}", "{**/,}a", "\\*", "{a}", "."]), max_size=6).map("".join)
components = st.text(alphabet="ab.*", min_size=1, max_size=3)
paths = st.lists(components, min_size=1, max_size=4).map(lambda parts: "/" + "/".join(parts))


def expanded(pattern: str) -> list[str]:
    """Braces without braces within, one after another; the innermost first."""
    found = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if found is None:
        return [pattern]
    parts = found[1].split(",")
    return list(
        itertools.chain(*(expanded(pattern[: found.start()] + part + pattern[found.end() :]) for part in parts))
    )


def matches(pattern: list[str], path: list[str]) -> bool:
    """Component by component; two stars take any number of them, but not none at the end."""
    if not pattern:
        return not path
    if pattern[0].strip("*") == "" and len(pattern[0]) > 1:
        rest = pattern[1:]
        return bool(path) if not rest else any(matches(rest, path[skip:]) for skip in range(len(path) + 1))
    return bool(path) and component(pattern[0], path[0]) and matches(pattern[1:], path[1:])


def component(pattern: str, text: str) -> bool:
    """Character by character."""
    if not pattern:
        return not text
    if pattern[0] == "*":
        return component(pattern[1:], text) or (bool(text) and component(pattern, text[1:]))
    if not text:
        return False
    if pattern[0] == "[":
        members, _, rest = pattern[1:].partition("]")
        is_negated = members[0] in "!^"
        has = text[0] in {"a-b": "ab"}.get(members.lstrip("!^"), members.lstrip("!^"))
        return has != is_negated and component(rest, text[1:])
    if pattern[0] == "\\":
        return text[0] == pattern[1] and component(pattern[2:], text[1:])
    return pattern[0] in ("?", text[0]) and component(pattern[1:], text[1:])


@settings(max_examples=examples(1500))
@given(pattern=patterns, path=paths)
def test_a_pattern_matches_what_its_rules_say(pattern: str, path: str) -> None:
    expected = any(
        matches([part for part in each.split("/") if part not in {"", "."}], path[1:].split("/"))
        for each in expanded(pattern)
    )
    assert compile_glob(pattern).matches(path) is expected


@settings(max_examples=examples(1000))
@given(pattern=patterns, path=paths)
def test_what_matches_lies_below_the_prefix(pattern: str, path: str) -> None:
    compiled = compile_glob(pattern)
    assert compiled.prefix.startswith("/")
    assert compiled.prefix.endswith("/")
    if compiled.matches(path):
        assert path.startswith(compiled.prefix)


@settings(max_examples=examples(500))
@given(pattern=patterns, path=paths)
def test_what_decides_without_the_expression_decides_alike(pattern: str, path: str) -> None:
    compiled = compile_glob(pattern)
    slow = dataclasses.replace(compiled, takes_all=False, endings=())
    assert compiled.matches(path) == slow.matches(path)
