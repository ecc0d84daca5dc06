"""Messages that people send while an answer is written: taken in between two of its steps, each exactly once.

A steering message waits as a turn of its own. The turn that runs takes it in one transaction: its row leaves the queue,
its turn ends as answered by this one, and a record holds what it said. A crash before the commit leaves it waiting, and
it is taken then or answered in its turn; after the commit each attempt finds it in the journal.
"""

from typing import Final

from django.db.models import Exists, QuerySet

from chat.core.durable_names import TURN_FIBER
from chat.core.loop.call_records import STEER_PREFIX
from chat.models import AgentInstance, Delivery, Turn
from chat.streams.writing.writer import StreamWriter
from chat.turns.admission.stop import notify_settled
from chat.turns.execution.model_input import files_in
from chat.turns.execution.prompting import Prompt
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.state.active import lane_of
from chat.turns.state.status import STEERED_REASON
from fibers.context import FiberContext
from fibers.core.states import FiberStatus
from fibers.models import Fiber
from fibers.services import cancel_fiber
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.queue import withdraw_queued
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

NOTED: Final = ("id", "parts", "metadata", "sentAt")
"""The fields of a message that its part in the answer keeps."""


class TurnSteering:
    """The steering messages of one attempt at a turn."""

    def __init__(
        self, context: FiberContext, writer: StreamWriter, facts: TurnFacts, prompt: Prompt, *, tells_time: bool
    ) -> None:
        self._context = context
        self._writer = writer
        self._facts = facts
        self._prompt = prompt
        self._tells_time = tells_time
        self.instance: AgentInstance | None = None  # as it was read before the present step

    async def take(self, number: int) -> list[JSONObject]:
        """Take in those that wait, settled with the number of the model call that reads them; again the same ones."""
        key = f"{STEER_PREFIX}{number}"
        recorded = await self._context.recorded(key)
        if recorded is not None:
            said: list[JSONObject] = recorded.value["messages"]
            return said
        if self._facts.direct_call is not None or not await db(self._look):
            return []
        taken: list[JSONObject] = []
        await self._writer.flush_cold(lambda _offsets: taken.extend(self._take(key)))
        messages: list[Message] = [{**each, "role": "user"} for each in taken]  # type: ignore[typeddict-item]
        self._prompt.add_files(await files_in(messages, self._facts.key.owner_id))
        return taken

    def _look(self) -> bool:
        """Whether any waits. It is asked with the row that the policies of the step read: no statement of its own."""
        rows = AgentInstance.objects.filter(pk=self._facts.key.instance_id)
        self.instance = rows.annotate(is_steered=Exists(self._waiting())).first()
        return self.instance is not None and bool(self.instance.is_steered)

    def _waiting(self) -> QuerySet[Turn]:
        facts = self._facts
        fibers = Fiber.objects.live_in(lane_of(facts.key.instance_id)).order_by()
        return Turn.objects.filter(
            fiber__in=fibers.filter(name=TURN_FIBER, status=FiberStatus.PENDING, cancel_requested_at=None),
            delivery=Delivery.STEER,
            session_id=facts.session_id,
            generation=facts.generation,
            started_at=None,
        )

    def _take(self, key: str) -> list[JSONObject]:
        """Take them, in the fenced transaction of the step. One whose row is locked by another is left to later.

        Two fibers are locked at once: to wait for the second could be to wait for one who waits for the first.
        """
        taken: list[JSONObject] = []
        for turn in list(self._waiting().select_related("fiber", "instance").order_by("fiber__lane_position")):
            free = Fiber.objects.filter(pk=turn.fiber_id, status=FiberStatus.PENDING)
            if not free.select_for_update(skip_locked=True).values_list("pk", flat=True):
                continue
            if not cancel_fiber(turn.fiber_id, reason=STEERED_REASON, only_at_rest=True):
                continue
            Turn.objects.filter(pk=turn.pk).update(answered_by=self._facts.turn_id)
            taken += [self._noted(said) for said in withdraw_queued(self._facts.session_id, turn.input_ids)]
            notify_settled(turn)
        if taken:
            self._context.record_in(key, {"messages": taken})
        return taken

    def _noted(self, said: Message) -> JSONObject:
        return {name: said[name] for name in NOTED if name in said and (name != "sentAt" or self._tells_time)}
