"""Calls that clients answer, frame by frame: what the answering tab gets, what the others get, and late answers."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import OperationalError

from chat.instances.rows import key_of
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.reads import snapshots
from chat.realtime import commands
from chat.realtime.frame_sender import FrameSender
from fibers.testing import run_until_idle, worker
from tests.db.chat.socket_requests import RESPONSE, UPDATED, ask, frames_until_quiet, send
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.action_agents import Clerk
from tests.db.chat.turns.agents.answering import GATE, Banker
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.refunds import grant_to
from thinkproject.kernel.aio import db

pytestmark = pytest.mark.django_db(transaction=True)
Connect = Callable[[], Awaitable[Any]]
LOCATE = "call tool where {}\nsay: You are at {result}."
BOTH = 'call tool where {"n": 1}\ncall tool where {"n": 2}\nsay: Both: {results}.'
PENDING, RESUMING, NONE = (f"cf_agent_stream_{word}" for word in ("pending", "resuming", "resume_none"))


@pytest.fixture
async def connect_banker(alice: User) -> AsyncIterator[Connect]:
    MODELS["current"] = ScriptedModel()
    async with opening_sockets() as open_socket:
        yield lambda: open_socket(alice, f"{Banker.route_name()}/room")


def open_calls(found: list[dict[str, Any]]) -> list[str]:
    chunks = [json.loads(frame["body"]) for frame in found if "seq" in frame]
    return [chunk["toolCallId"] for chunk in chunks if chunk["type"] == "tool-input-available"]


async def result(socket: Any, call_id: str, output: Any = "home", *, auto: bool = True) -> None:
    await send(socket, "cf_agent_tool_result", toolCallId=call_id, toolName="where", output=output, autoContinue=auto)


async def probe(socket: Any, probe_id: str = "p1") -> None:
    await send(socket, "cf_agent_stream_resume_request", probeId=probe_id)


def state_in(frame: dict[str, Any], call_id: str) -> str:
    return next(str(part["state"]) for part in frame["message"]["parts"] if part.get("toolCallId") == call_id)


async def test_resume_during_a_continuation(connect_banker: Connect) -> None:
    """The probe right after the result waits for the continuation, and is offered it; then replay and live."""
    GATE["open"] = asyncio.Event()
    tab, other = await connect_banker(), await connect_banker()
    [call] = open_calls(await ask(tab, "call tool where {}\nwait 0 s\ncall tool linger {}\nsay: At last."))
    await frames_until(other, "done")
    await result(tab, call)
    await probe(tab)
    pending = (await frames_until(tab, PENDING))[-1]
    assert pending["probeId"] == "p1"
    async with worker():
        offer = (await frames_until(tab, RESUMING))[-1]
        assert offer["id"] == pending["id"]
        await send(tab, "cf_agent_stream_resume_ack", id=offer["id"])
        GATE["open"].set()
        replayed = [frame for frame in await frames_until(tab, "done") if frame["type"] == RESPONSE]
        assert json.loads(replayed[0]["body"])["type"] == "start"
        assert replayed[0]["replay"] is True
        assert {frame["id"] for frame in replayed} == {offer["id"]}
        live = await frames_until(other, "done")
    assert {frame["id"] for frame in live if frame["type"] == RESPONSE} == {offer["id"]}
    assert not any(frame.get("replay") for frame in live)
    kinds = [frame["type"] for frame in live]
    assert kinds[0] == UPDATED
    assert kinds[-2:] == ["cf_agent_chat_messages", RESPONSE]  # the transcript comes before the end


async def test_the_probe_of_a_tab_that_answered_one_of_two_waits(connect_banker: Connect) -> None:
    tab, other = await connect_banker(), await connect_banker()
    one, two = open_calls(await ask(tab, BOTH))
    await frames_until(other, "done")
    await result(tab, one)
    await probe(tab)
    assert "id" not in (await frames_until(tab, PENDING))[-1]
    assert state_in((await frames_until(other, UPDATED))[-1], one) == "output-available"
    await result(other, two)
    assert state_in((await frames_until(other, UPDATED))[-1], two) == "output-available"
    await run_until_idle(skip_delays=True)
    assert (await frames_until(tab, RESUMING))[-1]["id"]


async def test_a_tab_without_an_answer_learns_that_nothing_runs(connect_banker: Connect) -> None:
    tab, other = await connect_banker(), await connect_banker()
    one, _two = open_calls(await ask(tab, BOTH))
    await frames_until(other, "done")
    await result(tab, one)
    await frames_until(tab, UPDATED)
    await probe(other)
    assert (await frames_until(other, NONE))[-1]["reason"] == "idle"


async def test_an_answer_counts_although_its_tab_closes(connect_banker: Connect) -> None:
    tab, other = await connect_banker(), await connect_banker()
    [call] = open_calls(await ask(tab, LOCATE))
    await frames_until(other, "done")
    await result(tab, call)
    await frames_until(tab, UPDATED)
    await tab.disconnect()
    await run_until_idle(skip_delays=True)
    sent = await frames_until(other, "done")
    assert sent[-1]["outcome"] == "completed"
    assert "home" in sent[-2]["messages"][-1]["parts"][-1]["text"]


async def test_a_late_answer_is_corrected_for_its_sender_alone(connect_banker: Connect) -> None:
    tab, other = await connect_banker(), await connect_banker()
    [call] = open_calls(await ask(tab, LOCATE))
    await frames_until(other, "done")
    await result(tab, call, "first", auto=False)
    for socket in (tab, other):
        assert state_in((await frames_until(socket, UPDATED))[-1], call) == "output-available"
    await result(other, call, "second", auto=False)
    part = (await frames_until(other, UPDATED))[-1]["message"]["parts"][-1]
    assert part["output"] == "first"
    assert await tab.receive_nothing(timeout=0.2)


async def test_a_stream_that_goes_out_live_stops_when_it_is_offered(connect_banker: Connect) -> None:
    """A client that probes in mid-stream begins the answer afresh: what is live waits for its acknowledgement."""
    GATE["open"] = asyncio.Event()
    tab, other = await connect_banker(), await connect_banker()
    words = "call tool linger {}\nsay: At last."
    body = json.dumps({"messages": [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": words}]}]})
    async with worker():
        await send(tab, "cf_agent_use_chat_request", id="r1", init={"method": "POST", "body": body})
        while "seq" not in (await frames_until(other, RESPONSE))[-1]:
            pass
        for socket in (tab, other):
            await probe(socket)
            await frames_until(socket, RESUMING)
        GATE["open"].set()
        own = await frames_until(tab, "done")
        assert all(not frame.get("replay") for frame in own)
        sent = await frames_until(other, "done")
    assert [frame["type"] for frame in sent] == ["cf_agent_chat_messages", RESPONSE]


async def test_a_continuation_that_goes_out_live_stops_when_its_tab_probes(connect_banker: Connect) -> None:
    GATE["open"] = asyncio.Event()
    tab = await connect_banker()
    [call] = open_calls(await ask(tab, "call tool where {}\nwait 0 s\ncall tool linger {}\nsay: At last."))
    async with worker():
        await result(tab, call)
        while "seq" not in (await frames_until(tab, RESPONSE))[-1]:
            pass
        await probe(tab)
        offer = (await frames_until(tab, RESUMING))[-1]
        GATE["open"].set()
        sent = await frames_until(tab, "done")
    # The answered call's own message may be sent anew at any time.
    kinds = [frame["type"] for frame in sent if frame["type"] != "cf_agent_message_updated"]
    assert kinds == ["cf_agent_chat_messages", RESPONSE]
    assert sent[-1]["id"] == offer["id"]


@pytest.mark.parametrize("was_told", [True, False])
async def test_an_answer_between_the_last_chunk_and_the_end_is_sent_again(
    connect_banker: Connect, was_told: bool
) -> None:
    """At the end the published hooks put their own copy of the answer, without the result, in its place."""
    tab = await connect_banker()
    [call] = open_calls(await ask(tab, LOCATE))
    await result(tab, call, auto=False)
    await frames_until(tab, UPDATED)
    row = await db(Turn.objects.select_related("instance").get)
    key = key_of(row.instance)
    sent: list[dict[str, Any]] = []

    async def take(text: str) -> None:
        sent.append(json.loads(text))

    observer = FrameSender(take, key, int(row.instance.owner_id or 0))
    turn = await db(snapshots.find_turn, key, request_id="r1")
    assert turn is not None
    if was_told:
        await observer.message_updated(row.session_id, turn.assistant_id)
    await observer.end(turn)
    end = ["cf_agent_chat_messages", RESPONSE]
    assert [frame["type"] for frame in sent] == ([UPDATED, *end, UPDATED] if was_told else end)
    assert not was_told or state_in(sent[-1], call) == "output-available"


async def test_an_answer_to_no_call_sends_nothing(connect_banker: Connect) -> None:
    tab = await connect_banker()
    await result(tab, "never-asked")
    await send(tab, "cf_agent_tool_approval", toolCallId="never-asked", approved=True, autoContinue=True)
    assert await tab.receive_nothing(timeout=0.3)


@pytest.mark.parametrize(("approved", "state"), [(True, "approval-responded"), (False, "output-denied")])
async def test_approval_frames(connect_banker: Connect, approved: bool, state: str) -> None:
    tab, other = await connect_banker(), await connect_banker()
    found = await ask(tab, 'call tool pay {"amount": 5}\nsay: {result}.')
    [call] = open_calls(found)
    asked = next(chunk for chunk in map(json.loads, (f["body"] for f in found if "seq" in f)) if "approvalId" in chunk)
    assert asked["type"] == "tool-approval-request"
    await frames_until(other, "done")
    await send(tab, "cf_agent_tool_approval", toolCallId=call, approved=approved, autoContinue=True)
    for socket in (tab, other):
        assert state_in((await frames_until(socket, UPDATED))[-1], call) == state
    await run_until_idle(skip_delays=True)
    sent = await frames_until(other, "done")
    assert [state_in(frame, call) for frame in sent if frame["type"] == UPDATED] == ["output-available"] * approved
    chunks = [json.loads(frame["body"])["type"] for frame in sent if "seq" in frame]
    assert not [kind for kind in chunks if kind.startswith("tool-")]  # of an earlier message: never as a chunk


async def test_a_question_that_lasts_is_decided_after_further_messages(alice: User) -> None:
    """No message is updated before the decision, and what follows it is a message of its own at the end."""
    MODELS["current"] = ScriptedModel()
    await db(grant_to, alice.pk)
    async with opening_sockets() as open_socket:
        tab, other = [await open_socket(alice, f"{Clerk.route_name()}/room") for _ in range(2)]
        [call] = open_calls(await ask(tab, 'call tool refund {"order": "A-1", "amount": 5}\nsay: {result}.'))
        found = await ask(tab, "say: Something else.", "r2")
        found += await frames_until(other, "done") + await frames_until(other, "done")
        assert UPDATED not in [frame["type"] for frame in found]
        await send(tab, "cf_agent_tool_approval", toolCallId=call, approved=True, autoContinue=True)
        await probe(tab)
        for socket in (tab, other):
            assert state_in((await frames_until(socket, UPDATED))[-1], call) == "approval-responded"
        await run_until_idle(skip_delays=True)
        offer = (await frames_until(tab, RESUMING))[-1]
        sent = await frames_until(other, "done")
    assert {frame["id"] for frame in sent if frame["type"] == RESPONSE} == {offer["id"]}
    assert [state_in(frame, call) for frame in sent if frame["type"] == UPDATED] == ["output-available"]
    chunks = [json.loads(frame["body"]) for frame in sent if "seq" in frame]
    assert not [chunk for chunk in chunks if chunk["type"].startswith("tool-")]
    shown = [frame for frame in sent if frame["type"] == "cf_agent_chat_messages"][-1]["messages"]
    assert [message["role"] for message in shown] == ["user", "assistant", "user", "assistant", "assistant"]
    assert shown[-1]["id"] == chunks[0]["messageId"]


async def test_a_turn_of_a_continued_answer_ends_with_the_stored_copy(connect_banker: Connect) -> None:
    """Who asks to go on by a request gets the new message as stored: its own begins with a copy of the last."""
    tab = await connect_banker()
    [call] = open_calls(await ask(tab, LOCATE))
    await result(tab, call, auto=False)
    updated = (await frames_until(tab, UPDATED))[-1]["message"]
    user = {"id": "u-r1", "role": "user", "parts": [{"type": "text", "text": LOCATE}]}
    body = json.dumps({"messages": [user, updated], "trigger": "submit-message"})
    await send(tab, "cf_agent_use_chat_request", id="r2", init={"method": "POST", "body": body})
    while not await db(Turn.objects.filter(request_id="r2").exists):
        await frames_until_quiet(tab)
    await run_until_idle(skip_delays=True)
    await frames_until(tab, "done")
    mended = (await frames_until(tab, UPDATED))[-1]["message"]
    assert [part["type"] for part in mended["parts"]] == ["step-start", "text"]


async def test_a_refused_continuation_is_an_error_frame(connect_banker: Connect, settings: Any) -> None:
    tab = await connect_banker()
    [call] = open_calls(await ask(tab, LOCATE))
    settings.THINK_TURNS_PER_MINUTE = 1
    await result(tab, call)
    refused = (await frames_until(tab, "done"))[-1]
    assert (refused["error"], refused["continuation"]) == (True, True)
    assert "within a minute" in refused["body"]


async def test_unusable_client_tools_are_refused_and_change_nothing(connect_banker: Connect) -> None:
    tab = await connect_banker()
    body = json.dumps({"messages": [], "clientTools": [{"name": "two words"}]})
    await send(tab, "cf_agent_use_chat_request", id="r9", init={"method": "POST", "body": body})
    assert "is not a tool name" in (await frames_until(tab, "done"))[-1]["body"]
    assert not await db(Turn.objects.exists)


async def test_an_answer_that_cannot_be_stored_is_taken_back(
    connect_banker: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    def locked(*_args: Any, **_kwargs: Any) -> None:
        raise OperationalError("database is locked")

    tab = await connect_banker()
    [call] = open_calls(await ask(tab, LOCATE))
    monkeypatch.setattr(commands, "reply_to_call", locked)
    await result(tab, call)
    shown = (await frames_until(tab, "cf_agent_chat_messages"))[-1]["messages"]
    assert [part["state"] for part in shown[-1]["parts"] if "toolCallId" in part] == ["input-available"]
    monkeypatch.undo()
    await result(tab, call)
    assert state_in((await frames_until(tab, UPDATED))[-1], call) == "output-available"
