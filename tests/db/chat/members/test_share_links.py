"""Links for readers, as a person sees them who has one and wants more, or has none and guesses."""

import json
import re
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.files import attachments
from chat.http import shared_page
from chat.http.api.endpoints import shares
from chat.members.services import add_member
from chat.models import AgentInstance, Attachment, Role, ShareLink
from chat.operations.removal import delete_instance
from chat.shares import services
from chat.shares.services import prune_links
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.services import append_messages, clear_session, select_leaf
from sessions_app.models import Message as MessageRow
from tests.db.chat.access_rows import all_rows
from tests.db.chat.conftest import ApiClient, say

OF_THE_MOMENT = {"Content-Security-Policy", "Expires"}  # a nonce, and the second in which it was asked
PNG = b"\x89PNG\r\n\x1a\n" + b"\x00" * 40


def make(client: ApiClient, instance: AgentInstance, **wanted: object) -> Any:
    """A link, as it is shown once."""
    reply = client.send("POST", f"/instances/{instance.pk}/shares", wanted)
    assert reply.status_code == 201, reply.content
    return reply.json()


def visit(secret: str, client: Client | None = None) -> Any:
    """The page of a link for a person who has not signed in."""
    return (client or Client()).get(f"/shared/{secret}")


def shown(secret: str, client: Client | None = None) -> Any:
    """What the page is drawn from."""
    page = visit(secret, client).content.decode()
    found = re.search(r'<script id="boot" type="application/json">(.*?)</script>', page, re.DOTALL)
    assert found is not None, page
    return json.loads(found[1])


def texts(boot: Any) -> list[str]:
    return [part["text"] for item in boot["messages"]["items"] for part in item["parts"] if part["type"] == "text"]


def put(instance: AgentInstance, *messages: Message) -> None:
    append_messages(str(instance.session_id), list(messages))


@pytest.fixture
def full(conversation: AgentInstance, alice: User) -> AgentInstance:
    """Alice's, with one of everything that a message can hold."""
    row = attachments.store_bytes(alice.pk, PNG, name="hidden-name.png")
    attachments.bind(alice.pk, [row.pk], conversation)
    call: Any = {
        "type": "tool-pay",
        "toolCallId": "secret-call-id",
        "state": "output-available",
        "input": {"to": "secret-input"},
        "output": "secret-output",
        "approval": {"id": "secret-approval", "approved": True, "reason": "secret-reason", "signature": "secret-sig"},
        "callProviderMetadata": {"x": {"signature": "secret-provider"}},
        "toolMetadata": {"think": {"rule": {"name": "secret-rule"}, "metadata": {"a": "secret-report"}}},
    }
    memory: Any = {**call, "type": "tool-set_context", "toolCallId": "m", "input": {"content": "secret-memory"}}
    put(
        conversation,
        {"id": "sys", "role": "system", "parts": [{"type": "text", "text": "secret-instruction"}]},
        {
            "id": "q2",
            "role": "user",
            "parts": [
                {"type": "text", "text": "second question"},
                {"type": "file", "mediaType": "image/png", "url": attachments.url_of(row.pk), "filename": row.name},
            ],
            "metadata": {"address": "secret-address"},
        },
        {
            "id": "a2",
            "role": "assistant",
            "parts": [
                {"type": "reasoning", "text": "private-thought", "providerMetadata": {"x": {"s": "secret-signature"}}},
                call,
                memory,
                {"type": "data-hidden", "data": {"text": "secret-hidden"}},
                {"type": "custom", "kind": "x", "data": "secret-custom"},
                {"type": "source-document", "sourceId": "s", "mediaType": "text/plain", "title": "secret-document"},
                {"type": "text", "text": "second answer", "providerMetadata": {"x": {"y": "secret-meta"}}},
            ],
            "metadata": {"model": "secret-model"},
        },
    )
    return conversation


def test_a_stranger_reads_the_words_and_nothing_else(as_alice: ApiClient, full: AgentInstance) -> None:
    made = make(as_alice, full)
    page = visit(made["secret"]).content.decode()
    assert texts(shown(made["secret"]))[-2:] == ["second question", "second answer"]
    for private in ("secret-", "private-thought", "hidden-name", str(full.pk), str(full.session_id), "alice", "q2"):
        assert private not in page.replace(made["secret"], ""), private
    assert "pay" in page  # that a tool was called, and which, is said


def test_what_is_ticked_is_shown_and_its_inner_data_are_not(as_alice: ApiClient, full: AgentInstance) -> None:
    made = make(as_alice, full, tools=True, files=True, reasoning=True)
    page = visit(made["secret"]).content.decode().replace(made["secret"], "")
    for chosen in ("secret-input", "secret-output", "private-thought", "hidden-name"):
        assert chosen in page, chosen
    kept = ("memory", "approval", "reason", "sig", "provider", "rule", "report", "signature", "hidden", "custom")
    for private in (*kept, "document", "meta", "model", "address", "instruction", "call-id"):
        assert f"secret-{private}" not in page, private


def test_later_messages_and_other_branches_are_never_seen(as_alice: ApiClient, conversation: AgentInstance) -> None:
    made = make(as_alice, conversation, message_id="a1")
    before = texts(shown(made["secret"]))
    say(conversation, "q2", "a2")
    put(conversation, {"id": "q3", "role": "user", "parts": [{"type": "text", "text": "later"}]})
    select_leaf(str(conversation.session_id), "a1")
    assert texts(shown(made["secret"])) == before
    assert "later" not in visit(made["secret"]).content.decode()


def test_a_message_that_is_not_shown_cannot_end_a_link(as_alice: ApiClient, conversation: AgentInstance) -> None:
    append_messages(
        str(conversation.session_id),
        [{"id": "other", "role": "user", "parts": [{"type": "text", "text": "x"}]}],
        after="q1",
    )
    path = f"/instances/{conversation.pk}/shares"
    assert as_alice.send("POST", path, {"message_id": "a1"}).status_code == 404  # another branch is shown by now
    assert as_alice.send("POST", path, {"message_id": "never"}).status_code == 404
    assert not ShareLink.objects.exists()


def test_every_secret_that_does_not_work_is_answered_alike(
    as_alice: ApiClient, conversation: AgentInstance, alice: User
) -> None:
    wrong, revoked, expired = ("never-made", *(make(as_alice, conversation)["secret"] for _ in range(2)))
    rows = list(ShareLink.objects.order_by("created_at"))
    assert as_alice.send("DELETE", f"/shares/{rows[0].pk}").status_code == 204
    assert as_alice.send("DELETE", f"/shares/{rows[0].pk}").status_code == 404
    ShareLink.objects.filter(pk=rows[1].pk).update(expires_at=timezone.now() - timedelta(seconds=1))
    replies = [visit(secret) for secret in (wrong, revoked, expired)]
    assert {reply.status_code for reply in replies} == {404}
    assert len({re.sub(r'nonce="[^"]*"', "", reply.content.decode()) for reply in replies}) == 1
    assert len({tuple(sorted((k, v) for k, v in r.headers.items() if k not in OF_THE_MOMENT)) for r in replies}) == 1
    last = make(as_alice, conversation)["secret"]
    User.objects.filter(pk=alice.pk).update(is_active=False)
    assert visit(last).status_code == 404


def test_the_page_is_kept_by_nobody_and_listed_nowhere(as_alice: ApiClient, full: AgentInstance) -> None:
    made = make(as_alice, full, files=True)
    boot = shown(made["secret"])
    urls = [part["url"] for item in boot["messages"]["items"] for part in item["parts"] if part["type"] == "file"]
    assert len(urls) == 1
    for reply in (visit(made["secret"]), Client().get(urls[0]), visit("wrong")):
        assert "no-store" in reply["Cache-Control"]
        assert reply["Referrer-Policy"] == "no-referrer"
        assert reply["X-Robots-Tag"].startswith("noindex")
        assert not reply.cookies
    page = visit(made["secret"]).content.decode()
    assert '<meta name="robots" content="noindex' in page
    assert '<meta name="referrer" content="no-referrer">' in page
    assert b"".join(Client().get(urls[0]).streaming_content) == PNG  # type: ignore[attr-defined]
    assert Client().post(f"/shared/{made['secret']}").status_code == 405


def test_only_files_that_the_link_shows_are_given_out(
    as_alice: ApiClient, full: AgentInstance, alice: User, bob: User
) -> None:
    file_id = Attachment.objects.get().pk
    without = make(as_alice, full, tools=True)["secret"]
    earlier = make(as_alice, full, files=True, message_id="a1")["secret"]
    with_files = make(as_alice, full, files=True)["secret"]
    other = attachments.store_bytes(alice.pk, PNG + b"2", name="other.png").pk
    his = attachments.store_bytes(bob.pk, PNG + b"3", name="his.png").pk
    parts: Any = [{"type": "file", "mediaType": "image/png", "url": attachments.url_of(his), "filename": "x"}]
    put(full, {"id": "q9", "role": "user", "parts": parts})  # as one that was brought in might name it
    naming = make(as_alice, full, files=True)["secret"]
    for secret, wanted in ((without, file_id), (earlier, file_id), (with_files, other), (naming, his), ("no", file_id)):
        assert Client().get(f"/shared/{secret}/files/{wanted}").status_code == 404
        assert Client().get(f"/shared/{secret}/files/{wanted}/view").status_code == 404
    assert Client().get(f"/shared/{with_files}/files/{file_id}").status_code == 200
    assert Client().get(attachments.url_of(file_id)).status_code == 401  # the address of the conversation's own


def test_guessing_is_slowed_down(
    as_alice: ApiClient, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = make(as_alice, conversation)["secret"]
    monkeypatch.setattr(shared_page, "PAGES_PER_MINUTE", 2)
    cache.clear()
    statuses = [visit(each).status_code for each in ("a", "b", secret)]
    if statuses == [404, 404, 200]:  # the minute went by in between
        statuses = [visit(each).status_code for each in ("a", "b", secret)]
    assert statuses == [404, 404, 429]


def test_only_a_hash_is_stored_and_a_secret_is_shown_once(as_alice: ApiClient, conversation: AgentInstance) -> None:
    made = make(as_alice, conversation, days=3)
    assert made["secret"] not in str(all_rows())
    assert made["path"] == f"/shared/{made['secret']}"
    for path in ("/shares", f"/instances/{conversation.pk}/shares"):
        (listed,) = as_alice.get(path).json()
        assert listed["id"] == made["id"]
        assert "secret" not in listed


def test_only_the_owner_makes_lists_and_revokes(
    as_alice: ApiClient, as_bob: ApiClient, conversation: AgentInstance, bob: User, alice: User
) -> None:
    made = make(as_alice, conversation)
    path = f"/instances/{conversation.pk}/shares"
    assert as_bob.get(path).status_code == 404
    add_member(conversation, bob.username, Role.APPROVER, by=alice.pk)
    assert as_bob.send("POST", path, {}).status_code == 403
    assert as_bob.get(path).status_code == 403
    assert as_bob.get("/shares").json() == []
    assert as_bob.send("DELETE", f"/shares/{made['id']}").status_code == 404
    assert visit(made["secret"]).status_code == 200


def test_a_link_ends_with_what_it_shows(as_alice: ApiClient, conversation: AgentInstance, alice: User) -> None:
    secret = make(as_alice, conversation)["secret"]
    clear_session(str(conversation.session_id))
    assert visit(secret).status_code == 404
    say(conversation, "q5", "a5")
    secret = make(as_alice, conversation)["secret"]
    assert visit(secret).status_code == 200
    delete_instance(conversation)
    assert visit(secret).status_code == 404
    assert not ShareLink.objects.exists()


def test_nothing_of_a_person_who_is_gone_is_left(as_alice: ApiClient, conversation: AgentInstance, alice: User) -> None:
    secret = make(as_alice, conversation)["secret"]
    alice.delete()
    assert visit(secret).status_code == 404
    assert not ShareLink.objects.exists()


def test_old_links_are_pruned(as_alice: ApiClient, conversation: AgentInstance) -> None:
    over, works = make(as_alice, conversation), make(as_alice, conversation)
    ShareLink.objects.filter(pk=over["id"]).update(expires_at=timezone.now() - timedelta(days=31))
    assert (prune_links(dry_run=True), prune_links()) == (1, 1)
    assert [row.pk for row in ShareLink.objects.all()] == [works["id"]]


@pytest.mark.parametrize("body", [{"days": 0}, {"days": 366}, {"days": "x"}, {"everything": True}, {"message_id": ""}])
def test_bad_input_makes_no_link(as_alice: ApiClient, conversation: AgentInstance, body: dict[str, object]) -> None:
    assert as_alice.send("POST", f"/instances/{conversation.pk}/shares", body).status_code == 422
    assert not ShareLink.objects.exists()


def test_there_is_room_for_so_many(
    as_alice: ApiClient, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/instances/{conversation.pk}/shares"
    monkeypatch.setattr(services, "MAX_LINKS", 1)
    make(as_alice, conversation)
    assert as_alice.send("POST", path, {}).status_code == 422
    monkeypatch.setattr(services, "MAX_LINKS", 2)
    monkeypatch.setattr(services, "MAX_MESSAGES", 1)
    assert as_alice.send("POST", path, {}).status_code == 422
    assert as_alice.send("POST", path, {"message_id": "q1"}).status_code == 201


def test_a_page_costs_the_same_however_long_it_is(as_alice: ApiClient, conversation: AgentInstance) -> None:
    counts = []
    for number in range(2, 5):
        secret = make(as_alice, conversation)["secret"]
        with CaptureQueriesContext(
            connection,
        ) as caught:
            assert visit(secret).status_code == 200
        counts.append(len(caught))
        for each in range(number):
            say(conversation, f"q{number}{each}", f"a{number}{each}")
    assert counts == [3, 3, 3]


def test_a_reader_goes_on_in_an_own_conversation(
    as_alice: ApiClient, as_bob: ApiClient, full: AgentInstance, bob: User
) -> None:
    made = make(as_alice, full, tools=True, files=True)
    say(full, "q7", "a7")
    reply = as_bob.send("POST", "/shares/continue", {"secret": made["secret"]})
    assert reply.status_code == 201, reply.content
    mine = AgentInstance.objects.get(pk=reply.json()["instance_id"])
    assert (mine.owner_id, mine.agent, mine.title) == (bob.pk, full.agent, full.title)
    items = as_bob.get(f"/instances/{mine.pk}/messages").json()["items"]
    words = [part["text"] for item in items for part in item["parts"] if part["type"] == "text"]
    assert words == texts(shown(made["secret"]))
    (url,) = [part["url"] for item in items for part in item["parts"] if part["type"] == "file"]
    assert as_bob.get(url.removeprefix("/api/v1")).status_code == 200
    stored = "".join(row.content["parts"].__repr__() for row in MessageRow.objects.filter(session_id=mine.session_id))
    for private in ("private-thought", "secret-memory", "secret-approval", "secret-instruction", "secret-call-id"):
        assert private not in stored
    assert as_bob.get(f"/instances/{mine.pk}").json()["guard"]  # another person's words are not trusted
    delete_instance(full)
    assert as_bob.get(url.removeprefix("/api/v1")).status_code == 200


def test_going_on_needs_a_link_that_works_and_leaves_nothing_else(
    as_alice: ApiClient, as_bob: ApiClient, as_nobody: ApiClient, conversation: AgentInstance
) -> None:
    made = make(as_alice, conversation)
    assert as_nobody.send("POST", "/shares/continue", {"secret": made["secret"]}).status_code == 401
    as_alice.send("DELETE", f"/shares/{made['id']}")
    assert as_bob.send("POST", "/shares/continue", {"secret": made["secret"]}).status_code == 404
    assert AgentInstance.objects.count() == 1


def test_how_often_one_goes_on_is_limited(
    as_alice: ApiClient, as_bob: ApiClient, full: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shares, "CONTINUED_PER_MINUTE", 1)
    body = {"secret": make(as_alice, full)["secret"]}
    replies = [as_bob.send("POST", "/shares/continue", body) for _ in range(3)]  # a minute may end in between
    statuses = [reply.status_code for reply in replies]
    assert statuses.count(201) <= 2
    assert 429 in statuses
    assert int(replies[statuses.index(429)].headers["Retry-After"]) > 0
