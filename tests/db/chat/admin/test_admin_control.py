"""Rules about calls and undos in the admin, through its pages: what staff makes and ends, and what it only sees."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.models import AgentInstance
from chat.runtime.undo import redo, undo_turn
from tests.db.chat.conftest import say
from tests.db.chat.staff import staff
from tools_app.models import PermissionRule

RULES, REVERTS = "/admin/think_tools/permissionrule/", "/admin/think_chat/revert/"
GIVEN = {"level": "site", "agent": "", "action": "deny", "key": "bash", "pattern": "rm *", "position": "0"}


@pytest.fixture
def shown_talk(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    return make_instance(alice, "talk", title="A talk")


def test_rules_of_the_site_and_of_agents_are_made_changed_and_ended(alice: User, shown_talk: AgentInstance) -> None:
    _, client = staff(*(f"{verb}_permissionrule" for verb in ("view", "add", "change", "delete")))
    for wrong in ({"key": "nowhere:x"}, {"level": "class"}, {"agent": "assistant"}, {"level": "owner"}):
        page = client.post(f"{RULES}add/", {**GIVEN, **wrong})
        assert (page.status_code, PermissionRule.objects.count()) == (200, 0), wrong
        assert "errorlist" in page.content.decode()
    assert client.post(f"{RULES}add/", GIVEN).status_code == 302
    rule = PermissionRule.objects.get()
    assert (rule.permission.name, rule.via, rule.created_by) == (
        "deny bash: rm *",
        "admin",
        User.objects.get(username="staff"),
    )
    client.post(f"{RULES}{rule.pk}/change/", {**GIVEN, "level": "class", "agent": "assistant", "action": "ask"})
    rule.refresh_from_db()
    assert (rule.level, rule.agent, rule.action) == ("class", "assistant", "ask")
    own = PermissionRule.objects.create(
        level="conversation", owner=alice, scope=shown_talk.pk, action="allow", key="edit", pattern="/docs/*"
    )
    shown = client.get(RULES).content.decode()
    assert "edit: /docs/*" in shown
    assert "A talk" in shown
    assert "Runs" in shown
    client.post(f"{RULES}{own.pk}/change/", GIVEN)  # is the person's to change
    own.refresh_from_db()
    assert own.level == "conversation"
    client.post(f"{RULES}{own.pk}/delete/", {"post": "yes"})
    assert [each.pk for each in PermissionRule.objects.all()] == [rule.pk]


def test_undos_are_seen_and_not_done_here(alice: User, shown_talk: AgentInstance) -> None:
    turn = say(shown_talk, "q1", "a1")
    undone = undo_turn(turn, files=True, messages=True, actor_id=alice.pk).revert
    again = redo(undone, actor_id=alice.pk).revert
    _, client = staff("view_revert")
    shown = client.get(REVERTS).content.decode()
    assert "Undo, redone" in shown
    assert "Redo" in shown
    assert shown.count("A talk") == 2
    page = client.get(f"{REVERTS}{again.pk}/change/").content.decode()
    assert undone.pk in page
    assert turn.pk in page
    assert client.get(f"{REVERTS}add/").status_code == 403
    assert client.post(f"{REVERTS}{undone.pk}/delete/", {"post": "yes"}).status_code == 403
    assert staff_of_nothing().get(REVERTS).status_code == 403


def staff_of_nothing() -> Client:
    User.objects.filter(username="staff").delete()
    return staff()[1]
