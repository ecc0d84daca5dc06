"""Messages that wait, over the API: edited by version, put in another order, stored without starting anything."""

from typing import Any

from django.contrib.auth.models import User

from chat.members.services import add_member
from chat.models import AgentInstance, Role, Turn
from fibers.models import Fiber
from sessions_app.messages import selectors
from tests.db.chat.conftest import ApiClient


def words(text: str) -> dict[str, Any]:
    return {"message": {"parts": [{"type": "text", "text": text}]}}


def post(client: ApiClient, instance: AgentInstance, text: str, **more: Any) -> Any:
    reply = client.send("POST", f"/instances/{instance.id}/turns", {**words(text), **more})
    assert reply.status_code == 202, reply.content
    return reply.json()


def queue(client: ApiClient, instance: AgentInstance) -> list[tuple[str, str, int]]:
    """Turn, text and version of each message that waits, as the list of messages has them."""
    page = client.get(f"/instances/{instance.id}/messages").json()
    return [(each["turn"]["id"], each["parts"][0]["text"], each["version"]) for each in page["queued"]]


def test_a_waiting_message_is_edited_by_its_version(as_alice: ApiClient, conversation: AgentInstance) -> None:
    post(as_alice, conversation, "first")
    second = post(as_alice, conversation, "second")
    version = queue(as_alice, conversation)[1][2]
    path = f"/turns/{second['id']}/message"
    edited = as_alice.send("PATCH", path, {**words("better"), "version": version})
    assert edited.status_code == 200, edited.content
    assert [text for _, text, _ in queue(as_alice, conversation)] == ["first", "better"]
    assert queue(as_alice, conversation)[1][2] == edited.json()["version"] > version
    late = as_alice.send("PATCH", path, {**words("from another tab"), "version": version})
    assert (late.status_code, late.json()["code"]) == (409, "turn_conflict")
    as_alice.send("POST", f"/turns/{second['id']}/cancel", {})
    over = as_alice.send("PATCH", path, {**words("too late"), "version": edited.json()["version"]})
    assert over.status_code == 409
    assert [text for _, text, _ in queue(as_alice, conversation)] == ["first", "better"]


def test_a_waiting_message_is_changed_by_its_author_alone(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, alice: User, bob: User
) -> None:
    """A turn has the rights of its author, so no other person's words may stand in it, the owner's neither."""
    add_member(conversation, bob.username, Role.WRITER, by=alice.pk)
    post(as_alice, conversation, "first")
    hers, his = post(as_alice, conversation, "hers"), post(as_bob, conversation, "his")
    versions = [version for _, _, version in queue(as_alice, conversation)][1:]
    for client, statuses in ((as_alice, [200, 409]), (as_bob, [409, 200])):
        replies = [
            client.send("PATCH", f"/turns/{turn['id']}/message", {**words("better"), "version": version})
            for turn, version in zip((hers, his), versions, strict=True)
        ]
        assert [reply.status_code for reply in replies] == statuses
    assert [text for _, text, _ in queue(as_alice, conversation)] == ["first", "better", "better"]


def test_waiting_messages_are_put_in_another_order(as_alice: ApiClient, conversation: AgentInstance) -> None:
    ids = [post(as_alice, conversation, text)["id"] for text in ("one", "two", "three")]
    path = f"/instances/{conversation.id}/queue"
    assert as_alice.send("PUT", path, {"turn_ids": [ids[2], ids[0], ids[1]]}).status_code == 204
    assert [text for _, text, _ in queue(as_alice, conversation)] == ["three", "one", "two"]
    in_lane = Fiber.objects.live_in(f"instance:{conversation.id}")
    turns = dict(Turn.objects.values_list("fiber_id", "pk"))
    assert [turns[fiber_id] for fiber_id in in_lane.values_list("pk", flat=True)] == [ids[2], ids[0], ids[1]]
    for stale in ([ids[0], ids[1]], [*ids, ids[0]], [*ids, "trn_other"]):
        assert as_alice.send("PUT", path, {"turn_ids": stale}).status_code == 409
    assert [text for _, text, _ in queue(as_alice, conversation)] == ["three", "one", "two"]


def test_a_message_that_steers_stands_before_those_that_queue(as_alice: ApiClient, conversation: AgentInstance) -> None:
    for text in ("one", "two"):
        post(as_alice, conversation, text)
    steering = post(as_alice, conversation, "now", delivery="steer")
    assert (steering["delivery"], steering["answered_by"]) == ("steer", None)
    assert [text for _, text, _ in queue(as_alice, conversation)] == ["one", "now", "two"]


def test_a_message_may_be_stored_without_starting_anything(as_alice: ApiClient, conversation: AgentInstance) -> None:
    stored = post(as_alice, conversation, "for later", resume=False)
    assert stored["status"] == "aborted"
    assert conversation.session_id is not None
    assert len(selectors.queued(conversation.session_id)) == 1
    assert not Fiber.objects.filter(lane=f"instance:{conversation.id}", finished_at=None).exists()


def test_another_word_is_refused(as_alice: ApiClient, conversation: AgentInstance) -> None:
    reply = as_alice.send("POST", f"/instances/{conversation.id}/turns", {**words("hi"), "delivery": "pizza"})
    assert reply.status_code == 422
