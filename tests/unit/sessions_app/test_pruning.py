"""Which outputs are pruned: the budget, the minimum, what is protected, where the walk ends."""

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from sessions_app.core.compaction.compaction import Overlay, summary_message
from sessions_app.core.compaction.pruning import CLEARED_TEXT, Prune, as_sent, find_prunable
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import Message, Part
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

RULES = Prune()


def user(message_id: str) -> Message:
    return {"id": message_id, "role": "user", "parts": [{"type": "text", "text": "do"}]}


def output(call_id: str, tokens: int, *, tool: str = "grep", **more: JSONValue) -> Part:
    state = more.pop("state", "output-available")
    made = {
        "type": f"tool-{tool}",
        "toolCallId": call_id,
        "state": state,
        "input": {},
        "output": "x" * (tokens * 4),
        **more,
    }
    return cast("Part", made)


def assistant(message_id: str, *parts: Part) -> Message:
    return {"id": message_id, "role": "assistant", "parts": list(parts)}


def old(*parts: Part) -> list[Message]:
    """A path in which these lie before the two last exchanges."""
    return [user("u1"), assistant("a1", *parts), user("u2"), assistant("a2"), user("u3")]


def test_the_newest_outputs_stay_and_the_older_are_let_go() -> None:
    path = [
        *[user("u1"), assistant("a1", output("c1", 30_000))],
        *[user("u2"), assistant("a2", output("c2", 30_000), output("c3", 30_000))],
        *[user("u3"), assistant("a3"), user("u4")],
    ]
    before = dump(path)
    assert find_prunable(path, RULES) == {"a2": ["c2"], "a1": ["c1"]}
    assert dump(path) == before


@pytest.mark.parametrize(("second", "expected"), [(19_999, {}), (20_000, {}), (20_001, {"a1": ["c1"]})])
def test_too_little_is_not_worth_it(second: int, expected: JSONObject) -> None:
    assert find_prunable(old(output("c1", second), output("c2", 40_000)), RULES) == expected


def test_the_budget_itself_stays() -> None:
    rules = Prune(minimum_tokens=0)
    assert find_prunable(old(output("c1", 20_000), output("c2", 20_000)), rules) == {}
    assert find_prunable(old(output("c1", 20_001), output("c2", 20_000)), rules) == {"a1": ["c1"]}


def test_the_last_two_exchanges_are_untouched() -> None:
    outputs = [output(f"c{n}", 30_000) for n in range(3)]
    path = [user("u1"), assistant("a1"), user("u2"), assistant("a2", *outputs), user("u3"), assistant("a3", *outputs)]
    assert find_prunable(path, RULES) == {}
    assert find_prunable([*path, user("u4")], RULES) == {"a2": ["c1", "c0"]}


def test_the_walk_ends_at_a_summary() -> None:
    path = old(*[output(f"c{n}", 30_000) for n in range(3)])
    summary = summary_message(Overlay(id="x", first_id="u0", last_id="a0", summary="so far"))
    assert find_prunable([*path[:2], summary, *path[2:]], RULES) == {}


def test_the_walk_ends_at_what_is_pruned_already() -> None:
    outputs = [output(f"c{n}", 30_000) for n in range(4)]
    path = [user("u0"), assistant("a0", *outputs), *old({**outputs[0], "pruned": True}, outputs[1], outputs[2])]
    assert find_prunable(path, RULES) == {"a1": ["c1"]}


def test_outputs_of_protected_tools_stay() -> None:
    path = old(output("c1", 90_000, tool="skill"), output("c2", 90_000, tool="load_context"), output("c3", 30_000))
    assert find_prunable(path, RULES) == {}
    own = Prune(protected_tools=frozenset({"grep"}))
    assert find_prunable(path, own) == {"a1": ["c2", "c1"]}


def test_failed_and_waiting_calls_do_not_count() -> None:
    states = ("output-error", "input-available", "output-denied")
    path = old(*[output(f"c{n}", 90_000, state=state) for n, state in enumerate(states)])
    assert find_prunable(path, RULES) == {}


def stored(message: Message, *pruned: str, session_id: str = "s", after_seconds: int = 0) -> StoredMessage:
    return StoredMessage(
        id=message["id"],
        role=message["role"],
        parts=tuple(message["parts"]),
        metadata=None,
        parent_id=None,
        depth=0,
        turn_id="",
        placed=True,
        queued_position=None,
        created_at=datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=after_seconds),
        change_seq=0,
        session_id=session_id,
        pruned_calls=pruned,
    )


def outputs_of(messages: list[Message]) -> list[JSONValue]:
    return [part["output"] for message in messages for part in message["parts"] if "output" in part]


def test_models_read_a_line_in_its_place() -> None:
    path = old(output("c1", 1), output("c2", 1))
    read = as_sent([stored(message, "c1") for message in path], "s")
    assert outputs_of(read) == [CLEARED_TEXT, "xxxx"]
    assert outputs_of(path) == ["xxxx", "xxxx"]
    assert [message["id"] for message in read] == ["u1", "a1", "u2", "a2", "u3"]


def test_what_was_pruned_on_a_longer_path_is_whole_where_it_is_new() -> None:
    path = old(output("c1", 1))
    assert outputs_of(as_sent([stored(message, "c1") for message in path[:3]], "s")) == ["xxxx"]


def test_what_the_origin_pruned_is_whole_in_a_fork() -> None:
    path = old(output("c1", 1))
    assert outputs_of(as_sent([stored(message, "c1", session_id="origin") for message in path], "s")) == ["xxxx"]


def test_a_question_after_a_long_pause_has_it() -> None:
    path = [user("u1"), assistant("a1"), user("u2"), assistant("a2"), user("u3"), assistant("a3")]
    moments = (0, 1_000, 1_299, 9_000, 9_300, 20_000)
    came = [stored(message, after_seconds=at) for message, at in zip(path, moments, strict=True)]
    pauses = [part.get("pauseSeconds") for message in as_sent(came, "s") for part in message["parts"]]
    assert pauses == [None, None, 300]
    assert all("pauseSeconds" not in part for message in path for part in message["parts"])
    assert as_sent([], "s") == []


def test_what_is_let_go_keeps_its_length() -> None:
    path = old(output("c1", 25))
    (_, answer, *_) = as_sent([stored(message, "c1") for message in path], "s")
    assert (answer["parts"][0]["output"], answer["parts"][0]["prunedChars"]) == (CLEARED_TEXT, 100)
