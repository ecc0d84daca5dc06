"""A model whose worker dies in mid-answer."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from chat.core.model.language_model import ModelEvent, ModelRequest, TextDelta, ToolCallDelta, UserMessage
from chat.llm.scripted import ScriptedModel
from chat.models import Turn
from chat.streams.reader import read
from fibers.context import current_fiber
from fibers.testing import die
from tests.db.chat.turns.agents.everyday import MODELS
from thinkproject.kernel.jsonvalue import load

from .conftest import Room

SECONDS = 10.0


class Mortal(ScriptedModel):
    """Its worker dies when so many pieces of text or arguments are stored, once per entry; 0 is before anything.

    `spares`: a request with this question in it is answered.
    """

    def __init__(self, *deaths: int, spares: str = "") -> None:
        super().__init__()
        self.deaths = list(deaths)
        self.spares = spares

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        left = self.deaths.pop(0) if self.deaths and not self._is_spared(request) else None
        if left is None:
            async for event in super().stream(request):
                yield event
            return
        fiber = current_fiber()
        assert fiber is not None
        due = await stored_length(fiber.fiber_id)
        async for event in super().stream(request):
            if left == 0:
                async with asyncio.timeout(SECONDS):
                    while await stored_length(fiber.fiber_id) < due:  # noqa: ASYNC110 - rows publish nothing
                        await asyncio.sleep(0.01)
                die(fiber)
            yield event
            if isinstance(event, TextDelta | ToolCallDelta):
                left -= 1
                due += len(event.text)

    def _is_spared(self, request: ModelRequest) -> bool:
        questions = [message for message in request.messages if isinstance(message, UserMessage)]
        return bool(self.spares) and any(self.spares in str(question.content) for question in questions)


async def stored_length(fiber_id: str) -> int:
    """How many characters of text and arguments the log of a fiber's turn has."""
    turn_id = await Turn.objects.values_list("pk", flat=True).aget(fiber_id=fiber_id)
    chunks = [load(record.text) for record in await read(turn_id, 0)]
    return sum(len(chunk.get("delta", "")) + len(chunk.get("inputTextDelta", "")) for chunk in chunks)


@contextmanager
def mortal(room: Room, *deaths: int, spares: str = "") -> Iterator[Mortal]:
    room.model = MODELS["current"] = model = Mortal(*deaths, spares=spares)
    yield model
