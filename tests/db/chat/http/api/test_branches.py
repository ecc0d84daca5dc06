"""The tree of a conversation's messages: its forks as nodes, what follows without one as a single one, bounded."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.members.services import add_member
from chat.models import AgentInstance, Role
from sessions_app.messages import branches
from sessions_app.messages.services import append_messages
from tests.db.chat.conftest import ApiClient, say, text_message

pytestmark = pytest.mark.django_db(transaction=True)


def chain(prefix: str, count: int, first_role: str = "user") -> list[Any]:
    roles = ("user", "assistant") if first_role == "user" else ("assistant", "user")
    return [text_message(f"{prefix}{number}", roles[number % 2]) for number in range(count)]


@pytest.fixture
def forked(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    """Eight messages; the answer `m3` has another version, which goes on with two messages."""
    instance = make_instance(alice, "forked")
    say(instance, "m0", "m1", model_name="swift-1")
    assert instance.session_id is not None
    rest = [text_message(f"m{number}", "user" if number % 2 == 0 else "assistant") for number in range(2, 8)]
    append_messages(instance.session_id, rest)
    append_messages(instance.session_id, chain("b", 3, "assistant"), after="m2", shows=False)
    return instance


def read(api: ApiClient, instance: AgentInstance) -> Any:
    reply = api.get(f"/instances/{instance.pk}/branches")
    assert reply.status_code == 200, reply.content
    return reply.json()


def test_forks_stand_alone_and_what_follows_without_one_is_one_node(as_alice: ApiClient, forked: AgentInstance) -> None:
    found = read(as_alice, forked)
    assert [(n["id"], n["parent_id"], n["message_count"], n["is_shown"]) for n in found["items"]] == [
        ("m0", None, 1, True),
        ("m1", "m0", 1, True),
        ("m2", "m1", 1, True),
        ("m3", "m2", 1, True),
        ("m4", "m3", 3, True),
        ("m7", "m4", 1, True),
        ("b0", "m2", 1, False),
        ("b1", "b0", 1, False),
        ("b2", "b1", 1, False),
    ]
    texts = {node["id"]: node["text"] for node in found["items"]}
    assert (texts["m0"], texts["m4"]) == ("text of m0", ""), "several messages have no words of their own"
    models = {node["id"]: node["model"] for node in found["items"]}
    assert (models["m1"], models["m0"], models["b0"]) == ("swift-1", "", "")
    assert found["is_cut"] is False


def test_the_shown_path_is_marked_where_another_branch_is_chosen(as_alice: ApiClient, forked: AgentInstance) -> None:
    assert as_alice.send("PUT", f"/instances/{forked.pk}/leaf", {"message_id": "b0"}).status_code == 200
    shown = [node["id"] for node in read(as_alice, forked)["items"] if node["is_shown"]]
    assert shown == ["m0", "m1", "m2", "b0", "b1", "b2"]


def test_a_fork_has_what_it_shares_and_a_new_conversation_has_nothing(
    as_alice: ApiClient, alice: User, forked: AgentInstance, make_instance: Callable[..., AgentInstance]
) -> None:
    empty = make_instance(alice, "empty")
    assert read(as_alice, empty) == {"items": [], "is_cut": False}
    made = as_alice.send("POST", f"/instances/{forked.pk}/fork", {"message_id": "b0"}).json()
    reply = as_alice.get(f"/instances/{made['id']}/branches").json()
    assert [(node["id"], node["message_count"]) for node in reply["items"]] == [("m0", 1), ("m1", 2), ("b0", 1)]


def test_readers_see_it_strangers_do_not(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, forked: AgentInstance
) -> None:
    assert as_bob.get(f"/instances/{forked.pk}/branches").status_code == 404
    add_member(forked, "bob", Role.READER, by=alice.pk)
    assert read(as_bob, forked) == read(as_alice, forked)


def test_it_is_bounded_and_the_oldest_are_left_out(
    as_alice: ApiClient, forked: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(branches, "MAX_NODES", 5)
    found = read(as_alice, forked)
    assert found["is_cut"] is True
    assert len(found["items"]) <= 5
    assert {"m7", "b2"} <= {node["id"] for node in found["items"]}
    monkeypatch.setattr(branches, "MAX_ROWS", 2)
    assert [node["id"] for node in read(as_alice, forked)["items"]] == ["b1", "b2"]


def test_queries_do_not_grow_with_the_tree(
    as_alice: ApiClient, forked: AgentInstance, django_assert_max_num_queries: Any
) -> None:
    with django_assert_max_num_queries(8) as small:
        read(as_alice, forked)
    assert forked.session_id is not None
    for number in range(20):
        append_messages(forked.session_id, chain(f"c{number}-", 4, "assistant"), after="m2", shows=False)
    with django_assert_max_num_queries(len(small)):
        assert len(read(as_alice, forked)["items"]) > 40


def test_words_are_cut_and_messages_without_any_have_none(as_alice: ApiClient, forked: AgentInstance) -> None:
    assert forked.session_id is not None
    long = text_message("long", "user")
    long["parts"] = [{"type": "text", "text": "ä" * 300}]
    call = text_message("call", "assistant")
    call["parts"] = [{"type": "step-start"}]
    other = text_message("other", "assistant")
    append_messages(forked.session_id, [long, call], after="b2", shows=False)
    append_messages(forked.session_id, [other], after="b2", shows=False)
    texts = {node["id"]: node["text"] for node in read(as_alice, forked)["items"]}
    assert (texts["long"], texts["call"]) == ("ä" * 80, "")
