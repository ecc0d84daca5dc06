"""`on_chat_error` has its say about every error that a client is sent, wherever it came from."""

import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.think import RecoveryDecision
from fibers.testing import crash_after
from tests.db.chat.sockets import connection, cookie_of, frames_until
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.hook_agents import HOOKS, seen

from .conftest import Room, status_of
from .recovering import mortal


@pytest.fixture(autouse=True)
def _rewords() -> Iterator[None]:
    HOOKS.clear()
    HOOKS["on_chat_error"] = lambda error, context: f"{context.stage}: sorry"
    yield
    HOOKS.clear()


@pytest.fixture
async def flexible_socket(flexible_room: Room, settings: Any) -> AsyncIterator[Any]:
    settings.THINK_FIBER_DISPATCH = "manual"
    alice = await User.objects.aget(username="alice")
    made = connection("/agents/flexible/room", cookie=await sync_to_async(cookie_of)(alice))
    await made.connect(timeout=15)
    await frames_until(made, "cf_agent_mcp_servers")
    yield made
    await made.disconnect()


def stages() -> list[tuple[str, bool, str]]:
    return [(ctx.stage, ctx.messages_persisted, ctx.code) for _, ctx in seen("on_chat_error")]


async def refused(socket: Any, body: str) -> dict[str, Any]:
    request = {"type": "cf_agent_use_chat_request", "id": "r1", "init": {"method": "POST", "body": body}}
    await socket.send_to(json.dumps(request))
    return (await frames_until(socket, "done"))[-1]


async def test_a_frame_that_cannot_be_parsed_fails_at_parse(flexible_socket: Any) -> None:
    frame = await refused(flexible_socket, "{this is no JSON")
    assert (frame["id"], frame["error"], frame["body"]) == ("r1", True, "parse: sorry")
    assert stages() == [("parse", False, "frame_invalid")]


async def test_a_message_that_cannot_be_stored_fails_at_persist(flexible_socket: Any, settings: Any) -> None:
    settings.THINK_TURN_POLICIES = [f"{__name__}.Nobody"]
    message = {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    frame = await refused(flexible_socket, json.dumps({"messages": [message]}))
    assert (frame["error"], frame["body"]) == (True, "persist: sorry")
    assert stages() == [("persist", False, "quota_exceeded")]


class Nobody:
    """A policy that accepts nothing."""

    def check_admission(self, instance: Any) -> None:
        from chat.errors import QuotaExceeded

        raise QuotaExceeded("Not today.")


async def test_a_failure_before_the_stream_fails_at_turn(flexible_room: Room) -> None:
    MODELS["current"] = "nobody/knows"  # type: ignore[assignment]  # any choice of a model
    turn = await flexible_room.say("say: hi")
    assert (turn.error_text, stages()) == ("turn: sorry", [("turn", False, "model_not_configured")])


@pytest.mark.parametrize(
    ("script", "kept"), [("error 400", False), ("error in stream after 1 code context_length_exceeded", True)]
)
async def test_a_failure_in_the_answer_fails_at_stream(flexible_room: Room, script: str, kept: bool) -> None:
    turn = await flexible_room.say(f"say: some words\n{script} times 9")
    assert turn.error_text == "stream: sorry"
    [(stage, persisted, _)] = stages()
    assert (stage, persisted) == ("stream", kept)


async def test_recovery_that_is_declined(flexible_room: Room) -> None:
    HOOKS["on_chat_recovery"] = lambda context: RecoveryDecision(continue_turn=False)
    with crash_after("ending"):
        turn = await flexible_room.say("say: hi")
    assert (status_of(turn), turn.error_text) == ("error", "recovery: sorry")
    assert [stage for stage, _, _ in stages()] == ["recovery"]


async def test_recovery_that_is_given_up(flexible_room: Room, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    with mortal(flexible_room, 2, 0, 0):
        turn = await flexible_room.say("stream 12 words")
    assert (status_of(turn), turn.error_text) == ("error", "recovery: sorry")
    assert stages() == [("recovery", True, "interrupted")]
    [response] = seen("on_chat_response")
    assert response.error == "recovery: sorry"


async def test_the_hook_may_return_an_error_or_nothing(flexible_room: Room) -> None:
    HOOKS["on_chat_error"] = lambda error, context: ValueError("said otherwise")
    assert (await flexible_room.say("error 401")).error_text == "said otherwise"
    HOOKS["on_chat_error"] = lambda error, context: None
    assert "refused the credentials" in (await flexible_room.say("error 401")).error_text


async def test_a_hook_that_fails_hides_nothing(flexible_room: Room) -> None:
    def broken(error: Exception, context: Any) -> str:
        raise RuntimeError("the hook broke")

    HOOKS["on_chat_error"] = broken
    assert "refused the credentials" in (await flexible_room.say("error 401")).error_text
