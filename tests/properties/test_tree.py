"""Laws of the conversation tree, of what is cut from a message, and of its repair, for any input."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sessions_app.core.messages import shapes
from sessions_app.core.messages.messages import parse_message, to_content, to_ui
from sessions_app.core.messages.oversized import fit_row, sanitise
from sessions_app.core.messages.parts import Approval, Result, apply_approval, apply_result, pending_calls
from sessions_app.core.messages.repair import repair_messages
from sessions_app.core.messages.shortening import json_length, shorten, text_head, text_length
from sessions_app.core.messages.tool_states import MOVES, SETTLED, ToolState
from sessions_app.core.messages.tree import branches, newest_leaf, path_to
from sessions_app.errors import MessageInvalid
from sessions_app.messages import selectors, services
from sessions_app.messages.services import Leaf
from sessions_app.models import Message
from sessions_app.testing import text_message
from tests.budget import examples
from tests.properties.trees import pairs_of, parents_lists, small_trees, store_tree
from thinkproject.kernel.jsonvalue import byte_size, dump, load


@given(parents_lists)
def test_no_path_mixes_branches(parents: list[int | None]) -> None:
    pairs = pairs_of(parents)
    tree = dict(pairs)
    for leaf in tree:
        path = path_to(leaf, tree)
        assert path[-1] == leaf
        assert tree[path[0]] is None
        assert [tree[child] for child in path[1:]] == path[:-1]
        assert len(set(path)) == len(path)


@given(parents_lists)
def test_every_message_is_a_branch_of_exactly_its_parent(parents: list[int | None]) -> None:
    pairs = pairs_of(parents)
    found = [child for parent in [None, *dict(pairs)] for child in branches(pairs, parent)]
    assert sorted(found) == sorted(dict(pairs))


@given(parents_lists)
def test_the_newest_leaf_is_a_leaf_and_none_is_newer(parents: list[int | None]) -> None:
    pairs = pairs_of(parents)
    leaf = newest_leaf(pairs)
    inner = {parent for _, parent in pairs}
    leaves = [name for name, _ in pairs if name not in inner]
    assert leaf == (leaves[-1] if leaves else None)


# The database walks the same tree.


@pytest.mark.django_db
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(small_trees, st.data())
def test_the_database_reads_the_tree_that_the_pairs_describe(parents: list[int | None], data: st.DataObject) -> None:
    pairs = pairs_of(parents)
    tree = dict(pairs)
    session_id = store_tree(pairs)
    stored = selectors.find_messages(session_id, tree)
    assert {name: message.parent_id for name, message in stored.items()} == tree
    for name, message in stored.items():
        expected = path_to(name, tree)
        page = selectors.path_page(session_id, leaf=name, limit=500)
        assert [m.id for m in page.messages] == expected
        assert message.depth == len(expected) - 1
        assert selectors.newest_leaf(session_id, name) == newest_leaf(pairs, below=name)
        assert [m.id for m in selectors.branches(session_id, name)] == branches(pairs, name)
    assert selectors.siblings(session_id, list(tree)) == {name: branches(pairs, tree[name]) for name in tree}
    if pairs:
        name, leaf = data.draw(st.sampled_from(pairs))[0], data.draw(st.sampled_from(pairs))[0]
        assert selectors.is_on_path(session_id, name, leaf=leaf) == (name in path_to(leaf, tree))


@pytest.mark.django_db
@settings(max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(small_trees.filter(bool), st.data())
def test_deleting_any_message_keeps_all_others_in_order(parents: list[int | None], data: st.DataObject) -> None:
    pairs = pairs_of(parents)
    session_id = store_tree(pairs)
    gone = data.draw(st.sampled_from(pairs))[0]
    services.delete_message(session_id, gone)
    up = dict(pairs)[gone]
    left = {name: up if parent == gone else parent for name, parent in pairs if name != gone}
    rows = Message.objects.filter(session=session_id).select_related("parent")
    assert {row.message_id: row.parent.message_id if row.parent else None for row in rows} == left
    for row in rows:
        assert row.depth == len(path_to(row.message_id, left)) - 1


@pytest.mark.django_db
@settings(max_examples=examples(30), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(["queue", "place", "answer", "root"]), max_size=25))
def test_placing_keeps_the_order_of_acceptance(steps: list[str]) -> None:
    session_id = services.create_session().pk
    waiting: list[str] = []
    placed: list[str] = []
    for number, step in enumerate(steps):
        if step == "queue":
            waiting += services.queue_messages(session_id, [text_message("user", "q", f"q{number}")])
        elif step == "place" and waiting:
            placed.append(waiting.pop(0))
            assert services.place_messages(session_id, [placed[-1]], after=Leaf.ACTIVE) == placed[-1]
        elif step == "answer":
            services.put_assistant(session_id, text_message("assistant", "a", f"a{number}"), after=Leaf.ACTIVE)
        elif step == "root":
            services.append_messages(session_id, [text_message("user", "r", f"r{number}")], after=None)
            placed.clear()
    shown = [message.id for message in selectors.window(session_id)]
    assert [name for name in shown if name.startswith("q")] == [*placed, *waiting]
    for row in Message.objects.filter(session=session_id).select_related("parent"):
        assert row.depth == (row.parent.depth + 1 if row.parent else 0)


# What is cut from a message.

texts = st.text(alphabet="a é🙂\0\ud800\n", max_size=12) | st.sampled_from(
    ["x" * 3000, "é" * 1500, "🙂" * 900, "\ud83d" * 700]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcde"), inner, max_size=5),
    max_leaves=8,
)
providers = st.none() | st.dictionaries(
    st.sampled_from(["openai", "anthropic"]),
    st.dictionaries(st.sampled_from(["itemId", "reasoningEncryptedContent", "kept"]), values, max_size=3),
    max_size=2,
)
states = st.sampled_from([state.value for state in ToolState])


def with_metadata(part: dict[str, Any], metadata: Any) -> dict[str, Any]:
    return part if metadata is None else {**part, "providerMetadata": metadata}


text_parts = st.builds(
    lambda kind, text, metadata: with_metadata({"type": kind, "text": text}, metadata),
    st.sampled_from(["text", "reasoning"]),
    texts,
    providers,
)
tool_parts = st.builds(
    lambda call, state, given, output: (
        {"type": "tool-t", "toolCallId": call, "state": state, "input": given}
        | ({"output": output} if state == "output-available" else {})
    ),
    st.sampled_from(["c1", "c2", "c3"]),
    states,
    values,
    values,
)
other_parts = st.builds(lambda data: {"type": "data-x", "data": data}, values) | st.just({"type": "step-start"})
messages = st.fixed_dictionaries(
    {
        "id": st.just("m1"),
        "role": st.sampled_from(["user", "assistant", "system"]),
        "parts": st.lists(text_parts | tool_parts | other_parts, max_size=5),
    },
    optional={"metadata": st.dictionaries(st.sampled_from("abc"), values, max_size=3)},
)


@given(messages)
def test_sanitise_is_idempotent(message: shapes.Message) -> None:
    before = dump(message)
    clean = sanitise(message)
    assert sanitise(clean) is clean
    assert dump(message) == before
    assert '"itemId":' not in dump([part.get("providerMetadata", {}).get("openai") for part in clean["parts"]])


@given(messages, st.integers(min_value=6_000, max_value=20_000))
@settings(max_examples=examples(200), deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_the_guards_result_always_fits_and_is_idempotent(message: shapes.Message, max_bytes: int) -> None:
    before = dump(message)
    stored = fit_row(message, max_bytes=max_bytes)
    assert byte_size(stored) <= max_bytes
    assert fit_row(stored, max_bytes=max_bytes) is stored
    assert dump(message) == before
    assert (stored["id"], stored["role"]) == (message["id"], message["role"])
    assert (stored is message) == (byte_size(message) <= max_bytes)


@given(values, st.integers(min_value=60, max_value=2_000))
def test_a_shortened_value_keeps_its_kind(value: Any, max_chars: int) -> None:
    before = dump(value)
    short = shorten(value, max_chars)
    assert type(short) is type(value)
    assert dump(value) == before
    if isinstance(value, dict | list | str):
        assert json_length(short) <= max_chars
        assert shorten(short, max_chars) is short


@given(st.text(alphabet=st.characters(codec=None)), st.integers(min_value=0, max_value=50))
def test_a_head_is_the_longest_that_fits(text: str, length: int) -> None:
    head = text_head(text, length)
    assert text.startswith(head)
    assert text_length(head) <= length
    assert head == text or text_length(text[: len(head) + 1]) > length


@given(messages)
def test_a_message_survives_storage(message: shapes.Message) -> None:
    content = load(dump(to_content(message)))
    assert to_ui(message["id"], message["role"], content) == message


@given(values)
def test_checking_a_message_raises_nothing_else(value: Any) -> None:
    for candidate in (
        value,
        {"id": "m", "role": "user", "parts": value},
        {"id": "m", "role": "user", "parts": [value]},
    ):
        try:
            parse_message(candidate)
        except MessageInvalid:
            continue


# States of a tool call.

moves = st.one_of(
    st.builds(
        lambda call, result: lambda m: apply_result(m, call, result),
        st.sampled_from(["c1", "c2"]),
        st.builds(Result, output=values, is_error=st.booleans()),
    ),
    st.builds(
        lambda call, approved: lambda m: apply_approval(m, call, Approval(approved=approved)),
        st.sampled_from(["c1", "c2"]),
        st.booleans(),
    ),
)


@given(messages, st.lists(moves, max_size=6))
def test_any_sequence_of_answers_stays_within_the_table(
    message: shapes.Message, steps: list[Callable[[shapes.Message], shapes.Message]]
) -> None:
    for step in steps:
        after = step(message)
        for old, new in zip(message["parts"], after["parts"], strict=True):
            if new is not old:
                assert ToolState(new["state"]) in MOVES[ToolState(old["state"])]
                assert ToolState(old["state"]) not in SETTLED
        message = after


@given(st.lists(messages, max_size=3))
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
def test_a_repaired_transcript_has_a_result_for_every_call_but_the_last_messages(history: list[shapes.Message]) -> None:
    named: list[shapes.Message] = [{**message, "id": f"m{index}"} for index, message in enumerate(history)]
    changed = {message["id"]: message for message in repair_messages(named)}
    repaired = [changed.get(message["id"], message) for message in named]
    assert repair_messages(repaired) == []
    for message in repaired[:-1]:
        if message["role"] == "assistant":
            assert pending_calls(message) == []
