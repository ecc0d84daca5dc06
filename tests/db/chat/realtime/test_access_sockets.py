"""Two users, every frame: Bob's socket at Alice's address is at his own, and her ids in his frames reach nothing."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any, get_args

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.models import Session as BrowserSession
from django.utils import timezone

from chat.access import api_tokens
from chat.core.wire import frames, sdk_frames
from chat.members.services import add_member, remove_member
from chat.models import AgentInstance, Membership, Role, Turn
from chat.realtime import consumer
from tests.db.chat.access_rows import all_rows, keep
from tests.db.chat.conftest import make_turn, say, text_message
from tests.db.chat.sockets import answered, connection, cookie_of, received

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "text of alices-question"
QUESTION = {**text_message("alices-question", "user"), "parts": [{"type": "text", "text": "his own words"}]}

FRAMES: list[dict[str, Any]] = [
    {
        "type": "cf_agent_use_chat_request",
        "id": "{request_id}",
        "init": {
            "method": "POST",
            "body": json.dumps({"messages": [QUESTION], "trigger": "regenerate-message"}),
        },
    },
    {"type": "cf_agent_chat_request_cancel", "id": "{request_id}"},
    {"type": "cf_agent_chat_clear"},
    {"type": "cf_agent_chat_messages", "messages": [QUESTION]},
    {"type": "cf_agent_stream_resume_request", "probeId": "p"},
    {"type": "cf_agent_stream_resume_ack", "id": "{request_id}"},
    {"type": "cf_agent_tool_result", "toolCallId": "alices-call", "toolName": "t", "output": {}},
    {"type": "cf_agent_tool_approval", "toolCallId": "alices-call", "approved": True},
    {"type": "cf_agent_state", "state": {"taken": True}},
    {"type": "think_model_choice", "id": "{request_id}", "model_choice": {"model": "openai/gpt-5"}},
    {"type": "think_ping"},
    {"type": "rpc", "id": "1", "method": "clear", "args": []},
]

SDK_FRAMES: list[dict[str, Any]] = [
    {
        "type": "send",
        "requestId": "his",
        "id": "{instance_id}",
        "trigger": "regenerate-message",
        "messageId": "alices-answer",
        "messages": [QUESTION],
        "headers": {},
        "body": {},
    },
    {"type": "resume", "requestId": "his", "id": "{instance_id}", "headers": {}, "body": {}},
    {"type": "abort", "requestId": "{request_id}"},
]
DOORS = [("/agents/assistant/talk", frame) for frame in FRAMES]
DOORS += [("/agents/assistant/talk/chat", frame) for frame in SDK_FRAMES]


def test_every_frame_has_a_row() -> None:
    assert {type(frames.parse(json.dumps(frame))) for frame in FRAMES} == set(get_args(frames.ClientFrame))
    assert {type(sdk_frames.parse(json.dumps(frame))) for frame in SDK_FRAMES} == set(get_args(sdk_frames.SdkFrame))


@pytest.fixture
def her_turn(alice: User, make_instance: Callable[..., AgentInstance]) -> Turn:
    """Alice's running turn, in a conversation named `talk`."""
    instance = make_instance(alice, "talk", title="Private")
    say(instance, "alices-question", "alices-answer")
    return make_turn(instance, status="running", request_id="alices-request")


@pytest.fixture
def door() -> str:
    """Her address."""
    return "/agents/assistant/talk"


@pytest.fixture
async def his_socket(bob: User, her_turn: Turn, door: str) -> AsyncIterator[Any]:
    socket = connection(door, cookie=await sync_to_async(cookie_of)(bob))
    connected, _ = await socket.connect(timeout=15)
    assert connected
    yield socket
    await socket.disconnect()


@pytest.mark.parametrize(("door", "frame"), DOORS, ids=[frame["type"] for _, frame in DOORS])
async def test_his_frame_with_her_ids_reaches_nothing_of_hers(his_socket: Any, her_turn: Turn, frame: Any) -> None:
    before = await sync_to_async(all_rows)()
    text = json.dumps(frame).replace("{request_id}", her_turn.request_id)
    await his_socket.send_to(text_data=text.replace("{instance_id}", her_turn.instance_id))
    texts = await received(his_socket)
    assert SECRET not in "".join(texts)
    assert "alices-answer" not in "".join(texts)
    assert keep(before, await sync_to_async(all_rows)()) == before


READ = {"cf_agent_stream_resume_request", "cf_agent_stream_resume_ack", "think_ping", "cf_agent_chat_messages"}
WRITE = READ | {"cf_agent_use_chat_request", "cf_agent_chat_request_cancel", "cf_agent_tool_result"}
LETS = {Role.READER: READ, Role.WRITER: WRITE, Role.APPROVER: WRITE | {"cf_agent_tool_approval"}}


async def opened(user: User, turn: Turn) -> tuple[Any, str]:
    """A socket at Alice's conversation by its id, and what the handshake has shown."""
    path, query = "/agents/assistant/talk", f"instance={turn.instance_id}"
    socket = connection(path, cookie=await sync_to_async(cookie_of)(user), query=query)
    connected, _ = await socket.connect(timeout=15)
    assert connected
    return socket, "".join(await answered(socket))


@pytest.mark.parametrize("role", [Role.READER, Role.WRITER, Role.APPROVER])
async def test_a_members_frame_does_what_the_role_lets(alice: User, bob: User, her_turn: Turn, role: Role) -> None:
    await sync_to_async(add_member)(her_turn.instance, bob.username, role, by=alice.pk)
    socket, shown = await opened(bob, her_turn)
    assert her_turn.request_id in shown
    before = await sync_to_async(all_rows)()
    for frame in (frame for frame in FRAMES if frame["type"] not in LETS[role]):
        await socket.send_to(text_data=json.dumps(frame).replace("{request_id}", her_turn.request_id))
    assert "taken" not in "".join([*await answered(socket), *await received(socket)])
    assert await sync_to_async(all_rows)() == before
    assert await answered(socket) == []
    await socket.disconnect()


async def test_a_stranger_gets_the_answer_of_what_is_missing(alice: User, bob: User, her_turn: Turn) -> None:
    cookie = await sync_to_async(cookie_of)(bob)
    answers = []
    for query in (f"instance={her_turn.instance_id}", "instance=ins_unknown", "instance=%00"):
        socket = connection("/agents/assistant/talk", cookie=cookie, query=query)
        assert await socket.connect(timeout=15) == (True, None)
        answers.append(await socket.receive_output(timeout=15))
    assert answers == [{"type": "websocket.close", "code": 4404, "reason": "There is no agent of this name."}] * 3
    await sync_to_async(add_member)(her_turn.instance, bob.username, Role.READER, by=alice.pk)
    elsewhere = connection("/agents/assistant/else", cookie=cookie, query=f"instance={her_turn.instance_id}")
    assert await elsewhere.connect(timeout=15) == (True, None)
    assert await elsewhere.receive_output(timeout=15) == answers[0]


async def test_a_revoked_member_is_out_at_once(alice: User, bob: User, her_turn: Turn) -> None:
    member = await sync_to_async(add_member)(her_turn.instance, bob.username, Role.READER, by=alice.pk)
    socket, _ = await opened(bob, her_turn)
    await sync_to_async(remove_member)(her_turn.instance, member.pk)
    closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


async def test_a_revocation_that_was_not_notified_counts_at_the_next_frame(
    alice: User, bob: User, her_turn: Turn
) -> None:
    member = await sync_to_async(add_member)(her_turn.instance, bob.username, Role.READER, by=alice.pk)
    socket, _ = await opened(bob, her_turn)
    await sync_to_async(Membership.objects.filter(pk=member.pk).update)(revoked_at=timezone.now())
    await socket.send_to(text_data=json.dumps({"type": "think_ping"}))
    closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


async def test_the_handshake_shows_nothing_of_hers(his_socket: Any) -> None:
    text = "".join([*await answered(his_socket), *await received(his_socket)])
    assert "cf_agent_identity" in text
    assert SECRET not in text
    assert "alices-request" not in text


@pytest.mark.parametrize(
    ("path", "code"),
    [("/agents/assistant/talk", 4401), ("/agents/nobody/talk", 4401), ("/agents/assistant/talk/chat", 4401)],
)
async def test_an_anonymous_socket_is_closed_with_4401(her_turn: Turn, path: str, code: int) -> None:
    socket = connection(path)
    assert await socket.connect(timeout=15) == (True, None)
    closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", code)


@pytest.mark.parametrize(
    "path",
    ["/agents/nobody/x", "/agents/assistant/x/sub/child/y", "/agents/assistant/%2E%2E", "/agents/nobody/x/chat"],
)
async def test_an_unknown_address_is_closed_with_4404(bob: User, path: str) -> None:
    _row, secret = await sync_to_async(api_tokens.create_token)(bob, name="t")
    socket = connection(path, query=f"token={secret}")
    assert await socket.connect(timeout=15) == (True, None)
    closed = await socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4404)


@pytest.mark.parametrize("path", ["/agents/assistant/x", "/agents/assistant/x/chat"])
async def test_a_foreign_page_is_refused_before_accepting(bob: User, path: str) -> None:
    cookie = await sync_to_async(cookie_of)(bob)
    socket = connection(path, cookie=cookie, origin="http://evil.example")
    connected, _ = await socket.connect(timeout=15)
    assert not connected


@pytest.mark.parametrize("door", ["/agents/assistant/talk", "/agents/assistant/talk/chat"])
@pytest.mark.parametrize("change", ["deactivate", "delete", "log out"])
async def test_authority_that_ends_closes_the_socket_at_the_next_frame(
    bob: User, his_socket: Any, door: str, change: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    await received(his_socket)
    monkeypatch.setattr(consumer, "AUTHORITY_SECONDS", 0.0)  # else it is asked for at most once a second

    def end() -> None:
        match change:
            case "deactivate":
                User.objects.filter(pk=bob.pk).update(is_active=False)
            case "delete":
                bob.delete()
            case "log out":
                BrowserSession.objects.all().delete()

    await sync_to_async(end)()
    before = await sync_to_async(AgentInstance.objects.count)()
    await his_socket.send_to(text_data=json.dumps(SDK_FRAMES[0] if door.endswith("/chat") else FRAMES[0]))
    closed = await his_socket.receive_output(timeout=15)
    while closed["type"] == "websocket.send":  # what it was sent before
        closed = await his_socket.receive_output(timeout=15)
    assert (closed["type"], closed["code"]) == ("websocket.close", 4401)
    assert await sync_to_async(AgentInstance.objects.count)() == before


async def test_an_instance_whose_class_is_gone_keeps_its_socket(
    alice: User, make_instance: Callable[..., AgentInstance]
) -> None:
    relic = await sync_to_async(make_instance)(alice, "old", agent="retired")
    made = connection("/agents/retired/old", cookie=await sync_to_async(cookie_of)(alice))
    connected, _ = await made.connect(timeout=15)
    assert connected
    kinds = [json.loads(await made.receive_from(timeout=15))["type"] for _ in range(3)]
    assert kinds == ["cf_agent_chat_messages", "cf_agent_identity", "cf_agent_mcp_servers"]
    await made.send_to(json.dumps({"type": "unheard-of"}))
    assert await made.receive_nothing(timeout=0.5)  # it neither answers nor closes: a closed one would be retried
    await made.disconnect()
    assert relic.agent == "retired"


async def test_who_is_here_is_relayed_and_bounded(alice: User, bob: User, her_turn: Turn) -> None:
    await sync_to_async(add_member)(her_turn.instance, bob.username, Role.READER, by=alice.pk)
    hers = connection("/agents/assistant/talk", cookie=await sync_to_async(cookie_of)(alice), query="_frames=1")
    assert (await hers.connect(timeout=15))[0]
    await answered(hers)
    his, _ = await opened(bob, her_turn)
    before = await sync_to_async(all_rows)()
    for is_typing in (False, True, True, False):
        await his.send_to(text_data=json.dumps({"type": "think_ping", "typing": is_typing}))
    signs = [json.loads(await hers.receive_from(timeout=15)) for _ in range(2)]
    signs += [json.loads(text) for text in await received(hers)]
    sign = {"type": "think_presence", "author": str(bob.pk), "typing": False}  # a reader does not write
    assert signs == [sign, sign]  # one of each kind
    assert await sync_to_async(all_rows)() == before
    for socket in (hers, his):
        await socket.disconnect()
