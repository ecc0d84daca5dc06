"""Durable streams and subscriptions in the admin: sizes and states, nothing of what is in them; deletion asks first."""

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.durable_streams.subscriptions import put_subscription, read_wanted
from chat.durable_streams.writing import Addition, Creation, append, create_stream
from chat.models import DurableStream, StreamSubscription
from tests.db.chat.staff import staff

pytestmark = pytest.mark.django_db(transaction=True)
STREAMS = "/admin/think_chat/durablestream/"
SUBSCRIPTIONS = "/admin/think_chat/streamsubscription/"


def shown(client: Client, path: str) -> str:
    reply = client.get(path)
    assert reply.status_code == 200
    return reply.content.decode()


def act(client: Client, url: str, action: str, key: int, *, is_sure: bool) -> None:
    client.post(url, {"action": action, "_selected_action": [key], **({"confirmed": "yes"} if is_sure else {})})


@pytest.fixture
def kept_stream(alice: User) -> DurableStream:
    row, _ = create_stream(alice.pk, Creation(path="jobs/1", content_type="text/plain", body=b"her secret"))
    create_stream(alice.pk, Creation(path="branch", forked_from="jobs/1"))
    append(alice.pk, Addition(path="jobs/1", content_type="text/plain", body=b"more", closes=True))
    body = {"type": "webhook", "pattern": "jobs/*", "webhook": {"url": "https://hooks.example/a-secret-part"}}
    put_subscription(alice.pk, read_wanted("worker", body), root="https://here.example/v1/stream")
    return row


def test_what_is_in_them_is_not_shown(kept_stream: DurableStream) -> None:
    _, client = staff("view_durablestream", "view_streamsubscription")
    with CaptureQueriesContext(connection) as first:
        page = shown(client, STREAMS)
    assert "jobs/1" in page
    detail = shown(client, f"{STREAMS}{kept_stream.pk}/change/")
    row = StreamSubscription.objects.get()
    listed = shown(client, SUBSCRIPTIONS) + shown(client, f"{SUBSCRIPTIONS}{row.pk}/change/")
    assert "hooks.example" in listed
    assert "secret" not in page + detail + listed
    for number in range(3):
        create_stream(kept_stream.owner_id, Creation(path=f"more/{number}", forked_from="jobs/1"))
    with CaptureQueriesContext(connection) as second:
        shown(client, STREAMS)
    assert len(second) == len(first)


def test_deletion_asks_first_and_keeps_what_forks_need(kept_stream: DurableStream) -> None:
    user, client = staff("view_durablestream", "view_streamsubscription")
    act(client, STREAMS, "delete_streams", kept_stream.pk, is_sure=True)
    assert DurableStream.objects.get(pk=kept_stream.pk).deleted_at is None
    user.is_superuser = True
    user.save()
    act(client, STREAMS, "delete_streams", kept_stream.pk, is_sure=False)
    assert DurableStream.objects.get(pk=kept_stream.pk).deleted_at is None
    act(client, STREAMS, "delete_streams", kept_stream.pk, is_sure=True)
    assert DurableStream.objects.get(pk=kept_stream.pk).deleted_at is not None
    act(client, STREAMS, "delete_streams", DurableStream.objects.get(path="branch").pk, is_sure=True)
    assert not DurableStream.objects.exists()
    act(client, SUBSCRIPTIONS, "delete_subscriptions", StreamSubscription.objects.get().pk, is_sure=True)
    assert not StreamSubscription.objects.exists()
