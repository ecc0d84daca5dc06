"""A message that supersedes others locks their fibers before the instance's row, as a clear does."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection, connections, transaction

from chat.instances.rows import lock_instance
from chat.models import Turn
from chat.turns.admission.admit import Admission, TurnRequest, admit
from chat.turns.admission.continuation import Replied, reply_to_call
from chat.turns.admission.intake import Submit
from chat.turns.admission.tool_answers import Reply
from fibers.services import hold_fiber
from sessions_app.core.messages.shapes import NewMessage
from tests.db.chat.turns.agents import gated  # noqa: F401 - serves the agent named below
from tests.db.chat.turns.agents.coding import sandbox_closed, script
from thinkproject.kernel.aio import db
from tools_app.calls.services import Actor

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)


def _say(room: Room) -> Admission:
    try:
        message: NewMessage = {"role": "user", "parts": [{"type": "text", "text": "say: two"}]}
        return admit(room.key, TurnRequest(intake=Submit(message=message)))
    finally:
        connections.close_all()


def _wait_until_somebody_waits() -> None:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        with connection.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
            row = cursor.fetchone()
        if row and row[0]:
            return
        threading.Event().wait(0.02)
    raise AssertionError("nobody waits for a lock")


def _hold_fiber_then_instance(room: Room) -> Admission:
    """What a clear does: while it holds the fiber a user says something, then it takes the instance."""
    turn = Turn.objects.select_related("instance").get()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert hold_fiber(turn.fiber_id)
            saying = pool.submit(_say, room)
            _wait_until_somebody_waits()
            lock_instance(turn.instance)
        return saying.result(20)


async def test_superseding_and_clearing_never_wait_for_each_other(make_room: MakeRoom) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    room = make_room("latest")
    await room.admit("say: one")
    assert (await db(_hold_fiber_then_instance, room)).is_new


def _approve(room: Room) -> Replied:
    try:
        actor = Actor(user_id=room.key.owner_id, via="api")
        return reply_to_call(room.key, Reply(call_id="one:1", is_approved=True), actor)
    finally:
        connections.close_all()


def _end_a_turn_during_a_decision(room: Room) -> Replied:
    """What the end of a turn does: while it holds the fiber a person decides, then it takes the instance."""
    turn = Turn.objects.select_related("instance").get()
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            assert hold_fiber(turn.fiber_id)
            deciding = pool.submit(_approve, room)
            _wait_until_somebody_waits()
            lock_instance(turn.instance)
        return deciding.result(20)


async def test_a_decision_about_a_call_of_code_and_its_turn_never_wait_for_each_other(make_room: MakeRoom) -> None:
    if connection.vendor == "sqlite":
        pytest.skip("SQLite has one writer at a time")
    room = make_room("coder")
    async with sandbox_closed():
        await room.say(script("await tools.send({to: 'Ann'})"))
        assert (await db(_end_a_turn_during_a_decision, room)).is_new
