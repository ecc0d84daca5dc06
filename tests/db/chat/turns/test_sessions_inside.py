"""Several histories in one instance: rows A3 of the reference, through the methods that agents and handles have."""

from typing import Any

import pytest

from chat.errors import InputInvalid
from chat.http.usechat.posts import stop_turns
from chat.instances.rows import find_instance
from chat.models import AgentInstance, StreamSegment, Turn
from chat.reads import transcripts
from chat.testing import worker
from chat.turns.admission.stop import clear_instance
from fibers.testing import run_until_idle
from sessions_app.errors import SessionNotFound
from sessions_app.models import Message, Session
from tests.db.chat.turns.agents.gated import gate, reached
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room, status_of

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def several_room(make_room: MakeRoom) -> Room:
    return make_room("several")


async def said(room: Room, *texts: str) -> str:
    """A history in which these were said; its id."""
    made = await room.handle.create_session(texts[0])
    for text in texts:
        await room.say(f"say: {text}")
    return made.id


async def shown(room: Room) -> list[str]:
    return [text for _role, text in await room.texts()]


async def test_a_new_history_is_current_and_empty(several_room: Room) -> None:
    await several_room.say("say: before")
    made = await several_room.handle.create_session("Second")
    assert (made.name, made.is_current, made.message_count) == ("Second", True, 0)
    assert await several_room.handle.get_current_session_id() == made.id
    assert await shown(several_room) == []
    await several_room.say("say: in the second")
    assert await shown(several_room) == ["say: in the second", "in the second"]


async def test_switching_changes_the_current_session(several_room: Room) -> None:
    first, _second = await said(several_room, "one"), await said(several_room, "two")
    history = await several_room.handle.switch_session(first)
    assert [message["parts"][-1]["text"] for message in history] == ["say: one", "one"]
    assert await shown(several_room) == ["say: one", "one"]
    with pytest.raises(SessionNotFound, match="There is no history 'nope'"):
        await several_room.handle.switch_session("nope")
    assert await several_room.handle.get_current_session_id() == first


async def test_listed_by_the_newest_change(several_room: Room) -> None:
    first, second = await said(several_room, "one"), await said(several_room, "two")
    assert [(kept.id, kept.is_current) for kept in await several_room.handle.get_sessions()] == [
        (second, True),
        (first, False),
    ]
    await several_room.handle.switch_session(first)
    await several_room.say("say: again")
    assert [(kept.id, kept.message_count) for kept in await several_room.handle.get_sessions()] == [
        (first, 4),
        (second, 2),
    ]


async def test_deleting_the_current_one_leaves_none(several_room: Room) -> None:
    kept, gone = await said(several_room, "kept"), await said(several_room, "gone")
    await several_room.handle.delete_session(gone)
    assert (
        await several_room.handle.get_current_session_id(),
        await several_room.handle.get_session(),
        await shown(several_room),
    ) == (
        None,
        None,
        [],
    )
    assert [found.id for found in await several_room.handle.get_sessions()] == [kept]
    assert not await Turn.objects.filter(session_id=gone).aexists()
    assert not await Message.objects.filter(session_id=gone).aexists()
    streams = {turn async for turn in Turn.objects.values_list("pk", flat=True)}
    assert {s async for s in StreamSegment.objects.values_list("stream", flat=True)} <= streams
    with pytest.raises(SessionNotFound):
        await several_room.handle.delete_session(gone)
    await several_room.say("say: anew")  # the first message makes the next one
    assert await shown(several_room) == ["say: anew", "anew"]
    assert len(await several_room.handle.get_sessions()) == 2


async def test_a_session_is_renamed(several_room: Room) -> None:
    first = await said(several_room, "one")
    await several_room.handle.rename_session(first, "Other")
    assert [kept.name for kept in await several_room.handle.get_sessions()] == ["Other"]
    with pytest.raises(SessionNotFound):
        await several_room.handle.rename_session("nope", "x")


async def test_clear_keeps_the_history_and_the_others(several_room: Room) -> None:
    first, second = await said(several_room, "one"), await said(several_room, "two")
    await several_room.handle.clear_messages()
    assert [(kept.id, kept.message_count) for kept in await several_room.handle.get_sessions()] == [
        (second, 0),
        (first, 2),
    ]


async def test_before_the_first_message(several_room: Room) -> None:
    handle = several_room.handle
    assert (await handle.get_current_session_id(), await handle.get_session()) == (None, None)
    assert (await handle.get_history(), await handle.get_message_count(), await handle.get_sessions()) == ([], 0, [])
    await handle.clear_messages()
    assert await db(find_instance, several_room.key) is None
    made = await handle.create_session("First")
    assert [kept.id for kept in await handle.get_sessions()] == [made.id]
    turn = await several_room.say("say: one")
    await handle.add_messages(
        [{"role": "assistant", "parts": [{"type": "text", "text": "b"}]}], parent=turn.input_ids[0]
    )
    assert (await handle.get_message_count(), len(await handle.get_history())) == (3, 2)
    assert [m["id"] for m in await handle.get_history(turn.assistant_id)] == [turn.input_ids[0], turn.assistant_id]


async def test_the_chosen_one_is_stored(several_room: Room) -> None:
    first, _second = await said(several_room, "one"), await said(several_room, "two")
    await several_room.handle.switch_session(first)
    assert await AgentInstance.objects.values_list("session_id", flat=True).aget() == first


async def test_what_runs_in_one_is_left_alone_by_the_others(several_room: Room) -> None:
    """Clearing and deleting other histories neither stops it nor keeps its answer from being stored."""
    first, gone = await said(several_room, "one"), await said(several_room, "gone")
    await several_room.handle.switch_session(first)
    async with worker(), gate() as opened:
        running = (await several_room.admit("say: slow")).turn
        await reached()
        other = await several_room.handle.create_session("other")
        assert await shown(several_room) == []
        waiting = (await several_room.admit("say: waits")).turn
        await db(clear_instance, several_room.key)
        await several_room.handle.delete_session(gone)
        opened.set()
        await several_room.handle.wait_until_stable(10)
    assert [status_of(await several_room.turn(turn.pk)) for turn in (running, waiting)] == ["completed", "skipped"]
    assert (await several_room.handle.get_current_session_id(), await shown(several_room)) == (other.id, [])
    await several_room.handle.switch_session(first)
    assert await shown(several_room) == ["say: one", "one", "say: slow", "slow"]


async def test_a_turn_that_waits_survives_the_clearing_of_another_history(several_room: Room) -> None:
    first = await said(several_room, "one")
    turn = (await several_room.admit("say: waits")).turn
    await several_room.handle.create_session("other")
    await db(clear_instance, several_room.key)
    await run_until_idle(skip_delays=True)
    assert status_of(await several_room.turn(turn.pk)) == "completed"
    await several_room.handle.switch_session(first)
    assert await shown(several_room) == ["say: one", "one", "say: waits", "waits"]


async def test_deleting_a_history_stops_what_runs_in_it(several_room: Room) -> None:
    kept = await said(several_room, "kept")
    async with worker(), gate() as opened:
        gone = await several_room.handle.create_session("gone")
        await several_room.admit("say: slow")
        await reached()
        await several_room.handle.switch_session(kept)
        await several_room.handle.delete_session(gone.id)
        opened.set()
        await several_room.handle.wait_until_stable(10)
    assert await shown(several_room) == ["say: kept", "kept"]
    assert not await Message.objects.exclude(session_id=kept).aexists()


async def test_only_turns_of_the_same_history_are_superseded(make_room: MakeRoom) -> None:
    room = make_room("several-latest")
    first = (await room.admit("say: one")).turn
    await room.handle.create_session("other")
    second, last = (await room.admit("say: two")).turn, (await room.admit("say: three")).turn
    await run_until_idle(skip_delays=True)
    statuses = [status_of(await room.turn(turn.pk)) for turn in (first, second, last)]
    assert statuses == ["completed", "skipped", "completed"]


async def test_a_page_stops_what_it_shows(several_room: Room) -> None:
    await said(several_room, "one")
    hidden = (await several_room.admit("say: hidden")).turn
    await several_room.handle.create_session("other")
    seen = (await several_room.admit("say: seen")).turn
    assert await db(lambda: stop_turns(find_instance(several_room.key))) == 1
    await run_until_idle(skip_delays=True)
    assert [status_of(await several_room.turn(turn.pk)) for turn in (hidden, seen)] == ["completed", "aborted"]


async def test_a_class_with_a_single_session_refuses_others(make_room: MakeRoom) -> None:
    room = make_room("plain")
    await room.say("say: one")
    current = await room.handle.get_current_session_id()
    assert current is not None
    methods: list[Any] = [
        room.handle.create_session("x"),
        room.handle.switch_session(current),
        room.handle.delete_session(current),
    ]
    for method in methods:
        with pytest.raises(InputInvalid, match="keeps one history"):
            await method
    await room.handle.rename_session(current, "Named")
    assert [(kept.name, kept.message_count) for kept in await room.handle.get_sessions()] == [("Named", 2)]
    await room.handle.clear_messages()
    assert await room.handle.get_history() == []
    assert await Session.objects.acount() == 1


async def test_the_transcript_of_each_has_its_own_turns(several_room: Room) -> None:
    first, _ = await said(several_room, "one"), await said(several_room, "two")
    instance = await db(find_instance, several_room.key)
    assert instance is not None
    instance.session_id = first
    view = await db(transcripts.transcript, lambda: instance)
    assert [message.message.role for message in view.messages] == ["user", "assistant"]
