"""What actions did, as their owner reads it."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient
from tools_app.actions.ledger import BegunAction, Effect, begin_effect, settle_effect

Make = Callable[..., AgentInstance]


def have(instance: AgentInstance, key: str) -> BegunAction:
    effect = Effect(
        scope=instance.pk,
        owner_id=instance.owner_id,
        action="refund",
        key=key,
        is_explicit=True,
        input={"order": key},
        timeout_seconds=30,
        undo="cancel_refund",
        turn_id="turn_1",
        call_id="c1",
    )
    begun = begin_effect(effect)
    assert isinstance(begun, BegunAction)
    return begun


@pytest.mark.long
def test_effects_are_listed_newest_first_in_pages(
    as_alice: ApiClient, alice: User, conversation: AgentInstance, make_instance: Make
) -> None:
    settle_effect(have(conversation, "A-1"), "refunded", ())
    have(make_instance(alice, "other"), "A-2")
    page = as_alice.get("/actions?limit=1").json()
    assert [item["key"] for item in page["items"]] == ["A-2"]
    last = as_alice.get(f"/actions?limit=1&cursor={page['next_cursor']}").json()
    assert last["next_cursor"] is None
    [item] = last["items"]
    assert item == {
        "id": item["id"],
        "instance_id": conversation.pk,
        "action": "refund",
        "key": "A-1",
        "status": "settled",
        "input": {"order": "A-1"},
        "output": "refunded",
        "undo": "cancel_refund",
        "undo_status": "",
        "turn_id": "turn_1",
        "call_id": "c1",
        "created_at": item["created_at"],
        "settled_at": item["settled_at"],
    }
    assert as_alice.get("/actions?cursor=x").status_code == 422


def test_effects_of_others_are_not_listed(as_alice: ApiClient, make_instance: Make) -> None:
    bob = User.objects.create_user("bob")
    have(make_instance(bob, "his"), "B-1")
    assert as_alice.get("/actions").json() == {"items": [], "next_cursor": None}
