"""Pushes from the commit to a browser that opens them: whom they concern, when, and what ends them."""

import json
from collections.abc import Iterator
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from chat.conversations.changes import mark_seen
from chat.members.services import add_member
from chat.models import AgentInstance, NoticeChoices, NoticeKind, PushDevice, PushKey, Role, Turn
from chat.push.devices import NewDevice, add_device
from chat.push.starting import note
from fibers.models import Fiber
from fibers.testing import run_until_idle
from tests.db.chat.conftest import ApiClient, say
from tests.db.chat.http.api.questions import ask
from tests.push_service import PushedBrowser, PushService, push_service
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def service(settings: Any) -> Iterator[PushService]:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    with push_service() as running:
        yield running


def subscribed(user: User, service: PushService) -> PushedBrowser:
    browser = service.new_browser()
    add_device(
        user.pk, NewDevice(**browser.subscription(), language="en", origin="https://think.example", session_key="s")
    )
    return browser


async def delivered() -> None:
    await run_until_idle(skip_delays=True)


def decision(conversation: AgentInstance, call_id: str) -> int:
    row = ask(conversation, call_id)
    note(NoticeKind.DECISION, str(row.pk), conversation.owner_id, call=row.pk, instance_id=conversation.pk)
    return int(row.pk)


async def test_a_decision_is_pushed_to_each_device_without_its_content(
    alice: User, conversation: AgentInstance, service: PushService
) -> None:
    browsers = [await db(subscribed, alice, service) for _ in range(2)]
    await db(decision, conversation, "c1")
    await delivered()
    for browser in browsers:
        [(text, headers)] = browser.got
        turn = await Turn.objects.filter(instance=conversation).order_by("-position").afirst()
        assert turn is not None
        assert text == {
            "title": "Think",
            "body": "Your decision is needed.",
            "path": f"/c/{conversation.pk}?at={turn.assistant_id}",
            "tag": f"decision:{conversation.pk}",
        }
        assert (headers["urgency"], headers["ttl"]) == ("high", "86400")
        assert len(headers["topic"]) == 32
    assert await PushDevice.objects.filter(used_at=None).acount() == 0


async def test_news_are_noted_once_and_forgotten_when_they_are_over(
    alice: User, conversation: AgentInstance, as_alice: ApiClient, service: PushService
) -> None:
    browser = await db(subscribed, alice, service)
    await db(decision, conversation, "c1")
    refusal = {"approved": False, "continues": False}
    answered = await db(as_alice.send, "POST", f"/instances/{conversation.pk}/calls/c1/approval", refusal)
    assert answered.status_code == 200
    await delivered()
    assert browser.got == []
    row = await db(decision, conversation, "c2")
    await db(note, NoticeKind.DECISION, str(row), alice.pk, call=row, instance_id=conversation.pk)
    await delivered()
    assert len(browser.got) == 1


async def test_only_who_may_decide_is_asked(
    alice: User, bob: User, charlie: User, conversation: AgentInstance, service: PushService
) -> None:
    await db(lambda: add_member(conversation, "bob", Role.APPROVER, by=alice.pk))
    await db(lambda: add_member(conversation, "charlie", Role.READER, by=alice.pk))
    his, theirs = await db(subscribed, bob, service), await db(subscribed, charlie, service)
    await db(decision, conversation, "c1")
    await delivered()
    assert (len(his.got), len(theirs.got)) == (1, 0)


async def test_an_answer_that_was_seen_is_not_pushed(
    alice: User, conversation: AgentInstance, service: PushService
) -> None:
    browser = await db(subscribed, alice, service)
    for name in ("seen", "unseen"):
        turn = await db(say, conversation, f"q-{name}", f"a-{name}")
        await Turn.objects.filter(pk=turn.pk).aupdate(finished_at=timezone.now())
        if name == "seen":
            await db(mark_seen, conversation)
        ids: dict[str, Any] = {"user_id": alice.pk, "turn_id": turn.pk, "instance_id": conversation.pk}
        await db(partial(note, NoticeKind.ANSWER, turn.pk, alice.pk, **ids))
        await delivered()
    [(text, _headers)] = browser.got
    assert text["body"] == "An answer is ready."
    assert text["path"].endswith("?at=a-unseen")


async def test_wishes_hold_and_quiet_hours_keep_it_back(
    alice: User, conversation: AgentInstance, service: PushService
) -> None:
    browser = await db(subscribed, alice, service)
    wishes = await NoticeChoices.objects.acreate(user=alice, decision=False)
    await db(decision, conversation, "c1")
    await delivered()
    assert browser.got == []
    now = timezone.now()
    begin, end = (now - timedelta(hours=1)).time(), (now + timedelta(hours=1)).time()
    await NoticeChoices.objects.filter(pk=wishes.pk).aupdate(decision=True, quiet_from=begin, quiet_until=end)
    await db(decision, conversation, "c2")
    await delivered()
    parked = await Fiber.objects.aget(name="chat.push", status="parked")
    assert parked.parked_until is not None
    assert timedelta(minutes=58) < parked.parked_until - now < timedelta(minutes=61)
    await NoticeChoices.objects.filter(pk=wishes.pk).aupdate(quiet_from=None, quiet_until=None)
    await Fiber.objects.filter(pk=parked.pk).aupdate(parked_until=now - timedelta(seconds=1))
    await delivered()
    assert len(browser.got) == 1


async def test_a_service_that_fails_is_asked_again_and_a_device_that_is_gone_is_removed(
    alice: User, conversation: AgentInstance, service: PushService
) -> None:
    there, away = await db(subscribed, alice, service), await db(subscribed, alice, service)
    service.gone.add(away.endpoint.removeprefix(service.origin))
    service.statuses += [503, 429]
    await db(decision, conversation, "c1")
    await delivered()
    assert len(there.got) == 1
    assert [row.endpoint async for row in PushDevice.objects.all()] == [there.endpoint]


async def test_a_private_address_is_never_asked(
    alice: User, conversation: AgentInstance, service: PushService, settings: Any
) -> None:
    browser = await db(subscribed, alice, service)
    settings.THINK_MCP_PRIVATE_NETWORKS = []
    await db(decision, conversation, "c1")
    await delivered()
    assert browser.got == []
    assert await Fiber.objects.filter(name="chat.push", status="failed").acount() == 1


def test_without_devices_nothing_is_started(conversation: AgentInstance) -> None:
    decision(conversation, "c1")
    assert not Fiber.objects.filter(name="chat.notice").exists()


async def test_a_device_is_added_tested_listed_and_removed(
    as_alice: ApiClient, as_bob: ApiClient, service: PushService
) -> None:
    browser = service.new_browser()
    made = await db(as_alice.send, "POST", "/notifications/devices", browser.subscription("Firefox on Linux"))
    assert made.status_code == 201
    again = await db(as_alice.send, "POST", "/notifications/devices", browser.subscription("Firefox"))
    assert again.json()["id"] == made.json()["id"]
    at = f"/notifications/devices/{made.json()['id']}"
    for _ in range(2):
        assert (await db(as_alice.send, "POST", f"{at}/test")).status_code == 204
    await delivered()
    assert [text["body"] for text, _headers in browser.got] == ["Notifications reach this device."]
    for method, path in (("DELETE", at), ("POST", f"{at}/test")):
        assert (await db(as_bob.send, method, path)).status_code == 404
    shown = (await db(as_alice.get, "/notifications")).json()
    assert [each["name"] for each in shown["devices"]] == ["Firefox"]
    assert browser.endpoint not in json.dumps(shown)
    assert (await db(as_alice.send, "DELETE", at)).status_code == 204
    assert (await db(as_alice.get, "/notifications")).json()["devices"] == []


def test_a_device_ends_with_its_sign_in_and_moves_with_its_browser(
    as_alice: ApiClient, as_bob: ApiClient, alice: User, bob: User, service: PushService
) -> None:
    browser = service.new_browser()
    assert as_alice.send("POST", "/notifications/devices", browser.subscription()).status_code == 201
    assert as_bob.send("POST", "/notifications/devices", browser.subscription()).status_code == 201
    assert list(PushDevice.objects.values_list("user", flat=True)) == [bob.pk]
    as_alice.http.post("/sign-out/")
    assert PushDevice.objects.count() == 1
    as_bob.http.post("/sign-out/")
    assert not PushDevice.objects.exists()


@pytest.mark.parametrize(
    "change",
    [
        {"endpoint": "http://push.example/a"},
        {"endpoint": "http://127.0.0.1:9/a"},
        {"endpoint": "ftp://push.example/a"},
        {"public_key": "AAAA"},
        {"auth_secret": "AAAA"},
        {"auth_secret": "+"},
    ],
)
def test_what_no_browser_gives_is_refused(as_alice: ApiClient, change: dict[str, str], settings: Any) -> None:
    settings.THINK_MCP_PRIVATE_NETWORKS = [] if "127" in change.get("endpoint", "") else ["192.0.2.0/24"]
    body = {**PushedBrowser(endpoint="https://192.0.2.1/push").subscription(), **change}
    reply = as_alice.send("POST", "/notifications/devices", body)
    assert reply.status_code == 422, reply.content
    assert not PushDevice.objects.exists()


def test_wishes_are_changed_and_wrong_ones_refused(as_alice: ApiClient) -> None:
    wished = {"answer": False, "quiet_from": "22:00:00", "quiet_until": "07:00:00", "zone": "Europe/Berlin"}
    assert as_alice.send("PATCH", "/notifications", wished).status_code == 200
    assert as_alice.send("PATCH", "/notifications", {"schedule": False}).json() == {
        "decision": True,
        "schedule": False,
        **wished,
    }
    for wrong in ({"quiet_from": "22:00"}, {"zone": "Mars/Base"}, {"answer": None}, {"quiet_from": None}):
        assert as_alice.send("PATCH", "/notifications", wrong).status_code == 422, wrong
    off = as_alice.send("PATCH", "/notifications", {"quiet_from": None, "quiet_until": None}).json()
    assert (off["quiet_from"], off["answer"]) == (None, False)


def test_the_key_is_made_once_and_kept_unreadable(as_alice: ApiClient, as_bob: ApiClient) -> None:
    keys = {client.get("/notifications").json()["public_key"] for client in (as_alice, as_bob)}
    assert len(keys) == 1
    row = PushKey.objects.get()
    assert "PRIVATE KEY" not in row.private_key
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM think_chat_pushkey")
        assert cursor.fetchone() == (1,)
