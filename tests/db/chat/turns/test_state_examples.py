"""The examples of the RFC on durable state about effects, chunks, webhooks and chat, translated, under their names.

Those about durable tools and agents run beside what they show.
"""

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import pytest
from django.http import HttpRequest
from django.test import AsyncRequestFactory

from chat.agent.base import InstanceKey
from chat.core.wire.ag_ui import AgUiEncoder, row_kind
from chat.core.wire.chunks import Chunk
from chat.effects import create_effect, create_generation_effect, create_row_call_effect
from chat.errors import TurnFailed
from chat.instance.handle import AgentHandle
from chat.stored_chunks import durable_chat, stream_to_collection
from chat.testing import worker
from chat.think import tool
from chat.webhooks.receiving import Checkpoint, RequestBound, RunnerSession, create_webhook, drain_until_idle
from fibers.effects.registered import EffectEvent, effects
from fibers.execution.recovery import sweep
from fibers.models import Fiber
from fibers.services import cancel_fiber
from fibers.testing import run_effects, run_until_idle
from tests.desk_calls import DeskCall, DeskPiece, desk_table, waiting
from tests.wake_server import SECRET, signed, wake_server
from thinkproject.kernel.aio import db

from .conftest import MakeRoom, Room

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _examples(settings: Any, transactional_db: None) -> Iterator[None]:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    with desk_table():
        yield
        for effect in effects():
            asyncio.run(effect.dispose())


@tool
async def search_database(query: str) -> dict[str, str]:
    """Search the database."""
    return {"found": query}


@tool
async def analyze_document(doc: str) -> str:
    """Analyse a document."""
    return f"{len(doc)} characters"


def change(row: DeskCall, status: str, **values: Any) -> None:
    DeskCall.objects.filter(pk=row.pk).update(status=status, **values)


async def row_of(call: DeskCall) -> tuple[str, Any]:
    await call.arefresh_from_db()
    return call.status, call.result


def instance_of(room: Room, row: DeskCall) -> InstanceKey:
    return InstanceKey(owner_id=room.key.owner_id, agent=room.key.agent, name=f"generation-{row.pk}")


# Quick start: what a new message of a person sets off


async def test_create_effect_generates_for_each_message_that_is_not_processed(make_room: MakeRoom) -> None:
    room = make_room()

    async def generate(event: EffectEvent) -> None:
        if await event.fiber.recorded("asked") is None:
            key = instance_of(room, event.row)
            await AgentHandle(key).submit_messages(event.row.args["content"], idempotency_key=event.key)
            await db(processed, event)

    def processed(event: EffectEvent) -> None:
        with event.fiber.fenced():
            change(event.row, "processed")
            event.fiber.record_in("asked", None)

    create_effect("messages.new", waiting, on_enter=generate)
    message = await DeskCall.objects.acreate(args={"content": "say: Hello."})
    await run_effects(skip_delays=True)
    assert (await row_of(message))[0] == "processed"
    said = await AgentHandle(instance_of(room, message)).messages()
    assert said[-1]["parts"][-1]["text"] == "Hello."


# Tool execution effect


async def test_create_tool_execution_effect() -> None:
    create_row_call_effect("calls", waiting, tools=[search_database, analyze_document])
    calls = [
        await DeskCall.objects.acreate(name="search_database", args={"query": "orders"}),
        await DeskCall.objects.acreate(name="analyze_document", args={"doc": "tea"}),
        await DeskCall.objects.acreate(name="unknown"),
    ]
    await run_effects()
    assert [await row_of(call) for call in calls] == [
        ("completed", {"found": "orders"}),
        ("completed", "3 characters"),
        ("failed", None),
    ]


async def test_each_environment_runs_the_tools_that_it_has() -> None:
    create_row_call_effect("server", lambda: waiting().filter(name="search_database"), tools=[search_database])
    create_row_call_effect("worker", lambda: waiting().filter(name="analyze_document"), tools=[analyze_document])
    call = await DeskCall.objects.acreate(name="analyze_document", args={"doc": "tea"})
    await run_effects()
    assert await row_of(call) == ("completed", "3 characters")
    assert [fiber.name async for fiber in Fiber.objects.all()] == ["effect:worker"]


async def test_late_arriving_results_policy() -> None:
    """The writer looks at the generation, and marks the call of a cancelled one."""

    def complete(call: Any, result: Any) -> None:
        generation = DeskCall.objects.get(name="generation")
        change(call, "cancelled") if generation.status == "cancelled" else change(call, "completed", result=result)

    await DeskCall.objects.acreate(name="generation", status="cancelled")
    create_row_call_effect("late", waiting, tools=[search_database], on_complete=complete)
    call = await DeskCall.objects.acreate(name="search_database", args={"query": "orders"})
    await run_effects()
    assert await row_of(call) == ("cancelled", None)


# Generation effect


async def test_create_generation_effect(make_room: MakeRoom) -> None:
    room = make_room()
    create_generation_effect(
        "requests",
        waiting,
        instance=lambda row: instance_of(room, row),
        prompt=lambda row: row.args["prompt"],
        on_generating=lambda row: change(row, "generating"),
        on_complete=lambda row, result: change(row, "done", result=result.content),
        on_error=lambda row, _result: change(row, "failed"),
        on_cancelled=lambda row, _result: change(row, "cancelled"),
    )
    request = await DeskCall.objects.acreate(args={"prompt": "say: Forty-two."})
    async with worker():
        async with asyncio.timeout(30):
            while (await row_of(request))[0] != "done":
                await db(sweep)  # as each worker does: the effect looks at its turn again when its pause is over
                await asyncio.sleep(0.05)  # between two sweeps
    assert await row_of(request) == ("done", "Forty-two.")


async def test_cancellation_and_cleanup() -> None:
    """A stopped fiber cancels its handler, which cleans up; `dispose` waits for it."""
    started = asyncio.Event()

    async def generate(event: EffectEvent) -> None:
        try:
            started.set()
            await asyncio.sleep(60)  # until it is stopped
        finally:
            await db(change, event.row, "cancelled")

    effect = create_effect("cancelled", waiting, on_enter=generate)
    row = await DeskCall.objects.acreate()
    running = asyncio.create_task(run_until_idle())
    async with asyncio.timeout(20):
        await started.wait()
        await db(cancel_fiber, (await Fiber.objects.aget()).pk)
        await asyncio.gather(running, effect.dispose())
    assert (await row_of(row))[0] == "cancelled"


# Streaming to collections, and the wrapper around all of it


def to_row(encoder: AgUiEncoder) -> Any:
    def transform(chunk: Chunk, index: int, generation_id: Any) -> DeskPiece:
        (event,) = encoder.encode(chunk)[-1:] or [{"type": "CUSTOM"}]
        return DeskPiece(
            answer=generation_id, number=index, kind=row_kind(event["type"]), text=str(event.get("delta", ""))
        )

    return transform


async def test_stream_to_collection_and_durable_chat(make_room: MakeRoom) -> None:
    room = make_room()
    transform = to_row(AgUiEncoder(thread_id="t", run_id="gen-123"))
    async with worker():
        result = await durable_chat(
            room.handle,
            "say: Three recent orders.",
            chunks=lambda stream: stream_to_collection(
                stream,
                DeskPiece,
                stream_id="gen-123",
                transform=transform,
                stream_field="answer",
                index_field="number",
            ),
        )
        plain = await durable_chat(room.handle, "say: No rows.")
    assert (result.content, plain.content) == ("Three recent orders.", "No rows.")
    rows = [row async for row in DeskPiece.objects.order_by("number")]
    assert [row.number for row in rows] == list(range(len(rows)))
    assert {row.answer for row in rows} == {"gen-123"}
    assert "".join(row.text for row in rows if row.kind == "text") == result.content
    assert not [row for row in rows if row.kind == "text" and not row.text]


async def test_durable_chat_with_tools_of_the_caller(make_room: MakeRoom) -> None:
    room = make_room()
    script = 'call tool search_database {"query": "orders"}\nsay: It says {result}.'
    async with worker():
        result = await durable_chat(room.handle, script, tools=[search_database])
    assert result.content == 'It says {"found":"orders"}.'


async def test_durable_chat_whose_turn_fails_keeps_the_chunks_that_came(make_room: MakeRoom) -> None:
    room = make_room()
    stored: list[Chunk] = []

    async def keep(stream: Any) -> None:
        stored.extend([chunk async for chunk in stream])

    async with worker():
        with pytest.raises(TurnFailed, match="does not accept the request"):
            await durable_chat(room.handle, "error 400", chunks=keep)
    assert stored
    assert stored[0]["type"] == "start"


# Webhook runtime modes


async def post(hook: Any, wake: dict[str, Any]) -> Any:
    body = json.dumps(wake).encode()
    headers = {"Webhook-Signature": signed(body)}
    request: HttpRequest = AsyncRequestFactory().post("/hook", body, content_type="application/json", headers=headers)
    reply = await hook.view(request)
    return reply.status_code, json.loads(reply.content)


@pytest.mark.parametrize("is_bound", [False, True])
async def test_durable_streams_webhook_runtime_modes(is_bound: bool) -> None:
    """Drain until nothing is left, within the request or after its answer; positions and the end are reported."""
    rows = ["one", "two", "three"]
    handled: list[str] = []

    async def has_more() -> bool:
        return bool(rows)

    async def cycle(_session: RunnerSession) -> bool:
        handled.append(rows.pop(0))
        return True

    async def work(session: RunnerSession) -> None:
        drained = await drain_until_idle(
            session,
            has_pending_work=has_more,
            run_cycle=cycle,
            build_checkpoint=lambda: [Checkpoint("log", str(len(handled)))],
            max_seconds=25.0,
            max_iterations=50,
        )
        await session.complete(done=drained.completed)

    with wake_server() as server:
        mode = {"mode": RequestBound(max_seconds=25.0)} if is_bound else {}
        hook = create_webhook("example", work, server=server.origin, secret=SECRET, **mode)  # type: ignore[arg-type]
        try:
            answer = await post(hook, server.wake())
            assert answer == ((200, {"done": True}) if is_bound else (202, {"accepted": True}))
            await run_until_idle()
        finally:
            hook.dispose()
        assert handled == ["one", "two", "three"]
        assert (server.state, server.acks, server.refusals) == ("idle", {"log": "3"}, [])
