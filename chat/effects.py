"""Effects over a developer's tables: code, tools and answers of agents for rows that enter a queryset.

For the module `durables.py` of an app. `create_effect` runs any code, `create_row_call_effect` runs tools for
rows that are calls, `create_generation_effect` has an agent answer.
"""

import itertools
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import QuerySet

from chat.agent.base import InstanceKey
from chat.agent.values.turns import MessageInput
from chat.instance.handle import AgentHandle, ChatResult
from chat.models import Turn
from chat.reads.snapshots import answer_of
from chat.turns.state.status import TurnStatus, turn_status
from fibers.context import FiberContext
from fibers.core.states import TERMINAL
from fibers.effects.declaring import EffectEvent, RowEffect, create_effect
from fibers.errors import Failed
from fibers.waits import Wait
from thinkproject.kernel.aio import call_user_code, db
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.row_calls import RowColumns, create_row_call_effect

__all__ = [
    "EffectEvent",
    "RowColumns",
    "RowEffect",
    "create_effect",
    "create_generation_effect",
    "create_row_call_effect",
]

GENERATING: Final = "generating"
ADMITTED: Final = "turn"
SETTLED: Final = "settled"
LOOK_SECONDS: Final = (1.0, 2.0, 4.0, 8.0, 15.0, 30.0)
"""Pauses between two looks at the turn; the last one repeats."""

Writer = Callable[[Any, ChatResult], object]
"""Gets the row and the result. Sync and short: it runs in the transaction that notes that it ran."""


def create_generation_effect(  # noqa: PLR0913 - one keyword for each thing an effect may declare
    name: str,
    query: Callable[[], QuerySet[Any]],
    *,
    instance: Callable[[Any], InstanceKey | Awaitable[InstanceKey]],
    prompt: Callable[[Any], MessageInput | Awaitable[MessageInput]],
    on_complete: Writer,
    on_generating: Callable[[Any], object] | None = None,
    on_error: Writer | None = None,
    on_cancelled: Writer | None = None,
    max_retries: int = 3,
) -> RowEffect:
    """Have an agent answer each row that enters `query`: a turn of the instance that `instance` gives for the row.

    **Shape:** `prompt` gives the messages of the turn. `on_generating(row)` runs before the turn is asked for;
    then exactly one of `on_complete`, `on_error` and `on_cancelled` gets the row and the result, whose `content` is
    the text of the answer. All four are sync, and run in the transaction that notes that they ran.
    **Durability:** a turn for each entry, however often processes die: it is admitted under the key of the event, and
    recovers like any other. Meanwhile the effect holds no worker: it looks at the turn after a second, then after
    growing pauses, up to half a minute. A row that is deleted meanwhile gets nothing more; its turn goes on.
    **Errors:** those of `create_effect`.
    """
    generation = _Generation(
        instance=instance,
        prompt=prompt,
        on_generating=on_generating,
        writers={TurnStatus.COMPLETED: on_complete, TurnStatus.ERROR: on_error, TurnStatus.ABORTED: on_cancelled},
    )
    return create_effect(name, query, on_enter=generation.run, max_retries=max_retries)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Generation:
    """Asks for the turns of one effect, and waits for them."""

    instance: Callable[[Any], Any]
    prompt: Callable[[Any], Any]
    on_generating: Callable[[Any], object] | None
    writers: dict[TurnStatus, Writer | None]

    async def run(self, event: EffectEvent) -> None:
        """Ask for the turn, wait until it has ended, and hand its result over; over the journal."""
        fiber = event.fiber
        if self.on_generating is not None and await fiber.recorded(GENERATING) is None:
            await db(self._note_generating, event)
        turn_id = str(await fiber.step(ADMITTED, lambda: self._admit(event)))
        if await fiber.recorded(SETTLED) is None:
            await db(self._settle, event, await _awaited(fiber, turn_id))

    async def _admit(self, event: EffectEvent) -> JSONValue:
        handle = AgentHandle(await call_user_code(self.instance, event.row))
        messages = await call_user_code(self.prompt, event.row)
        submission = await handle.submit_messages(
            messages, idempotency_key=event.key, metadata={"effect": event.effect, "row": event.object_pk}
        )
        return submission.id

    def _note_generating(self, event: EffectEvent) -> None:
        assert self.on_generating is not None
        with event.fiber.fenced():
            self.on_generating(event.row)
            event.fiber.record_in(GENERATING, None)

    def _settle(self, event: EffectEvent, result: ChatResult) -> None:
        status = TurnStatus.ABORTED if result.status is TurnStatus.SKIPPED else result.status
        writer = self.writers[status]
        with event.fiber.fenced():
            if writer is not None:
                writer(event.row, result)
            event.fiber.record_in(SETTLED, status.value)


async def _awaited(fiber: FiberContext, turn_id: str) -> ChatResult:
    """The result of a turn, or a park until the next look at it."""
    for number in itertools.count():
        wait = Wait(key=f"turn:{number}", kind="turn", seconds=LOOK_SECONDS[min(number, len(LOOK_SECONDS) - 1)])
        if await fiber.recorded(wait.step_key) is None:
            result = await db(_result_of, turn_id)
            if result is not None:
                return result
            await fiber.wait(wait)
    raise AssertionError("it counts without end")


def _result_of(turn_id: str) -> ChatResult | None:
    """The end of a turn; nothing while it goes on. Errors: `Failed` for one that was deleted with its conversation."""
    turn = Turn.objects.select_related("fiber").filter(pk=turn_id).first()
    if turn is None:
        raise Failed("turn_not_found", "the conversation was deleted before its agent had answered", is_final=True)
    if turn.fiber.status not in TERMINAL:
        return None
    return ChatResult(
        request_id=turn.request_id,
        turn_id=turn.pk,
        status=turn_status(turn.fiber.status, turn.fiber.reason),
        message=answer_of(turn.pk),
        error=turn.error_text or None,
    )
