"""The API's operations on histories, forks, exports, imports, and what is pinned or put away."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management.color import no_style
from django.db import connection
from django.test import AsyncClient
from django.utils import timezone

from chat.agents import Assistant
from chat.files import attachments
from chat.models import AgentInstance, Attachment, Turn
from chat.operations.removal import delete_instance
from sessions_app.compactions.services import add_compaction
from sessions_app.core.messages.shapes import Content
from sessions_app.messages import selectors
from sessions_app.messages.services import append_messages, fork_session
from sessions_app.models import Compaction, Message, Session
from sessions_app.transfer.export import export_lines, export_markdown
from tests.db.chat.conftest import ApiClient, make_turn, say, text_message
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db

Make = Callable[..., AgentInstance]


@pytest.fixture
def keeps_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "keeps_sessions", True)


def shown(client: ApiClient, instance_id: str) -> list[str]:
    return [item["id"] for item in client.get(f"/instances/{instance_id}/messages").json()["items"]]


# --- histories -------------------------------------------------------------------------------------------------------


def test_histories_are_made_chosen_changed_and_removed(
    as_alice: ApiClient, conversation: AgentInstance, keeps_several: None
) -> None:
    base = f"/instances/{conversation.id}"
    made = as_alice.send("POST", f"{base}/sessions", {"name": "Second"})
    assert (made.status_code, made.json()["is_current"], shown(as_alice, conversation.id)) == (201, True, [])
    first, second = conversation.session_id, made.json()["id"]
    switched = as_alice.send("PUT", f"{base}/session", {"session_id": first}).json()
    assert (switched["id"], switched["is_current"], switched["message_count"]) == (first, True, 2)
    assert shown(as_alice, conversation.id) == ["q1", "a1"]
    changed = as_alice.send("PATCH", f"/sessions/{second}", {"name": "New", "pinned": True, "archived": True}).json()
    assert changed["name"] == "New"
    assert None not in (changed["pinned_at"], changed["archived_at"])
    assert [item["id"] for item in as_alice.get(f"{base}/sessions").json()] == [second, first]
    back = as_alice.send("PATCH", f"/sessions/{second}", {"pinned": False, "archived": False}).json()
    assert (back["pinned_at"], back["archived_at"], back["auto_compaction"]) == (None, None, None)
    assert as_alice.send("DELETE", f"/sessions/{second}").status_code == 204
    assert as_alice.send("DELETE", f"/sessions/{first}").status_code == 204
    assert as_alice.get(f"{base}/sessions").json() == []
    assert as_alice.get(base).json()["session_id"] is None
    transcript = as_alice.get(f"{base}/messages").json()
    assert (transcript["items"], transcript["running"], transcript["failed"]) == ([], None, None)


def test_a_history_reports_whether_it_is_compacted_automatically(
    as_alice: ApiClient, conversation: AgentInstance
) -> None:
    path = f"/sessions/{conversation.session_id}"
    for choice in (False, True, None):
        assert as_alice.send("PATCH", path, {"auto_compaction": choice}).json()["auto_compaction"] is choice
        assert selectors.auto_compaction(str(conversation.session_id)) is choice
    as_alice.send("PATCH", path, {"auto_compaction": False})
    assert as_alice.send("PATCH", path, {"name": "Other"}).json()["auto_compaction"] is False  # not named: as it was
    assert as_alice.send("PATCH", path, {"auto_compaction": "maybe"}).status_code == 422


@pytest.mark.parametrize("path", ["/instances/{i}/sessions", "/instances/{i}/session"])
def test_an_agent_with_a_single_session_refuses_others(
    as_alice: ApiClient, conversation: AgentInstance, path: str
) -> None:
    body: Any = {"session_id": conversation.session_id} if path.endswith("session") else {}
    reply = as_alice.send("PUT" if body else "POST", path.format(i=conversation.id), body)
    assert (reply.status_code, reply.json()["code"]) == (422, "input_invalid")
    assert not as_alice.get(f"/instances/{conversation.id}").json()["keeps_sessions"]


# --- what is pinned and put away -------------------------------------------------------------------------------------


def test_conversations_are_pinned_put_away_and_restored(as_alice: ApiClient, conversation: AgentInstance) -> None:
    def listed(query: str) -> list[str]:
        return [item["id"] for item in as_alice.get(f"/instances?{query}").json()["items"]]

    path, mine = f"/instances/{conversation.id}", [conversation.id]
    active_at = as_alice.get(path).json()["active_at"]
    pinned = as_alice.send("PATCH", path, {"pinned": True}).json()
    assert (pinned["pinned_at"] is not None, pinned["active_at"]) == (True, active_at)
    assert (listed("pinned=true"), listed("pinned=false"), listed("")) == (mine, [], mine)
    assert as_alice.send("PATCH", path, {"archived": True, "pinned": False}).json()["archived_at"]
    assert (listed(""), listed("archived=true"), listed("pinned=true")) == ([], mine, [])
    assert as_alice.send("PATCH", path, {"archived": False}).json()["archived_at"] is None
    assert (listed(""), listed("archived=true")) == (mine, [])


# --- forks -----------------------------------------------------------------------------------------------------------


def test_a_fork_shares_the_path_and_goes_on_alone(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    say(conversation, "q2", "a2")
    for last in ("a1", "a2"):
        Compaction.objects.create(
            session_id=str(conversation.session_id), first_id="q1", last_id=last, summary="s", trigger="added"
        )
    AgentInstance.objects.filter(pk=conversation.pk).update(state={"n": 1}, state_version=3, config={"c": 2})
    rows = Message.objects.count()
    reply = as_alice.send("POST", f"/instances/{conversation.id}/fork", {"message_id": "a1"})
    made = reply.json()
    assert (reply.status_code, made["agent"], made["title"]) == (201, "assistant", "A talk")
    assert shown(as_alice, made["id"]) == ["q1", "a1"]
    origin = {"instance_id": conversation.id, "message_id": "a1", "title": "A talk"}
    listed = {item["id"]: item["forked_from"] for item in as_alice.get("/instances").json()["items"]}
    assert (made["forked_from"], listed) == (origin, {made["id"]: origin, conversation.id: None})
    assert Message.objects.count() == rows
    row = AgentInstance.objects.get(pk=made["id"])
    assert (row.owner_id, row.state, row.state_version, row.config) == (alice.pk, {"n": 1}, 3, {"c": 2})
    assert [kept.last_id for kept in Compaction.objects.filter(session_id=row.session_id)] == ["a1"]
    assert Session.objects.filter(scope=row.pk).count() == 1
    say(row, "f2", "fa2")
    assert shown(as_alice, conversation.id) == ["q1", "a1", "q2", "a2"]
    assert as_alice.send("DELETE", f"/instances/{conversation.id}").status_code == 204
    assert shown(as_alice, made["id"]) == ["q1", "a1", "f2", "fa2"]
    assert as_alice.get(f"/instances/{made['id']}").json()["forked_from"] is None  # what is gone leads nowhere


def test_a_fork_is_refused_and_leaves_nothing(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    path = f"/instances/{conversation.id}/fork"
    assert as_alice.send("POST", path, {"message_id": "nowhere"}).status_code == 404
    assert as_alice.send("POST", path, {"message_id": "q1", "session_id": "ses_nowhere"}).status_code == 422
    settings.THINK_INSTANCES_PER_USER = 1
    assert as_alice.send("POST", path, {"message_id": "q1"}).status_code == 429
    assert (AgentInstance.objects.count(), Session.objects.count()) == (1, 1)


def test_files_outlive_the_conversation_that_was_forked(
    as_alice: ApiClient, alice: User, conversation: AgentInstance
) -> None:
    file = attachments.store_bytes(alice.pk, b"bytes", name="x.txt")
    attachments.claim(alice.pk, [file.id], conversation)
    made = as_alice.send("POST", f"/instances/{conversation.id}/fork", {"message_id": "a1"}).json()
    fork = AgentInstance.objects.get(pk=made["id"])
    attachments.claim(alice.pk, [file.id], fork)  # sent again in either of them
    attachments.claim(alice.pk, [file.id], conversation)
    delete_instance(conversation)
    delete_instance(fork)
    assert attachments.sweep_orphans() == 0
    assert Attachment.objects.filter(pk=file.pk).exists()
    assert as_alice.get(f"/files/{file.id}").getvalue() == b"bytes"


# --- answers that are edited -----------------------------------------------------------------------------------------

TEXT = {"parts": [{"type": "text", "text": "better"}]}


def test_an_edited_answer_is_a_sibling_and_hides_nothing(as_alice: ApiClient, conversation: AgentInstance) -> None:
    say(conversation, "q2", "a2")
    reply = as_alice.send("POST", f"/instances/{conversation.id}/messages/a1/edit", TEXT)
    assert (reply.status_code, reply.json()["leaf_id"]) == (201, "a2")
    items = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"]
    assert [item["id"] for item in items] == ["q1", "a1", "q2", "a2"]
    new_id = reply.json()["message_id"]
    assert (items[1]["sibling_ids"], items[1]["position"], items[1]["parent_id"]) == (["a1", new_id], 0, "q1")


def test_continue_from_here_goes_on_from_the_edited_answer(as_alice: ApiClient, conversation: AgentInstance) -> None:
    say(conversation, "q2", "a2")
    path = f"/instances/{conversation.id}"
    edited = as_alice.send("POST", f"{path}/messages/a1/edit", TEXT | {"continue_from_here": True}).json()
    assert shown(as_alice, conversation.id) == ["q1", edited["message_id"]]
    turn = as_alice.send("POST", f"{path}/turns", {"trigger": "continue"})
    assert (turn.status_code, Turn.objects.get(pk=turn.json()["id"]).trigger) == (202, "continue")
    as_alice.send("PUT", f"{path}/leaf", {"message_id": "a1"})
    assert shown(as_alice, conversation.id) == ["q1", "a1", "q2", "a2"]


def test_the_last_answer_is_shown_as_edited(as_alice: ApiClient, conversation: AgentInstance) -> None:
    edited = as_alice.send("POST", f"/instances/{conversation.id}/messages/a1/edit", TEXT).json()
    assert shown(as_alice, conversation.id) == ["q1", edited["message_id"]]
    assert edited["leaf_id"] == edited["message_id"]


def test_an_answer_that_its_owner_wrote_says_so_here_and_in_exports(
    as_alice: ApiClient, conversation: AgentInstance
) -> None:
    as_alice.send("POST", f"/instances/{conversation.id}/messages/a1/edit", TEXT)
    items = as_alice.get(f"/instances/{conversation.id}/messages").json()["items"]
    assert [(item["metadata"] or {}).get("writtenBy") for item in items] == [None, "owner"]
    assert "".join(export_lines(str(conversation.session_id))).count('"writtenBy":"owner"') == 1
    read = "".join(export_markdown(str(conversation.session_id)))
    assert re.search(r"## Assistant\n\n\*Written by owner, \d{4}-\d\d-\d\d \d\d:\d\d UTC\*\n\n", read)
    assert read.count("*Written by") == 1


@pytest.mark.parametrize(
    ("message_id", "body"),
    [
        ("q1", TEXT),
        ("nowhere", TEXT),
        ("a1", {"parts": []}),
        ("a1", {"parts": [{"type": "tool-x", "toolCallId": "c", "state": "output-available", "output": 1}]}),
    ],
)
def test_an_edit_that_makes_no_sense_changes_nothing(
    as_alice: ApiClient, conversation: AgentInstance, message_id: str, body: Any
) -> None:
    reply = as_alice.send("POST", f"/instances/{conversation.id}/messages/{message_id}/edit", body)
    assert reply.status_code == 422
    assert Message.objects.count() == 2


# --- out and in ------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
async def test_an_export_is_streamed(alice: User, talk: AgentInstance) -> None:
    client = AsyncClient()
    await client.aforce_login(alice)
    path = f"/api/v1/sessions/{talk.session_id}/export"
    lines: Any = await client.get(path)
    text = b"".join([piece async for piece in lines.streaming_content]).decode()
    assert text == await db(lambda: "".join(export_lines(str(talk.session_id))))
    assert lines["Content-Type"] == "application/x-ndjson"
    assert f'filename="{talk.session_id}.jsonl"' in lines["Content-Disposition"]
    markdown: Any = await client.get(f"{path}?format=markdown")
    assert b"## User" in b"".join([piece async for piece in markdown.streaming_content])
    assert (await client.get(f"{path}?format=pdf")).status_code == 422


def upload(client: ApiClient, path: str, data: bytes, **fields: str) -> Any:
    return client.http.post(f"/api/v1{path}", {"file": SimpleUploadedFile("x.jsonl", data), **fields})


def test_an_export_becomes_a_conversation(as_alice: ApiClient, conversation: AgentInstance) -> None:
    data = "".join(export_lines(str(conversation.session_id))).encode()
    reply = upload(as_alice, "/imports", data, agent="assistant", title="Brought")
    made = reply.json()
    assert (reply.status_code, made["message_count"]) == (201, 2)
    instance = as_alice.get(f"/instances/{made['instance_id']}").json()
    assert (instance["title"], instance["session_id"]) == ("Brought", made["session_id"])
    assert shown(as_alice, made["instance_id"]) == ["q1", "a1"]
    assert Session.objects.filter(scope=made["instance_id"]).count() == 1


def test_an_export_becomes_a_history(as_alice: ApiClient, conversation: AgentInstance, keeps_several: None) -> None:
    data = "".join(export_lines(str(conversation.session_id))).encode()
    made = upload(as_alice, f"/instances/{conversation.id}/imports", data).json()
    listed = as_alice.get(f"/instances/{conversation.id}/sessions").json()
    assert [(item["id"], item["is_current"]) for item in listed] == [
        (made["session_id"], False),
        (conversation.session_id, True),
    ]


def test_a_wrong_file_leaves_nothing(as_alice: ApiClient, conversation: AgentInstance) -> None:
    head = {"kind": "session", "format": "think-session", "version": 1}
    system = {"kind": "message", **text_message("s1", "system"), "created_at": "2026-01-01T00:00:00Z"}
    lines = [head, system, {"kind": "end", "messages": 1}]
    for data in (b"\xff\xfe", b"{}", "\n".join(map(json.dumps, lines)).encode()):
        reply = upload(as_alice, "/imports", data, agent="assistant")
        assert (reply.status_code, reply.json()["code"]) == (422, "export_invalid")
    assert upload(as_alice, f"/instances/{conversation.id}/imports", b"{}").status_code == 422
    assert (AgentInstance.objects.count(), Session.objects.count()) == (1, 1)


# --- what it costs ---------------------------------------------------------------------------------------------------


def talked(instance: AgentInstance, count: int) -> AgentInstance:
    """A conversation of so many messages, and a sibling of the last one."""
    session_id = str(instance.session_id)
    before = Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    content: Content = {"parts": [{"type": "text", "text": "hi"}]}
    rows = [
        Message(
            pk=before + n + 1,
            session_id=session_id,
            message_id=f"m{n}",
            parent_id=before + n if n else None,
            depth=n,
            role="assistant" if n % 2 else "user",
            content=content,
            byte_size=100,
            placed_at=timezone.now(),
        )
        for n in range(count)
    ]
    Message.objects.bulk_create(rows, batch_size=1000)
    Session.objects.filter(pk=session_id).update(active_leaf_id=rows[-1].pk)
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), [Message]):
            cursor.execute(sql)
    append_messages(session_id, [text_message("other", "assistant")], after=f"m{count - 2}", shows=False)
    return instance


@pytest.fixture
def long(alice: User, make_instance: Make) -> AgentInstance:
    return talked(make_instance(alice, "long"), 300)


HELLO = {"message": {"parts": [{"type": "text", "text": "hi"}]}}
OPERATIONS = {
    "list": (7, "GET", "/instances", None),
    "open": (12, "GET", "/instances/{i}/messages", None),
    "resume": (12, "GET", "/instances/{i}/messages", None),
    "send": (40, "POST", "/instances/{i}/turns", HELLO),
    "fork": (65, "POST", "/instances/{i}/fork", {"message_id": "m7"}),
    "sessions": (8, "GET", "/instances/{i}/sessions", None),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_queries_are_as_many_at_10_as_at_2_000_messages(
    as_alice: ApiClient, alice: User, make_instance: Make, name: str, django_assert_max_num_queries: Any
) -> None:
    limit, method, path, body = OPERATIONS[name]
    assert connection.features.supports_json_field  # Django asks the database once in a process
    counts = []
    for count in (10, 2_000):
        instance = talked(make_instance(alice, f"of {count}"), count)
        if name == "resume":
            make_turn(instance, status="running")
        with django_assert_max_num_queries(limit) as captured:
            assert as_alice.send(method, path.format(i=instance.id), body).status_code < 300
        counts.append(len(captured))
    assert counts[0] == counts[1]


def test_what_a_model_reads_costs_the_same_queries(
    alice: User, make_instance: Make, django_assert_max_num_queries: Any
) -> None:
    """Of a path, of a summarised one, and of a fork of that."""
    counts = []
    for count in (10, 2_000):
        session_id = str(talked(make_instance(alice, f"of {count}"), count).session_id)
        add_compaction(session_id, first_id="m1", last_id=f"m{count - 4}", summary="short")
        fork = fork_session(session_id, f"m{count - 1}").pk
        for one in (session_id, fork):
            with django_assert_max_num_queries(5) as captured:
                assert len(selectors.model_history(one)) == 5
            counts.append(len(captured))
    assert len(set(counts)) == 1


def test_every_message_carries_its_place(as_alice: ApiClient, long: AgentInstance) -> None:
    items = as_alice.get(f"/instances/{long.id}/messages").json()["items"]
    assert (items[-1]["parent_id"], items[-1]["sibling_ids"], items[-1]["position"]) == ("m298", ["m299", "other"], 0)
    as_alice.send("PUT", f"/instances/{long.id}/leaf", {"message_id": "other"})
    page = as_alice.get(f"/instances/{long.id}/messages").json()
    assert (page["leaf_id"], page["items"][-1]["position"]) == ("other", 1)  # what was chosen is stored
    assert selectors.leaf_id(str(long.session_id)) == "other"
