"""A model whose worker dies in mid-answer."""

import asyncio
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager

from chat.core.model.language_model import ModelEvent, ModelRequest, TextDelta, ToolCallDelta
from chat.llm.scripted import ScriptedModel
from fibers.context import current_fiber
from fibers.testing import die

from .agents import MODELS
from .conftest import Room


class Mortal(ScriptedModel):
    """Its worker dies after so many pieces of text or arguments, once per entry; 0 is before anything."""

    def __init__(self, *deaths: int) -> None:
        super().__init__()
        self.deaths = list(deaths)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        left = self.deaths.pop(0) if self.deaths else None
        async for event in super().stream(request):
            if left == 0:
                await asyncio.sleep(0.06)  # what was shown reaches the log
                fiber = current_fiber()
                assert fiber is not None
                die(fiber)
            yield event
            if left is not None and isinstance(event, TextDelta | ToolCallDelta):
                left -= 1


@contextmanager
def mortal(room: Room, *deaths: int) -> Iterator[Mortal]:
    room.model = MODELS["current"] = model = Mortal(*deaths)
    yield model
