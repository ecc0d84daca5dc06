"""Rules about calls over the API: one's own are made, changed and ended; others' are neither seen nor changed."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agents import Assistant
from chat.conversations.fork import fork_instance
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from chat.think import Permission
from tests.db.chat.conftest import ApiClient
from tools_app.models import PermissionRule
from tools_app.permissions import rows
from tools_app.permissions.rows import prune_rules


def add(client: ApiClient, **body: Any) -> Any:
    return client.send("POST", "/rules", {"action": "allow", "key": "bash", "pattern": "git status *", **body})


def test_rules_are_made_listed_changed_and_ended(
    as_alice: ApiClient, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "permissions", (Permission.deny("bash", "rm *"),))
    PermissionRule.objects.create(level="site", action="ask", key="bash")
    everywhere = add(as_alice, action="ask", pattern="*").json()
    here = add(as_alice, instance_id=conversation.pk).json()
    assert (here["level"], here["instance_id"], here["name"]) == (
        "conversation",
        conversation.pk,
        "allow bash: git status *",
    )
    assert [rule["id"] for rule in as_alice.get("/rules").json()["items"]] == [everywhere["id"], here["id"]]
    counting = as_alice.get(f"/rules?instance_id={conversation.pk}").json()["items"]
    assert [(rule["level"], rule["name"], rule["may_change"]) for rule in counting] == [
        ("site", "ask bash", False),
        ("class", "deny bash: rm *", False),
        ("owner", "ask bash", True),
        ("conversation", "allow bash: git status *", True),
    ]
    changed = as_alice.send("PUT", f"/rules/{here['id']}", {"action": "deny", "key": "bash", "pattern": "git push *"})
    assert (changed.json()["name"], changed.json()["id"]) == ("deny bash: git push *", here["id"])
    assert as_alice.send("DELETE", f"/rules/{here['id']}").status_code == 204
    assert as_alice.send("DELETE", f"/rules/{here['id']}").status_code == 404
    assert as_alice.send("DELETE", f"/rules/{PermissionRule.objects.get(level='site').pk}").status_code == 404


@pytest.mark.parametrize(
    "body",
    [{"key": ""}, {"key": "a b"}, {"key": "nowhere:x"}, {"pattern": ""}, {"pattern": "a\nb"}, {"pattern": "x" * 1001}],
)
def test_what_is_no_rule_is_refused(as_alice: ApiClient, body: dict[str, str]) -> None:
    assert add(as_alice, **body).status_code == 422
    assert not PermissionRule.objects.exists()


def test_rules_are_for_ones_own_conversations(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance
) -> None:
    mine = add(as_alice, instance_id=conversation.pk).json()["id"]
    assert add(as_bob, instance_id=conversation.pk).status_code == 404
    assert as_bob.get(f"/rules?instance_id={conversation.pk}").status_code == 404
    assert as_bob.get("/rules").json()["items"] == []
    assert as_bob.send("DELETE", f"/rules/{mine}").status_code == 404
    assert PermissionRule.objects.filter(pk=mine).exists()


def test_rules_are_exported_and_imported_all_or_none(as_alice: ApiClient, conversation: AgentInstance) -> None:
    add(as_alice, action="ask", pattern="*")
    add(as_alice, key="edit", pattern="/docs/*", expires_at="2999-01-01T00:00:00Z")
    add(as_alice, instance_id=conversation.pk, action="deny", key="mcp:send")
    given = as_alice.get("/rules/export").json()
    assert [(each["action"], each["key"]) for each in given["rules"]] == [("ask", "bash"), ("allow", "edit")]
    assert len(as_alice.get(f"/rules/export?instance_id={conversation.pk}").json()["rules"]) == 1
    bad = {"rules": [*given["rules"], {"action": "allow", "key": "nowhere:x"}], "replaces": True}
    assert as_alice.send("POST", "/rules/import", bad).status_code == 422
    assert as_alice.get("/rules/export").json() == given  # nothing was changed, nothing removed
    there = {**given, "instance_id": conversation.pk, "replaces": True}
    made = as_alice.send("POST", "/rules/import", there).json()["items"]
    assert [each["level"] for each in made] == ["conversation"] * 2
    assert as_alice.get(f"/rules/export?instance_id={conversation.pk}").json() == given
    assert len(as_alice.send("POST", "/rules/import", given).json()["items"]) == 2
    assert len(as_alice.get("/rules/export").json()["rules"]) == 4  # added behind those that were there


def test_a_person_keeps_so_many(as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MAX_OF_OWNER", 2)
    assert [add(as_alice, key=key).status_code for key in ("a", "b", "c")] == [201, 201, 409]
    assert add(as_alice, key="b").status_code == 201  # it is there already
    assert PermissionRule.objects.count() == 2


def test_rules_go_with_their_conversation_their_owner_and_their_time(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    add(as_alice, instance_id=conversation.pk)
    add(as_alice, action="deny", instance_id=conversation.pk)
    fork = fork_instance(conversation, "a1")
    assert [rule.action for rule in PermissionRule.objects.filter(scope=fork.pk)] == ["deny"]
    delete_instance(conversation)
    assert not PermissionRule.objects.filter(scope=conversation.pk).exists()
    add(as_alice, expires_at="2001-01-01T00:00:00Z")
    assert prune_rules() == 1
    add(as_alice)
    alice.delete()
    assert not PermissionRule.objects.exists()


def test_plan_mode_is_a_rule_and_shown_in_the_list(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = f"/instances/{conversation.pk}/plan-mode"
    assert as_alice.get(path).json() == {"is_on": False}
    for _ in range(2):
        assert as_alice.send("PUT", path, {"is_on": True}).json() == {"is_on": True}
    assert as_alice.get(f"/instances/{conversation.pk}").json()["plans"] is True
    assert PermissionRule.objects.count() == 1
    assert as_alice.send("PUT", path, {"is_on": False}).json() == {"is_on": False}
    assert as_alice.get("/instances").json()["items"][0]["plans"] is False
