"""The rules of the guard: what counts, what a decision covers, and how a class relaxes it."""

from collections.abc import Collection
from typing import Any

import pytest

from tools_app.core.guard.rules import (
    MAX_SOURCE_CHARS,
    MAX_SOURCES,
    ON,
    GuardDecision,
    InjectionGuard,
    Relaxed,
    SeenText,
    Standing,
    noted,
    texts_in,
)
from tools_app.core.origins import Origin
from tools_app.core.source import Source
from tools_app.core.tool_calls import details_of
from tools_app.errors import ToolDeclarationInvalid

REASON = "Reads our own wiki only."


@pytest.mark.parametrize(
    ("seen", "decision", "through", "more", "is_guarded"),
    [
        (0, GuardDecision.NONE, 0, 0, False),
        (0, GuardDecision.NONE, 0, 1, True),
        (1, GuardDecision.NONE, 0, 0, True),
        (3, GuardDecision.ASK, 3, 0, True),
        (3, GuardDecision.CONVERSATION, 1, 5, False),
        (3, GuardDecision.UNTIL_NEW, 3, 0, False),
        (3, GuardDecision.UNTIL_NEW, 2, 0, True),
        (3, GuardDecision.UNTIL_NEW, 3, 1, True),
    ],
)
def test_what_a_decision_covers(seen: int, decision: GuardDecision, through: int, more: int, is_guarded: bool) -> None:
    assert Standing(seen=seen, decision=decision, decided_through=through).is_guarded(more) is is_guarded


@pytest.mark.parametrize(
    ("rules", "counted"),
    [
        (ON, {Origin.WEB, Origin.MCP, Origin.FILE}),
        (Relaxed(reason=REASON, trusts=[Origin.WEB]), {Origin.MCP, Origin.FILE}),
        (Relaxed(reason=REASON, allows=["search*"]), {Origin.WEB, Origin.MCP, Origin.FILE}),
        (Relaxed(reason=REASON), set()),
    ],
)
def test_which_origins_count(rules: InjectionGuard, counted: set[Origin]) -> None:
    assert {origin for origin in Origin if rules.counts(origin)} == counted


@pytest.mark.parametrize(
    ("name", "source", "is_read_only", "is_open_world", "may_run"),
    [
        ("look", Source.AGENT, True, False, True),
        ("look", Source.AGENT, True, True, False),
        ("look", Source.AGENT, False, False, False),
        ("search_web", Source.AGENT, False, True, True),
        ("search_private", Source.AGENT, False, True, False),
        ("search_web", Source.WORKSPACE, False, False, True),
        ("search_web", Source.EXTENSIONS, False, False, False),
        ("search_web", Source.MCP, False, False, False),
        ("search_web", Source.CLIENT, False, False, False),
        ("search_web", Source.CALLER, False, False, False),
        ("note_add", Source.MCP, False, True, True),
        ("note_add", Source.EXTENSIONS, False, True, False),
        ("note_add", Source.AGENT, False, True, False),
        ("look", Source.EXTENSIONS, True, False, True),
    ],
)
def test_which_tools_run_without_a_decision(
    name: str, source: Source, is_read_only: bool, is_open_world: bool, may_run: bool
) -> None:
    rules = Relaxed(reason=REASON, allows=["search*", "!search_private", "mcp:note_*"])
    assert rules.lets_run(name, source, is_read_only=is_read_only, is_open_world=is_open_world) is may_run


@pytest.mark.parametrize(
    "options",
    [
        {"reason": ""},
        {"reason": " \n\t "},
        {"reason": "why not"},
        {"reason": REASON, "trusts": [Origin.PERSON]},
        {"reason": REASON, "trusts": ["the web"]},
        {"reason": REASON, "trusts": "web"},
        {"reason": REASON, "allows": [""]},
    ],
)
def test_a_weaker_guard_needs_a_reason_and_real_names(options: dict[str, Any]) -> None:
    with pytest.raises(ToolDeclarationInvalid):
        Relaxed(**options)


def test_a_source_is_one_line_that_can_be_shown() -> None:
    text = SeenText(Origin.WEB, "https://a.example/\n\u202egnp.exe\x00" + "x" * 500)
    assert "\n" not in text.source
    assert "\u202e" not in text.source
    assert "\x00" not in text.source
    assert len(text.source) == MAX_SOURCE_CHARS


def test_a_call_names_each_text_once_and_not_too_many() -> None:
    texts = [SeenText(Origin.FILE, f"/{number % 30}.txt") for number in range(60)]
    found = noted(texts)
    assert len(found) == MAX_SOURCES + 1
    assert found[-1] == SeenText(Origin.FILE)


def test_details_give_back_the_origins_that_they_were_made_with() -> None:
    texts = [SeenText(Origin.MCP, "library"), SeenText(Origin.WEB)]
    assert texts_in(details_of(origins=texts)) == texts
    assert "origin" not in details_of()


@pytest.mark.parametrize(
    "given", [None, "web", {"kind": "web"}, ["web"], [{"kind": "alien"}], [{"source": "x"}], [None]]
)
def test_what_is_no_origin_is_left_out(given: Any) -> None:
    assert texts_in({"origin": given}) == []


def test_options_may_be_any_collection() -> None:
    trusts: Collection[Origin] = frozenset({Origin.FILE})
    assert not Relaxed(reason=REASON, trusts=trusts).counts(Origin.FILE)
