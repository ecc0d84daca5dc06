"""Quotas hold for parallel requests of one user: real threads, each with a connection of its own."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Sum
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.agents import Assistant
from chat.conversations import importing
from chat.durable_streams.writing import ROW_BYTES, STREAM_BYTES, Addition, Creation, append, create_stream
from chat.errors import QuotaExceeded
from chat.files import attachments
from chat.instances import quota
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance, Attachment, DurableStream, MessageCount, Turn
from chat.runtime import sessions
from chat.runtime.add_messages import add_messages
from chat.turns.admission import continuation
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program, Submit
from chat.turns.admission.tool_answers import Reply
from sessions_app.models import Message, Session
from sessions_app.transfer.export import export_lines
from tests.db.chat.conftest import ApiClient, make_turn, text_message
from tests.db.races import together
from thinkproject.kernel.object_storage import object_storage
from tools_app.calls import services
from tools_app.calls.services import Actor
from tools_app.models import ToolCallRecord

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS = 8
Make = Callable[..., AgentInstance]


def at_once(work: Callable[[int], object]) -> int:
    """Do the work on several threads; returns how many were let through. The others were refused by a quota."""
    errors = together(*[lambda number=number: work(number) for number in range(WORKERS)])
    assert [error for error in errors if not isinstance(error, QuotaExceeded)] == []
    return WORKERS - len(errors)


def test_conversations_are_limited_also_at_once(alice: User, settings: Any) -> None:
    settings.THINK_INSTANCES_PER_USER = 3
    made = at_once(lambda n: ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name=f"c{n}")))
    assert (made, AgentInstance.objects.count()) == (3, 3)


def test_files_are_limited_also_at_once(alice: User, settings: Any) -> None:
    settings.THINK_FILES_PER_USER = 3
    assert at_once(lambda n: attachments.store_bytes(alice.pk, b"text", name=f"{n}.txt")) == 3
    assert Attachment.objects.count() == 3


def test_bytes_of_files_are_limited_also_at_once(alice: User, settings: Any) -> None:
    settings.THINK_FILES_QUOTA_BYTES = 350
    assert at_once(lambda n: attachments.store_bytes(alice.pk, b"a" * 100, name=f"{n}.txt")) == 3


def test_uploads_a_minute_are_limited_also_at_once(alice: User, settings: Any) -> None:
    settings.THINK_FILES_PER_MINUTE = 3
    assert at_once(lambda n: attachments.store_bytes(alice.pk, b"text", name=f"{n}.txt")) == 3


def test_a_refused_file_leaves_no_object(alice: User, settings: Any) -> None:
    settings.THINK_FILES_PER_USER = 3
    before = stored_objects()
    at_once(lambda n: attachments.store_bytes(alice.pk, b"text", name=f"{n}.txt"))
    assert stored_objects() - before == set(Attachment.objects.values_list("storage_name", flat=True))


def stored_objects() -> set[str]:
    """What is in storage, also of other tests. The first object stored makes the folder."""
    try:
        names = object_storage().listdir(attachments.FOLDER)[1]
    except FileNotFoundError:
        names = []
    return {f"{attachments.FOLDER}/{name}" for name in names}


def test_turns_a_minute_are_limited_also_at_once(alice: User, make_instance: Make, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 3
    keys = [key_of(make_instance(alice, f"c{number}")) for number in range(WORKERS)]

    def say(number: int) -> None:
        admit(keys[number], TurnRequest(intake=Submit(message=text_message(f"q{number}", "user"))))

    assert (at_once(say), Turn.objects.count()) == (3, 3)


def test_added_messages_a_minute_are_limited_also_at_once(alice: User, make_instance: Make, settings: Any) -> None:
    settings.THINK_MESSAGES_PER_MINUTE = 3
    keys = [key_of(make_instance(alice, f"c{number}")) for number in range(WORKERS)]
    assert at_once(lambda n: add_messages(keys[n], [text_message(f"m{n}", "user")])) == 3
    assert Message.objects.count() == 3


def test_stored_messages_are_limited_also_at_once(alice: User, make_instance: Make, settings: Any) -> None:
    settings.THINK_MESSAGES_PER_USER = 5
    keys = [key_of(make_instance(alice, f"c{number}")) for number in range(WORKERS)]
    assert at_once(lambda n: add_messages(keys[n], [text_message(f"m{n}-{i}", "user") for i in range(2)])) == 2
    assert Message.objects.count() == 4


def test_imported_histories_are_limited_also_at_once(
    alice: User, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "keeps_sessions", True)
    monkeypatch.setattr(sessions, "MAX_SESSIONS", 3)
    assert conversation.session_id is not None
    exported = "".join(export_lines(conversation.session_id)).encode()
    made = at_once(lambda _: importing.import_history(conversation, BytesIO(exported)))
    assert Session.objects.filter(scope=conversation.pk).count() == 1 + made <= 3
    for _ in range(made, 2):  # of several at a time one is taken; the others may come again
        importing.import_history(conversation, BytesIO(exported))
    with pytest.raises(QuotaExceeded, match="keeps 3 histories"):
        importing.import_history(conversation, BytesIO(exported))
    assert Session.objects.filter(scope=conversation.pk).count() == 3


def test_early_answers_are_limited_also_at_once(conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_EARLY", 3)
    make_turn(conversation, status="running", finished_at=None)
    actor = Actor(user_id=conversation.owner_id, via="api")
    together(
        *[
            lambda n=n: continuation.reply_to_call(key_of(conversation), Reply(call_id=f"c{n}", output=1), actor)
            for n in range(WORKERS)
        ]
    )
    assert ToolCallRecord.objects.count() == 3


def test_bytes_of_durable_streams_are_limited_also_at_once(alice: User, settings: Any) -> None:
    """Appends of one person to several streams, and streams that are made with something in them."""
    for number in range(WORKERS):
        create_stream(alice.pk, Creation(path=f"s{number}", content_type="text/plain"))
    used, each = WORKERS * STREAM_BYTES, 1_000 + ROW_BYTES
    settings.THINK_DURABLE_STREAMS = {"bytes": used + 3 * each + each // 2}
    body = Addition(path="", content_type="text/plain", body=b"x" * 1_000)
    assert at_once(lambda n: append(alice.pk, replace(body, path=f"s{n}"))) == 3
    room = 2 * (STREAM_BYTES + each)
    settings.THINK_DURABLE_STREAMS = {"bytes": used + 3 * each + room}
    made = at_once(lambda n: create_stream(alice.pk, Creation(path=f"t{n}", body=b"x" * 1_000)))
    kept = DurableStream.objects.aggregate(total=Sum("kept_bytes"))["total"]
    assert (made, kept) == (2, used + 3 * each + room)


# --- the counter of messages -----------------------------------------------------------------------------------------


def add(client: ApiClient, instance: AgentInstance, count: int) -> Any:
    body = {"messages": [{"role": "user", "parts": [{"type": "text", "text": "more"}]} for _ in range(count)]}
    return client.send("POST", f"/instances/{instance.pk}/messages", body)


def test_too_many_added_messages_get_a_retry_time(
    as_alice: ApiClient, conversation: AgentInstance, settings: Any
) -> None:
    settings.THINK_MESSAGES_PER_MINUTE = 5
    assert [add(as_alice, conversation, 2).status_code for _ in range(3)] == [201, 201, 429]
    refused = add(as_alice, conversation, 2)
    assert (refused.json()["code"], refused["Retry-After"]) == ("quota_exceeded", "60")
    MessageCount.objects.update(minute_started_at=timezone.now() - timedelta(minutes=1))
    assert add(as_alice, conversation, 2).status_code == 201


def test_the_total_counts_what_turns_stored_and_what_was_deleted(
    as_alice: ApiClient, conversation: AgentInstance, make_instance: Make, alice: User, settings: Any
) -> None:
    settings.THINK_MESSAGES_PER_USER = 4  # two are there already
    other = make_instance(alice, "other")
    assert [add(as_alice, other, 1).status_code for _ in range(3)] == [201, 201, 429]
    as_alice.send("DELETE", f"/instances/{conversation.pk}?forever=true")
    assert add(as_alice, other, 1).status_code == 429  # not counted again at once
    MessageCount.objects.update(counted_at=timezone.now() - quota.RECOUNT_AT_LIMIT)
    assert add(as_alice, other, 1).status_code == 201


def test_the_bytes_of_messages_are_limited(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    settings.THINK_MESSAGES_QUOTA_BYTES = 600
    assert [add(as_alice, conversation, 1).status_code for _ in range(20)][-1] == 429


def test_an_import_counts_and_what_is_refused_leaves_nothing(
    alice: User, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    monkeypatch.setattr(Assistant, "keeps_sessions", True)
    assert conversation.session_id is not None
    exported = "".join(export_lines(conversation.session_id)).encode()
    settings.THINK_MESSAGES_PER_MINUTE = 2
    importing.import_history(conversation, BytesIO(exported))  # as large as it is: it fills the minute
    with pytest.raises(QuotaExceeded, match="within a minute"):
        importing.import_history(conversation, BytesIO(exported))
    settings.THINK_MESSAGES_PER_MINUTE = 0
    settings.THINK_MESSAGES_PER_USER = 5
    with pytest.raises(QuotaExceeded, match="no room"):
        importing.import_history(conversation, BytesIO(exported))
    assert (Message.objects.count(), Session.objects.count()) == (4, 2)


def test_a_submission_of_many_messages_counts_them(conversation: AgentInstance, settings: Any) -> None:
    settings.THINK_MESSAGES_PER_MINUTE = 5
    many = Program(messages=[text_message(f"m{number}", "user") for number in range(6)])
    assert conversation.owner_id is not None
    MessageCount.objects.create(owner_id=conversation.owner_id, minute_started_at=timezone.now())
    with pytest.raises(QuotaExceeded):
        admit(key_of(conversation), TurnRequest(intake=many))
    assert Turn.objects.count() == 1


def test_a_limit_of_zero_is_none(as_alice: ApiClient, conversation: AgentInstance, settings: Any) -> None:
    settings.THINK_MESSAGES_PER_MINUTE = settings.THINK_MESSAGES_PER_USER = settings.THINK_MESSAGES_QUOTA_BYTES = 0
    assert add(as_alice, conversation, 50).status_code == 201
