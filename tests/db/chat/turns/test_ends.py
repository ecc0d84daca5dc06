"""Whatever ends a turn, and wherever it stood: the row says when, readers are notified, and what was shown is kept."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from django.db.models import F

from chat.core.model.language_model import ModelEvent, ModelRequest
from chat.files import attachments
from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Attachment, Turn
from chat.reads.snapshots import is_final
from chat.streams.logs.log import close_logs
from chat.streams.writing import writer
from chat.think import StepContext
from chat.turns.admission.intake import Continue
from chat.turns.admission.stop import cancel_turn, clear_instance
from fibers.execution.runner import run_fiber
from fibers.models import Fiber
from fibers.process.runs import registry
from fibers.services import cancel_fiber, requeue_fiber
from fibers.testing import claim_for_test, crash_after, expire_lease, make_due, run_until_idle
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.hook_agents import HOOKS, no_hooks
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import byte_size, load

from .conftest import MakeRoom, Room, status_of, text_of
from .recovering import mortal

__all__ = ["no_hooks"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)


async def ended(room: Room, turn_id: str) -> str:
    """The status of a turn that is over in every respect."""
    turn = await room.turn(turn_id)
    assert turn.fiber.finished_at is not None
    assert turn.finished_at is not None
    assert await db(is_final, turn_id) is True
    return status_of(turn)


async def test_a_queued_turn_that_is_stopped_is_over_at_once(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit("say: one")
    await db(cancel_turn, admission.turn.pk)
    assert await ended(room, admission.turn.pk) == "aborted"


async def test_a_queued_turn_that_is_skipped_by_a_clear_is_over_at_once(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit("say: one")
    await db(clear_instance, room.key)
    assert await ended(room, admission.turn.pk) == "skipped"


async def test_a_queued_turn_whose_fiber_staff_cancelled_is_over_at_once(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit("say: one")
    assert await db(cancel_fiber, admission.turn.fiber_id) is True
    assert await ended(room, admission.turn.pk) == "aborted"


@pytest.mark.parametrize("end", ["stopped", "skipped"])
async def test_a_turn_that_was_claimed_and_had_not_begun_is_over_too(make_room: MakeRoom, end: str) -> None:
    """Its worker died before it began, so it waits to be recovered when it is stopped."""
    room = make_room()
    admission = await room.admit("say: one")
    await db(claim_for_test, admission.turn.fiber_id)
    await db(expire_lease, admission.turn.fiber_id)
    await db(cancel_turn, admission.turn.pk) if end == "stopped" else await db(clear_instance, room.key)
    await run_until_idle()
    assert await ended(room, admission.turn.pk) == ("aborted" if end == "stopped" else "skipped")


async def test_a_turn_that_is_stopped_while_it_begins_is_over(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit("say: one")
    registry.signalled(admission.turn.fiber_id)  # the cancel comes between the claim and the first line
    await run_until_idle()
    assert await ended(room, admission.turn.pk) == "aborted"


async def test_a_turn_that_finds_its_conversation_cleared_is_over(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit("say: one")
    # A clear that came between the claim and the first line, and whose cancel is still under way.
    await db(lambda: AgentInstance.objects.update(generation=F("generation") + 1))
    await run_until_idle()
    assert await ended(room, admission.turn.pk) == "skipped"
    assert room.model.requests == []


async def test_what_was_shown_is_kept_when_a_recovered_turn_is_stopped_while_it_begins(make_room: MakeRoom) -> None:
    room = make_room()
    with mortal(room, 3):
        admission = await room.admit("stream 12 words")
        await run_until_idle(recover=False)
    registry.signalled(admission.turn.fiber_id)
    await run_until_idle(skip_delays=True)
    assert await ended(room, admission.turn.pk) == "aborted"
    assert 0 < len(text_of((await room.transcript())[-1]).split()) < 12


async def test_what_was_shown_is_kept_when_the_next_attempts_cannot_begin(
    make_room: MakeRoom, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "OPEN_DELAYS_SECONDS", ())
    room = make_room()
    with mortal(room, 3):
        admission = await room.admit("stream 12 words")
        await run_until_idle(recover=False)
    redis_url, settings.REDIS_URL = settings.REDIS_URL, "unix:///nowhere/redis.sock"
    await run_until_idle()  # recovers; the stream cannot be opened
    for _ in range(3):
        await db(make_due)
        await run_fiber(admission.turn.fiber_id)
    assert (await room.turn(admission.turn.pk)).fiber.status == "failed"
    settings.REDIS_URL = redis_url
    await close_logs()
    await run_until_idle(skip_delays=True)
    assert await ended(room, admission.turn.pk) == "error"
    assert "interrupted" in (await room.turn(admission.turn.pk)).error_text
    assert 0 < len(text_of((await room.transcript())[-1]).split()) < 12


async def test_a_turn_that_staff_runs_again_is_not_over_meanwhile(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room()
    with mortal(room, 3, 0, 0):
        turn = await room.say("stream 12 words")
    assert await ended(room, turn.pk) == "error"
    assert await db(requeue_fiber, turn.fiber_id) is True
    settings.THINK_FIBER_MAX_RECOVERIES = 10
    with mortal(room, 2):
        await run_until_idle(recover=False)
    turn = await room.turn(turn.pk)
    assert (turn.finished_at, turn.error_text, turn.error_code) == (None, "", "")
    await run_until_idle(skip_delays=True)
    assert await ended(room, turn.pk) == "completed"
    assert len(text_of((await room.transcript())[-1]).split()) == 12


async def test_the_text_of_an_abandoned_continuation_stays_on_the_path(make_room: MakeRoom, settings: Any) -> None:
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room()
    await room.say("stream 12 words\nerror in stream after 5 code context_length_exceeded")
    with mortal(room, 2, 0, 0):
        turn = await room.say(Continue())
    assert await ended(room, turn.pk) == "error"
    assert [role for role, _ in await room.texts()] == ["user", "assistant", "assistant"]


@pytest.mark.parametrize("end", ["given up", "stopped"])
async def test_nothing_of_a_large_answer_is_lost_when_it_is_sealed(
    make_room: MakeRoom, settings: Any, tmp_path: Any, end: str
) -> None:
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path)}}}
    settings.THINK_FIBER_MAX_RECOVERIES = 0
    room = make_room("huge")
    with mortal(room, 3, 0, 0):
        admission = await room.admit("call tool big {} id=one\nstream 12 words")
        await run_until_idle(recover=False)
        if end == "stopped":
            registry.signalled(admission.turn.fiber_id)
        await run_until_idle(skip_delays=True)
    assert await ended(room, admission.turn.pk) == ("error" if end == "given up" else "aborted")
    answer = (await room.transcript())[-1]
    assert byte_size(answer) < 1_800_000
    [url] = set(answer["metadata"]["spilled"].values())
    original = load((await db(attachments.load_for_model, url, room.key.owner_id)).data)
    outputs = [part["output"] for part in original["parts"] if "toolCallId" in part]
    assert outputs == ["y" * 2_000_000]
    assert await db(lambda: Attachment.objects.get().instance_id) == (await room.turn(admission.turn.pk)).instance_id


async def test_an_attempt_that_only_repeats_the_end_reports_it(
    make_room: MakeRoom, caplog: pytest.LogCaptureFixture
) -> None:
    room = make_room()
    with crash_after("final"):
        turn = await room.say("error 401")
    assert await ended(room, turn.pk) == "error"
    assert turn.fiber.attempt == 2
    assert "fiber callback failed" not in caplog.text


class Deleting(ScriptedModel):
    """Deletes every conversation before its second answer."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Answer."""
        if self.requests:
            await db(lambda: AgentInstance.objects.all().delete())
        async for event in super().stream(request):
            yield event


async def test_a_turn_whose_conversation_is_gone_ends_and_stores_nothing(make_room: MakeRoom) -> None:
    room = make_room()
    admission = await room.admit('call tool add {"a": 1, "b": 2}\nsay: {result}')
    MODELS["current"] = Deleting()
    await run_until_idle()
    fiber = await db(lambda: Fiber.objects.get(pk=admission.turn.fiber_id))
    assert (fiber.status, fiber.attempt) == ("completed", 1)
    assert not await db(lambda: Turn.objects.exists())


async def test_code_that_raises_in_mid_answer_leaves_nothing_open(flexible_room: Room) -> None:
    def breaks(context: StepContext) -> None:
        if context.step_number:
            raise RuntimeError("in the middle")

    HOOKS["before_step"] = breaks
    turn = await flexible_room.say('call tool add {"a": 1, "b": 2}\nsay: Never.')
    assert await ended(flexible_room, turn.pk) == "error"
    assert (turn.fiber.lease_until, turn.fiber.worker) == (None, "")
    states = [
        part.get("state") for part in (await flexible_room.transcript())[-1]["parts"] if part["type"] != "step-start"
    ]
    assert states == ["output-available"]
    HOOKS.clear()
    assert status_of(await flexible_room.say("say: On we go.")) == "completed"
