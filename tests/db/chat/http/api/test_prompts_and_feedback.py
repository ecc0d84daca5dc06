"""Saved prompts and feedback: one's own, bounded, and gone with what they belong to."""

import io
import json
import zipfile
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from chat.conversations.exporting import ExportFormat, export_all
from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.members.services import add_member
from chat.models import AgentInstance, MessageFeedback, Role, SavedPrompt
from chat.operations.removal import delete_instance
from chat.people import prompts
from chat.people.feedback import prune_feedback
from sessions_app.messages.services import delete_messages
from tests.db.chat.conftest import ApiClient, say

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_prompt_is_made_changed_listed_and_removed(as_alice: ApiClient, as_bob: ApiClient) -> None:
    made = as_alice.send("POST", "/prompts", {"name": " Letter ", "text": "Write to {name}."})
    assert (made.status_code, made.json()["name"]) == (201, "Letter")
    at = f"/prompts/{made.json()['id']}"
    assert as_alice.send("POST", "/prompts", {"name": "LETTER", "text": "x"}).status_code == 422
    assert as_bob.send("POST", "/prompts", {"name": "Letter", "text": "His."}).status_code == 201
    assert as_alice.send("POST", "/prompts", {"name": "Answer", "text": "A"}).status_code == 201
    assert as_alice.send("PATCH", at, {"text": "Write."}).json()["text"] == "Write."
    assert as_alice.send("PATCH", at, {"name": "answer"}).status_code == 422
    assert [each["name"] for each in as_alice.get("/prompts").json()] == ["Answer", "Letter"]
    for method in ("PATCH", "DELETE"):
        assert as_bob.send(method, at, {"text": "mine"}).status_code == 404
    assert as_alice.send("DELETE", at).status_code == 204
    assert as_alice.send("DELETE", at).status_code == 404


@pytest.mark.parametrize(
    "wrong", [{"name": ""}, {"name": "x" * 61}, {"text": " "}, {"text": "x" * 8_001}, {"name": "a\nb"}]
)
def test_wrong_prompts_are_refused(as_alice: ApiClient, wrong: dict[str, str]) -> None:
    assert as_alice.send("POST", "/prompts", {"name": "A", "text": "B", **wrong}).status_code == 422
    assert not SavedPrompt.objects.exists()


def test_prompts_are_bounded_and_go_with_their_owner(
    as_alice: ApiClient, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompts, "MAX_PROMPTS", 1)
    assert as_alice.send("POST", "/prompts", {"name": "A", "text": "B"}).status_code == 201
    assert as_alice.send("POST", "/prompts", {"name": "C", "text": "D"}).status_code == 422
    alice.delete()
    assert not SavedPrompt.objects.exists()


def feedback_on(conversation: AgentInstance, message_id: str = "") -> str:
    return f"/instances/{conversation.pk}" + (f"/messages/{message_id}" if message_id else "") + "/feedback"


def test_feedback_is_one_word_of_each_person(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    say(conversation, "q", "a")
    at = feedback_on(conversation, "a")
    assert as_bob.send("PUT", at, {"is_good": True}).status_code == 404, "a stranger"
    add_member(conversation, "bob", Role.READER, by=alice.pk)
    assert as_bob.send("PUT", at, {"is_good": True}).status_code == 200
    assert as_alice.send("PUT", at, {"is_good": True, "reason": "Short."}).status_code == 200
    assert as_alice.send("PUT", at, {"is_good": False, "reason": "Wrong."}).status_code == 200
    assert as_alice.get(feedback_on(conversation)).json() == [{"message_id": "a", "is_good": False, "reason": "Wrong."}]
    assert as_alice.send("PUT", feedback_on(conversation, "q"), {"is_good": True}).status_code == 422, "no answer"
    assert as_alice.send("PUT", feedback_on(conversation, "none"), {"is_good": True}).status_code == 404
    for _ in range(2):
        assert as_alice.send("DELETE", at).status_code == 204
    assert as_alice.get(feedback_on(conversation)).json() == []
    assert len(as_bob.get(feedback_on(conversation)).json()) == 1


@pytest.mark.parametrize("how", ["clear", "delete", "the message", "the person"])
def test_feedback_goes_with_its_answer(as_alice: ApiClient, alice: User, conversation: AgentInstance, how: str) -> None:
    say(conversation, "q", "a")
    assert as_alice.send("PUT", feedback_on(conversation, "a"), {"is_good": True}).status_code == 200
    match how:
        case "clear":
            async_to_sync(AgentHandle(key_of(conversation)).clear)()
        case "delete":
            delete_instance(conversation)
        case "the message":
            assert conversation.session_id is not None
            assert prune_feedback() == 0
            delete_messages(conversation.session_id, ["a"])
            assert prune_feedback() == 1
        case "the person":
            alice.delete()
    assert not MessageFeedback.objects.exists()


def test_feedback_is_in_the_export_of_its_person(as_alice: ApiClient, alice: User, conversation: AgentInstance) -> None:
    say(conversation, "q", "a")
    as_alice.send("PUT", feedback_on(conversation, "a"), {"is_good": False, "reason": "Wrong."})
    data = b"".join(export_all(alice.pk, ExportFormat.JSONL))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        line: dict[str, Any] = json.loads(archive.read("feedback.jsonl"))
    assert (line["conversation"], line["message"], line["good"]) == (conversation.pk, "a", False)


def test_staff_find_bad_answers_and_why(
    as_alice: ApiClient, conversation: AgentInstance, client: Any, root: User
) -> None:
    say(conversation, "q", "a")
    as_alice.send("PUT", feedback_on(conversation, "a"), {"is_good": False, "reason": "It was rude."})
    client.force_login(root)
    found = client.get("/admin/think_chat/messagefeedback/?is_good__exact=0").content.decode()
    assert "It was rude." in found
    assert "It was rude." not in client.get("/admin/think_chat/messagefeedback/?is_good__exact=1").content.decode()
