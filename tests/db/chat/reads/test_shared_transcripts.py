"""Transcripts of several connections: read once a version, and never older than what was asked for."""

import asyncio
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.reads import snapshots, transcript_windows
from chat.realtime.shared_transcripts import SharedTranscripts
from fibers.models import Fiber
from sessions_app.messages.services import queue_messages
from tests.db.chat.conftest import make_turn, say, text_message
from thinkproject.kernel.jsonvalue import load

pytestmark = pytest.mark.django_db(transaction=True)
TABS = 8


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Sessions whose window was read, in order."""
    found: list[str] = []
    read = snapshots.window_of

    def counted(session_id: str) -> Any:
        found.append(session_id)
        return read(session_id)

    monkeypatch.setattr(snapshots, "window_of", counted)
    return found


async def shown(shared: SharedTranscripts, instance: AgentInstance) -> list[list[str]]:
    found = await asyncio.gather(*(shared.current(key_of(instance)) for _ in range(TABS)))
    assert all(load(transcript.text) == transcript.messages for transcript in found)
    return [[message["id"] for message in transcript.messages] for transcript in found]


async def test_a_version_is_read_once_for_all_connections(talk: AgentInstance, reads: list[str]) -> None:
    shared = SharedTranscripts()
    for _ in range(2):
        assert await shown(shared, talk) == [["q1", "a1"]] * TABS
    assert len(reads) == 1
    await sync_to_async(say)(talk, "q2", "a2")
    assert await shown(shared, talk) == [["q1", "a1", "q2", "a2"]] * TABS
    assert len(reads) == 2


async def test_a_waiting_message_that_is_stopped_is_marked_at_once(talk: AgentInstance, reads: list[str]) -> None:
    """Nothing of the session changes when its turn is stopped."""
    assert talk.session_id is not None
    turn = await sync_to_async(make_turn)(talk, status="pending")
    await sync_to_async(queue_messages)(talk.session_id, [text_message("q2", "user")], turn_id=turn.pk)
    shared = SharedTranscripts()
    assert (await shared.current(key_of(talk))).messages[-1]["metadata"] == {"queued": True}
    await Fiber.objects.filter(pk=turn.fiber_id).aupdate(status="cancelled")
    assert (await shared.current(key_of(talk))).messages[-1]["metadata"] == {"queued": True, "stopped": True}
    assert len(reads) == 1


async def test_what_is_kept_is_bounded(talk: AgentInstance, reads: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(transcript_windows, "KEPT_CHARS", 10)
    shared = SharedTranscripts()
    for _ in range(2):
        assert len((await shared.current(key_of(talk))).messages) == 2
    assert len(reads) == 2


async def test_what_was_used_longest_ago_is_dropped_first(
    talk: AgentInstance, make_instance: Any, alice: User, reads: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    others = [await sync_to_async(make_instance)(alice, name) for name in ("second", "third")]
    for each in others:
        await sync_to_async(say)(each, "q2", "a2")
    shared = SharedTranscripts()
    size = len((await shared.current(key_of(talk))).text)
    monkeypatch.setattr(transcript_windows, "KEPT_CHARS", 2 * size + 100)
    for each in (others[0], talk, others[1]):
        await shared.current(key_of(each))
    reads.clear()
    await shared.current(key_of(talk))
    assert reads == []


async def test_a_conversation_that_does_not_exist_is_empty(talk: AgentInstance) -> None:
    await AgentInstance.objects.filter(pk=talk.pk).aupdate(name="elsewhere")
    found = await SharedTranscripts().current(key_of(talk))
    assert (found.version, found.messages, found.text) == (None, [], "[]")
