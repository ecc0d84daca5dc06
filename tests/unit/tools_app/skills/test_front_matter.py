"""The head of a `SKILL.md`: the format of other agents, from files of strangers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools_app.errors import SkillInvalid
from tools_app.skills.front_matter import MAX_HEAD_CHARS, read_skill

FULL = """---
name: release-notes
description: >-
  Turn changes into release notes.
  Use it for a changelog entry.
license: MIT
compatibility: Needs git
allowed-tools: read  bash(git:*) write
metadata:
  author: team
  version: 1.2
---

# Steps

1. Read `references/style.md`.
"""


def test_all_fields_are_read() -> None:
    head, instructions = read_skill(FULL)
    assert head.name == "release-notes"
    assert head.description == "Turn changes into release notes. Use it for a changelog entry."
    assert (head.license, head.compatibility) == ("MIT", "Needs git")
    assert head.allowed_tools == ("read", "bash(git:*)", "write")
    assert head.metadata == {"author": "team", "version": "1.2"}
    assert instructions == "# Steps\n\n1. Read `references/style.md`."


def test_line_ends_of_windows_and_a_byte_order_mark_change_nothing() -> None:
    assert read_skill("\ufeff" + FULL.replace("\n", "\r\n")) == read_skill(FULL)


def test_a_description_with_an_unquoted_colon_is_read_as_other_agents_do() -> None:
    head, _ = read_skill("---\nname: a\ndescription: Use when: the user asks: now\n---\nDo it.")
    assert head.description == "Use when: the user asks: now"


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("Just text", "does not begin with a head"),
        ("---\nname: a\ndescription: b\n", "does not end"),
        ("---\n" + "x: y\n" * MAX_HEAD_CHARS + "---\n", "does not end"),
        ("---\n- a\n---\n", "no fields"),
        ("---\nname: a\n---\n", "no description"),
        ("---\ndescription: a\n---\n", "Its name"),
        ("---\nname: Has Spaces\ndescription: a\n---\n", "Its name"),
        ("---\nname: ../../etc\ndescription: a\n---\n", "Its name"),
        ("---\nname: a--b\ndescription: a\n---\n", "Its name"),
        (f"---\nname: {'a' * 65}\ndescription: a\n---\n", "Its name"),
        ("---\nname: [a]\ndescription: a\n---\n", "Its name"),
        ("---\nname: !!python/object/apply:os.system ['true']\ndescription: a: b: c\n---\n", "Its name"),
        ("---\nname: a\na: &a [x, x]\nb: &b [*a, *a]\ndescription: d\n---\n", "aliases"),
        ("---\nname: a\nb: &b [*b]\ndescription: d\n---\n", "aliases"),
    ],
)
def test_a_head_that_is_none_is_refused_with_its_reason(source: str, reason: str) -> None:
    with pytest.raises(SkillInvalid, match=reason):
        read_skill(source)


def test_deep_nesting_is_refused() -> None:
    with pytest.raises(SkillInvalid):
        read_skill("---\nname: " + "[" * 8000 + "\n---\n")


@given(st.text(max_size=400))
def test_any_text_is_a_skill_or_refused(text: str) -> None:
    try:
        head, _ = read_skill(f"---\nname: a\ndescription: b\nmore: {text}\n---\n")
    except SkillInvalid:
        return
    assert head.name
    assert "\n" not in head.description
    assert "\0" not in head.description
