"""Laws of compaction over random trees, histories and orders of events."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.core.context.prompt import to_model_messages
from chat.core.model.language_model import AssistantMessage, ToolCallContent, ToolMessage
from sessions_app.compactions.services import add_compaction, compactions, undo_compaction
from sessions_app.core.compaction.compaction import (
    Bounds,
    CompactionResult,
    Overlay,
    create_compact_function,
    overlaid,
    plan_compaction,
    sanitize_tool_pairs,
    stored_range,
    summary_message,
)
from sessions_app.core.messages import shapes
from sessions_app.core.messages.parts import is_pending, is_settled, is_tool
from sessions_app.core.messages.tree import path_to
from sessions_app.errors import SessionError
from sessions_app.messages import selectors, services
from sessions_app.models import Message
from sessions_app.testing import text_message
from tests.budget import examples
from tests.properties.trees import pairs_of, small_trees, store_tree

# Histories: texts, calls and their results in the same or in later messages, and former summaries.
call_ids = st.sampled_from(["c1", "c2", "c3", "c4"])
calls = st.builds(
    lambda call_id, state: (
        {"type": "tool-read", "toolCallId": call_id, "state": state, "input": {}}
        | ({"output": "out"} if state == "output-available" else {})
    ),
    call_ids,
    st.sampled_from(["input-available", "output-available", "approval-requested", "output-denied"]),
)
results = st.builds(
    lambda call_id: {"type": "tool-read", "toolCallId": call_id, "state": "output-available", "output": "out"}, call_ids
)
texts = st.builds(lambda text: {"type": "text", "text": text}, st.text(max_size=30))
parts_lists = st.lists(st.one_of(texts, calls, results), min_size=1, max_size=4)


def _history(raw: Sequence[list[Any] | None]) -> list[shapes.Message]:
    history: list[shapes.Message] = []
    for number, parts in enumerate(raw):
        if parts is None:
            overlay = Overlay(id=f"o{number}", first_id=f"f{number}", last_id=f"l{number}", summary="former")
            history.append(summary_message(overlay))
        else:
            history.append({"id": f"m{number}", "role": "user" if number % 2 == 0 else "assistant", "parts": parts})
    return history


histories = st.lists(st.one_of(parts_lists, parts_lists, parts_lists, st.none()), max_size=14).map(_history)
bounds = st.builds(
    Bounds,
    protect_head=st.integers(0, 4),
    tail_tokens=st.integers(0, 60),
    min_tail_messages=st.integers(0, 4),
    tail_turns=st.integers(0, 3),
    min_new_messages=st.integers(0, 3),
)


async def _summary(_prompt: str) -> str:
    return "summary"


def _open(messages: Sequence[shapes.Message]) -> set[str]:
    return {part["toolCallId"] for message in messages for part in message["parts"] if is_pending(part)}


def _settled(messages: Sequence[shapes.Message]) -> set[str]:
    return {part["toolCallId"] for message in messages for part in message["parts"] if is_settled(part)}


@given(histories, bounds)
def test_a_plan_covers_a_stretch_and_parts_no_call_from_its_result(history: list[Any], limits: Bounds) -> None:
    before = repr(history)
    plan = plan_compaction(history, limits)
    assert repr(history) == before
    if plan is None:
        return
    found = stored_range(history, CompactionResult(first_id=plan.first_id, last_id=plan.last_id, summary="s"))
    assert found is not None
    kept_below = history[found.end :]
    assert len(kept_below) >= max(1, limits.min_tail_messages)
    covered = history[found.start : found.end]
    assert [m["id"] for m in covered if not m["id"].startswith("compaction_")] == [m["id"] for m in plan.middle]
    assert not _open(covered) - _settled(covered)  # nothing that still waits is covered
    turns = [message for message in kept_below if message["role"] == "user"]
    assert len(turns) >= limits.tail_turns
    summaries = [index for index, message in enumerate(history) if message["id"].startswith("compaction_")]
    assert not summaries or len(history) - 1 - summaries[-1] > limits.min_new_messages
    assert not found.first_id.startswith("compaction_")
    assert not found.last_id.startswith("compaction_")


@given(histories, bounds)
def test_compacting_again_and_again_ends(history: list[Any], limits: Bounds) -> None:
    function = create_compact_function(_summary, bounds=limits)
    for round_number in range(len(history) + 2):
        result = async_to_sync(function)(history)
        if result is None:
            return
        found = stored_range(history, result)
        assert found is not None
        overlay = Overlay(id=f"n{round_number}", first_id=found.first_id, last_id=found.last_id, summary=result.summary)
        history = [*history[: found.start], summary_message(overlay), *history[found.end :]]
    raise AssertionError("it goes on for ever")


@given(histories, bounds)
def test_no_request_has_an_orphan_call_or_result(history: list[Any], limits: Bounds) -> None:
    result = async_to_sync(create_compact_function(_summary, bounds=limits))(history)
    found = None if result is None else stored_range(history, result)
    if found is not None:
        overlay = Overlay(id="n", first_id=found.first_id, last_id=found.last_id, summary="summary")
        history = [*history[: found.start], summary_message(overlay), *history[found.end :]]
    for messages in (history, sanitize_tool_pairs(history)):
        waiting: list[str] = []
        for message in to_model_messages(messages, policy=None):
            if isinstance(message, ToolMessage):
                assert waiting.pop(0) == message.call_id
            else:
                assert waiting == []
                if isinstance(message, AssistantMessage):
                    waiting = [c.call_id for c in message.content if isinstance(c, ToolCallContent)]
        assert waiting == []


@given(histories)
def test_sanitized_calls_have_exactly_one_result_and_it_is_final(history: list[Any]) -> None:
    sane = sanitize_tool_pairs(history)
    assert sanitize_tool_pairs(sane) == sane
    for message in sane:
        for part in message["parts"]:
            assert not is_tool(part) or (is_settled(part) and "input" in part)


@given(
    st.lists(st.integers(0, 20), unique=True, max_size=12), st.lists(st.tuples(*[st.integers(0, 20)] * 2), max_size=5)
)
def test_overlays_cover_stretches_of_the_path_and_nothing_else(numbers: list[int], ends: list[tuple[int, int]]) -> None:
    path = [f"m{number}" for number in numbers]
    overlays = [Overlay(id=str(n), first_id=f"m{a}", last_id=f"m{b}") for n, (a, b) in enumerate(ends)]
    assert overlaid(path, []) == path
    spread: list[str] = []
    for item in overlaid(path, overlays):
        if isinstance(item, Overlay):
            stretch = path[path.index(item.first_id) : path.index(item.last_id) + 1]
            assert stretch
            spread += stretch
        else:
            spread.append(item)
    assert spread == path


@pytest.mark.long
@pytest.mark.django_db
@settings(max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(small_trees.filter(bool), st.data())
def test_the_database_reads_the_overlays_that_the_ids_describe(parents: list[int | None], data: st.DataObject) -> None:
    """No path mixes branches, the overlay of nothing is the identity, and messages are never changed."""
    pairs = pairs_of(parents)
    tree = dict(pairs)
    session_id = store_tree(pairs)
    rows = list(Message.objects.filter(session=session_id).order_by("pk").values())
    names = st.sampled_from(list(tree))
    for number in range(data.draw(st.integers(0, 4))):
        first, last = data.draw(names), data.draw(names)
        try:
            add_compaction(session_id, first_id=first, last_id=last, summary=f"summary {number}")
        except SessionError:
            assert first not in path_to(last, tree)
    made = compactions(session_id)
    undone = data.draw(st.integers(0, len(made)))
    if undone < len(made):
        undo_compaction(made[undone].id)
    live = [Overlay(id=view.id, first_id=view.first_id, last_id=view.last_id) for view in compactions(session_id)]
    for leaf in tree:
        path = path_to(leaf, tree)
        expected = overlaid(path, live)
        read = selectors.model_history(session_id, leaf=leaf)
        assert [m.id for m in read] == [
            f"compaction_{item.id}" if isinstance(item, Overlay) else item for item in expected
        ]
        for above, below in pairwise(read):
            assert below.depth > above.depth
    assert list(Message.objects.filter(session=session_id).order_by("pk").values()) == rows


@pytest.mark.django_db
@settings(max_examples=examples(20), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(small_trees.filter(bool), st.data())
def test_the_later_one_counts_wherever_it_applies(parents: list[int | None], data: st.DataObject) -> None:
    pairs = pairs_of(parents)
    tree = dict(pairs)
    session_id = store_tree(pairs)
    for number in range(3):
        path = path_to(data.draw(st.sampled_from(list(tree))), tree)
        last = data.draw(st.integers(0, len(path) - 1))
        first = data.draw(st.integers(0, last))
        view = add_compaction(session_id, first_id=path[first], last_id=path[last], summary=f"summary {number}")
        read = selectors.model_history(session_id, leaf=path[-1])
        assert f"compaction_{view.id}" in [message.id for message in read]
    services.clear_session(session_id)
    assert compactions(session_id, with_undone=True) == []


@pytest.mark.django_db
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(small_trees.filter(bool), st.data())
def test_a_fork_reads_what_its_origin_reads_there(parents: list[int | None], data: st.DataObject) -> None:
    pairs = pairs_of(parents)
    tree = dict(pairs)
    session_id = store_tree(pairs)
    for number in range(data.draw(st.integers(0, 4))):
        path = path_to(data.draw(st.sampled_from(list(tree))), tree)
        last = data.draw(st.integers(0, len(path) - 1))
        first = data.draw(st.integers(0, last))
        add_compaction(session_id, first_id=path[first], last_id=path[last], summary=f"summary {number}")
    point = data.draw(st.sampled_from(list(tree)))
    for _ in range(2):  # and a fork of the fork
        there = selectors.model_history(session_id, leaf=point)
        session_id = services.fork_session(session_id, point).pk
        assert [m.parts for m in selectors.model_history(session_id)] == [m.parts for m in there]


def test_text_message_is_what_histories_are_made_of() -> None:
    assert _history([[{"type": "text", "text": "t"}]])[0] == text_message("user", "t", "m0")
