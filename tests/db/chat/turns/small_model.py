"""A model for the small questions besides the turns: titles, and summaries for people."""

from collections.abc import AsyncGenerator
from typing import Any

from chat.core.model.language_model import Finish, FinishReason, ModelEvent, ModelRequest, TextDelta, Usage
from chat.errors import ModelError


class SmallModel:
    """Says what it is asked to, after its errors, and keeps what it was asked. A million tokens go in each time."""

    accepts_images = False
    accepts_documents = False

    def __init__(self, name: str, says: str) -> None:
        self.name = name
        self.says = says
        self.errors: list[ModelError] = []
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        if self.errors:
            raise self.errors.pop(0)
        yield TextDelta(text=self.says)
        yield Finish(reason=FinishReason.STOP, usage=Usage(input_tokens=1_000_000), model_name=self.name)

    def describe(self, request: ModelRequest) -> dict[str, Any]:
        return {"messages": len(request.messages)}

    @property
    def asked(self) -> list[str]:
        """What it was asked, as text."""
        return [str(request.messages) for request in self.requests]
