"""`useChat` in another's conversation, over HTTP and the AI SDK's own socket: what each role may, and for how long."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat.instances.rows import key_of
from chat.members.services import add_member, remove_member
from chat.models import AgentInstance, Membership, Role, Turn, TurnSeen
from chat.streams.logs.log import close_logs
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import ClientArray
from tests.db.chat.sockets import connection, cookie_of
from tests.db.chat.streams.support import eventually
from tests.db.chat.use_chat import TEXT, Page, answer, asks, chunks_of, end, last_turn, problem_of, user, write
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)
DOOR = "/agents/assistant/talk"
ROLES = [Role.READER, Role.WRITER, Role.APPROVER]


class Shared:
    """Alice's conversation as Bob's page sees it."""

    def __init__(self, instance: AgentInstance, page: Page, by: User) -> None:
        self.instance, self.page, self.by = instance, page, by
        self.query = f"?instance={instance.pk}"
        self.chat, self.stream = f"{DOOR}/chat{self.query}", f"{DOOR}/chat/c/stream{self.query}"

    async def give(self, role: Role) -> Membership:
        assert self.page.user is not None
        return await db(add_member, self.instance, self.page.user.username, role, by=self.by.pk)

    async def socket(self) -> Any:
        assert self.page.user is not None
        cookie = await db(cookie_of, self.page.user)
        made = connection(f"{DOOR}/chat", cookie=cookie, query=self.query[1:])
        assert (await made.connect(timeout=15))[0]
        return made


@pytest.fixture
async def shared_page(alice: User, bob: User, make_instance: Any) -> AsyncIterator[Shared]:
    instance = await db(make_instance, alice, "talk")
    yield Shared(instance, await Page(bob).sign_in(), alice)
    await close_logs()


def frame(kind: str, **more: Any) -> str:
    return json.dumps({"type": kind, "requestId": "r1", "id": "c", "headers": {}, "body": {}, **more})


ASK = frame("send", trigger="submit-message", messages=[user("q1")])


@pytest.mark.parametrize("role", ROLES)
async def test_a_role_lets_a_page_ask_follow_and_stop(shared_page: Shared, role: Role) -> None:
    page = shared_page.page
    for reply in (await page.post(asks([user("q1")]), shared_page.chat), await page.resume(shared_page.stream)):
        assert reply.status_code == 404  # before the membership
    await shared_page.give(role)
    asked = await page.post(asks([user("q1")]), shared_page.chat)
    if role is Role.READER:
        assert problem_of(asked)[:2] == (403, "role_needed")
        assert problem_of(await page.stop(shared_page.stream))[:2] == (403, "role_needed")
        assert (await page.resume(shared_page.stream)).status_code == 204
        return
    turn = await last_turn()
    assert (turn.instance_id, turn.author) == (shared_page.instance.pk, str(page.user.pk))  # type: ignore[union-attr]
    assert json.loads((await page.stop(shared_page.stream)).content) == {"stopped": 1}
    assert (await chunks_of(asked))[-1] == {"type": "abort"}
    listed = await page.http.get(f"{DOOR}/get-messages{shared_page.query}")
    assert [message["id"] for message in listed.json()] == ["q1"]
    assert (await page.http.get(f"{DOOR}/get-messages")).json() == []  # an address without an id is one's own


@pytest.mark.parametrize("notified", [True, False])
async def test_a_page_that_is_out_is_sent_no_more(shared_page: Shared, settings: Any, notified: bool) -> None:
    """At once, and where no notification comes at the next sign of life."""
    settings.THINK_STREAM_KEEP_ALIVE_SECONDS = 60 if notified else 0.2
    member = await shared_page.give(Role.READER)
    turn = await ask_as_owner(shared_page)
    await write(turn, {"type": "start", "messageId": turn.assistant_id})
    response = await shared_page.page.resume(shared_page.stream)
    reading = asyncio.create_task(_text(response))
    await asyncio.sleep(0.2)  # so that it is read; one that is cut before its first byte shows nothing
    if notified:
        await db(remove_member, shared_page.instance, member.pk)
    else:
        await Membership.objects.filter(pk=member.pk).aupdate(revoked_at=timezone.now())
    async with asyncio.timeout(10):
        text = await reading
    assert "[DONE]" not in text
    again = await shared_page.page.resume(shared_page.stream)
    assert problem_of(again)[:2] == (404, "agent_not_found")


async def ask_as_owner(shared: Shared) -> Turn:
    hers = ClientArray(messages=[user("q1")], is_regenerate=False)
    return (await db(admit, key_of(shared.instance), TurnRequest(intake=hers))).turn


async def _text(response: Any) -> str:
    return b"".join([piece async for piece in response.streaming_content]).decode()


async def test_a_failure_is_seen_by_whom_it_was_shown(shared_page: Shared, alice: User, bob: User) -> None:
    await shared_page.give(Role.WRITER)
    response = await shared_page.page.post(asks([user("q1")]), shared_page.chat)
    await end(await last_turn(), "failed", text="It broke.")
    assert (await chunks_of(response))[-1] == {"type": "error", "errorText": "It broke."}
    assert await db(lambda: list(TurnSeen.objects.values_list("user_id", flat=True))) == [bob.pk]


async def frames_to(socket: Any, kind: str) -> list[Any]:
    """Frames up to the first of a kind."""
    found = [json.loads(await socket.receive_from(timeout=10))]
    while found[-1]["type"] != kind:
        found.append(json.loads(await socket.receive_from(timeout=10)))
    return found


async def test_a_reader_of_the_sdks_socket_follows_and_changes_nothing(shared_page: Shared) -> None:
    await shared_page.give(Role.READER)
    socket = await shared_page.socket()
    await socket.send_to(text_data=ASK)
    [refused] = await frames_to(socket, "error")
    assert refused["requestId"] == "r1"
    assert not await Turn.objects.aexists()
    turn = await ask_as_owner(shared_page)
    for kind in ("resume", "abort", "send"):  # the last one is ignored: its number is taken
        await socket.send_to(text_data=ASK if kind == "send" else frame(kind))
    await answer(turn)
    await end(turn, parts=[TEXT])
    assert [each["type"] for each in await frames_to(socket, "end")][:2] == ["start", "chunk"]
    assert not (await last_turn()).fiber.cancel_requested_at
    await socket.disconnect()


async def test_a_writer_of_the_sdks_socket_asks_and_stops(shared_page: Shared, bob: User) -> None:
    await shared_page.give(Role.WRITER)
    socket = await shared_page.socket()
    await socket.send_to(text_data=ASK)
    await eventually(Turn.objects.aexists)
    turn = await last_turn()
    assert (turn.instance_id, turn.author) == (shared_page.instance.pk, str(bob.pk))
    await socket.send_to(text_data=frame("abort"))
    assert (await frames_to(socket, "end"))[-2]["chunk"] == {"type": "abort"}
    await socket.disconnect()


async def test_a_socket_of_the_sdk_that_is_out_is_closed_at_once(shared_page: Shared) -> None:
    member = await shared_page.give(Role.WRITER)
    socket = await shared_page.socket()
    await socket.send_to(text_data=ASK)
    await eventually(Turn.objects.aexists)
    await db(remove_member, shared_page.instance, member.pk)
    while (output := await socket.receive_output(timeout=15))["type"] == "websocket.send":
        pass
    assert (output["type"], output["code"]) == ("websocket.close", 4404)


async def test_a_strangers_socket_of_the_sdk_is_closed(shared_page: Shared) -> None:
    socket = await shared_page.socket()
    closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)
