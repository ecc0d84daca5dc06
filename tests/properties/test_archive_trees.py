"""Laws of trees from archives: whatever the links are, each node's content is in a message, below the right one."""

import io
import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from sessions_app.transfer.archives.reading import read_conversation
from sessions_app.transfer.archives.shapes import Conversation
from sessions_app.transfer.archives.splitting import elements
from tests import archives
from tests.budget import examples

ROLES = ("user", "assistant", "system", "tool", "")
VALUES = st.recursive(
    st.none() | st.integers() | st.text() | st.booleans(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@st.composite
def trees(draw: st.DrawFn) -> list[tuple[str, int | None]]:
    """Roles and parents by number; a parent may be any other node, itself, one that is not there, or none."""
    count = draw(st.integers(1, 12))
    parent = st.none() | st.integers(0, count)
    return [(draw(st.sampled_from(ROLES)), draw(parent)) for _ in range(count)]


def chatgpt(tree: list[tuple[str, int | None]]) -> Any:
    nodes = [
        archives.gpt_node(f"n{at}", None if above is None else f"n{above}", role=role, content=f"text {at}.", name="t")
        for at, (role, above) in enumerate(tree)
    ]
    return archives.gpt_conversation("c", nodes, f"n{len(tree) - 1}")


@given(trees())
@settings(max_examples=examples(400), deadline=None)
def test_every_text_is_kept_and_parents_come_first(tree: list[tuple[str, int | None]]) -> None:
    found = read_conversation(chatgpt(tree), "c")
    is_shown = {role for role, _ in tree} & {"user", "assistant", "tool"}
    assert isinstance(found, Conversation) == bool(is_shown)
    if not isinstance(found, Conversation):
        return
    known: set[str] = set()
    for message in found.messages:
        assert message.parts
        assert message.parent_id is None or message.parent_id in known
        assert message.id not in known
        known.add(message.id)
    assert found.leaf_id in known
    texts = json.dumps([message.parts for message in found.messages])
    for at, (role, _) in enumerate(tree):
        if role in {"user", "assistant", "tool"}:
            assert texts.count(f"text {at}.") == 1


@given(trees())
@settings(max_examples=examples(400), deadline=None)
def test_the_path_to_a_shown_node_is_the_one_it_had(tree: list[tuple[str, int | None]]) -> None:
    """Where the links lead upwards only, the texts above a node are those that were above it, in order."""
    upwards = [(role, above if above is not None and above < at else None) for at, (role, above) in enumerate(tree)]
    found = read_conversation(chatgpt(upwards), "c")
    if not isinstance(found, Conversation):
        return
    by_id = {message.id: message for message in found.messages}
    for message in found.messages:
        above: list[str] = []
        at: str | None = message.id
        while at is not None:
            above.insert(0, json.dumps(by_id[at].parts))
            at = by_id[at].parent_id
        path = "".join(above)
        numbers = [number for number in range(len(tree)) if f"text {number}." in json.dumps(message.parts)]
        shown = [number for number in numbers if upwards[number][0] != "system"]
        expected = _lineage(upwards, shown[-1]) if shown else []
        places = [path.index(f"text {number}.") for number in expected]
        assert places == sorted(places)


def _lineage(tree: list[tuple[str, int | None]], number: int) -> list[int]:
    """The shown nodes from the root down to one."""
    found: list[int] = []
    at: int | None = number
    while at is not None:
        if tree[at][0] in {"user", "assistant", "tool"}:
            found.insert(0, at)
        at = tree[at][1]
    return found


@given(st.lists(VALUES, max_size=6), st.booleans())
@settings(max_examples=examples(300), deadline=None)
def test_the_elements_are_the_objects_and_lists_of_the_list(values: list[Any], is_ascii: bool) -> None:
    data = json.dumps(values, ensure_ascii=is_ascii).encode(errors="surrogatepass")
    found = [json.loads(each) for each in elements(io.BytesIO(data)) if isinstance(each, bytes)]
    assert found == [value for value in values if isinstance(value, dict | list)]


@given(VALUES, VALUES, VALUES)
@settings(max_examples=examples(300), deadline=None)
def test_no_value_breaks_a_reader(first: Any, second: Any, third: Any) -> None:
    """Any JSON where a product has something else is read, or named as unreadable."""
    shapes = (
        {"mapping": {"a": {"message": {"content": first, "author": second, "metadata": third}}, "b": first}},
        {"mapping": {"a": {"message": {"content": {"parts": first}, "author": {"role": "user"}, "recipient": second}}}},
        {"mapping": {"a": {"parent": first, "children": second, "message": {"author": {"role": "tool"}}}}},
        {"chat_messages": [{"content": first, "sender": second, "text": third}, first]},
        {"chat_messages": [{"content": [{"type": "tool_result", "content": first, "tool_use_id": second}]}]},
        {"chat": {"history": {"messages": {"a": {"content": first, "output": second, "childrenIds": third}}}}},
        {"chat": {"history": {"messages": {"a": {"role": "user", "files": [first], "error": second}}}}},
        {"conversationId": first, "messages": [{"content": [second, {"type": "tool_call", "tool_call": third}]}]},
        {"conversationId": "c", "messages": [{"messageId": first, "files": second, "children": third}]},
    )
    for value in shapes:
        read_conversation({**value, "title": third, "create_time": first, "current_node": second}, "c")
