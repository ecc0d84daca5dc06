"""The guard of a conversation in the API and in the admin: seen and decided by its owner, kept as it happened."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from chat.conversations.fork import fork_instance
from chat.conversations.list import instance_summary
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from sessions_app.transfer.export import export_lines
from tests.db.chat.conftest import ApiClient, say
from tools_app.core.guard.rules import SeenText, Spot
from tools_app.core.origins import Origin
from tools_app.guard.standings import GuardScope, see, texts_of
from tools_app.models import Guard, GuardEvent

CLEAN = {
    "is_guarded": False,
    "decision": "",
    "decided_by": "",
    "decided_at": None,
    "count": 0,
    "texts": [],
    "relaxed": None,
}


def seen(instance: AgentInstance, source: str = "https://a.example/", *, at: Spot | None = None) -> int:
    place = GuardScope(session_id=str(instance.session_id), scope=instance.pk, owner_id=instance.owner_id)
    return see(place, [SeenText(Origin.WEB, source)], at=at or Spot(message_id="a1", call_id="c1"))


def address(instance: AgentInstance) -> str:
    return f"/instances/{instance.pk}/guard"


def decide(client: ApiClient, instance: AgentInstance, decision: str, count: int) -> Any:
    return client.send("POST", address(instance), {"decision": decision, "seen": count})


def test_a_clean_conversation_has_nothing_to_decide(as_alice: ApiClient, conversation: AgentInstance) -> None:
    assert as_alice.get(address(conversation)).json() == CLEAN
    assert decide(as_alice, conversation, "conversation", 7).json() == CLEAN
    assert not Guard.objects.exists()


def test_a_text_is_shown_with_its_place(as_alice: ApiClient, conversation: AgentInstance) -> None:
    seen(conversation)
    found = as_alice.get(address(conversation)).json()
    assert (found["is_guarded"], found["count"], found["relaxed"]) == (True, 1, None)
    [text] = found["texts"]
    assert text == {
        "number": 1,
        "origin": "web",
        "source": "https://a.example/",
        "message_id": "a1",
        "call_id": "c1",
        "seen_at": text["seen_at"],
    }


def test_decisions_follow_each_other_and_are_kept(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    seen(conversation)
    assert decide(as_alice, conversation, "until_new", 1).json()["is_guarded"] is False
    seen(conversation, "https://b.example/")
    assert as_alice.get(address(conversation)).json()["is_guarded"] is True
    allowed = decide(as_alice, conversation, "conversation", 2).json()
    assert (allowed["is_guarded"], allowed["decided_by"]) == (False, "alice")
    assert decide(as_alice, conversation, "ask", 2).json()["is_guarded"] is True
    events = GuardEvent.objects.filter(guard_id=conversation.session_id).values_list("kind", "number", "actor_id")
    assert list(events) == [
        ("seen", 1, None),
        ("until_new", 1, alice.pk),
        ("seen", 2, None),
        ("conversation", 2, alice.pk),
        ("ask", 2, alice.pk),
    ]


@pytest.mark.parametrize(
    "body", [{}, {"decision": "off", "seen": 1}, {"decision": "ask"}, {"decision": "ask", "seen": -1}]
)
def test_a_decision_that_is_none_is_refused(as_alice: ApiClient, conversation: AgentInstance, body: Any) -> None:
    seen(conversation)
    assert as_alice.send("POST", address(conversation), body).status_code == 422
    assert as_alice.get(address(conversation)).json()["decision"] == ""


def test_the_same_text_at_the_same_place_is_one_text(conversation: AgentInstance) -> None:
    assert [seen(conversation), seen(conversation)] == [1, 0]
    assert seen(conversation, at=Spot(message_id="a2", call_id="c1")) == 1


def test_the_line_of_a_conversation_differs_after_each_change(as_alice: ApiClient, conversation: AgentInstance) -> None:
    lines = [instance_summary(conversation.pk).guard]
    seen(conversation)
    lines.append(instance_summary(conversation.pk).guard)
    decide(as_alice, conversation, "conversation", 1)
    lines.append(instance_summary(conversation.pk).guard)
    decide(as_alice, conversation, "ask", 1)
    lines.append(instance_summary(conversation.pk).guard)
    assert lines[0] == ""
    assert len(set(lines)) == 4


def test_a_fork_has_the_texts_and_no_decision(as_alice: ApiClient, conversation: AgentInstance) -> None:
    say(conversation, "q", "a")
    seen(conversation)
    decide(as_alice, conversation, "conversation", 1)
    fork = fork_instance(conversation, "a")
    found = as_alice.get(address(fork)).json()
    assert (found["is_guarded"], found["decision"], found["count"]) == (True, "", 1)
    assert texts_of(str(fork.session_id)) == texts_of(str(conversation.session_id))


def test_the_guard_goes_with_its_conversation(conversation: AgentInstance) -> None:
    seen(conversation)
    delete_instance(conversation)
    assert not Guard.objects.exists()
    assert not GuardEvent.objects.exists()


def test_another_user_learns_nothing(as_bob: ApiClient, conversation: AgentInstance) -> None:
    seen(conversation)
    assert as_bob.get(address(conversation)).status_code == 404
    assert decide(as_bob, conversation, "conversation", 1).status_code == 404
    assert Guard.objects.get().decision == ""


def test_an_imported_conversation_is_a_text(as_alice: ApiClient, conversation: AgentInstance) -> None:
    file = SimpleUploadedFile("old.jsonl", "".join(export_lines(str(conversation.session_id))).encode())
    reply = as_alice.http.post("/api/v1/imports", {"agent": "assistant", "file": file})
    assert reply.status_code == 201, reply.content
    found = as_alice.get(f"/instances/{reply.json()['instance_id']}/guard").json()
    assert (found["is_guarded"], found["texts"][0]["source"]) == (True, "old.jsonl")


def test_staff_see_which_texts_set_a_guard(conversation: AgentInstance) -> None:
    seen(conversation, "https://evil.example/<script>")
    client = Client()
    client.force_login(User.objects.create_superuser("root", password="x"))
    listed = client.get("/admin/think_tools/guard/").content.decode()
    assert "Asks" in listed
    page = client.get(f"/admin/think_tools/guard/{conversation.session_id}/change/").content.decode()
    assert "https://evil.example/&lt;script&gt;" in page


def test_events_are_never_changed_or_deleted(conversation: AgentInstance) -> None:
    seen(conversation)
    event = GuardEvent.objects.get()
    with pytest.raises(TypeError, match="never changed"):
        event.save()
    with pytest.raises(TypeError, match="never deleted"):
        event.delete()
