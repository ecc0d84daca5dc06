"""A model whose call has a large result."""

from collections.abc import AsyncGenerator

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    ToolCallEnd,
    ToolCallStart,
)
from chat.llm.scripted import ScriptedModel


class Large(ScriptedModel):
    """Calls `big`, then says one word."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        if len(request.messages) == 1:
            yield ToolCallStart(call_id="c1", tool_name="big")
            yield ToolCallEnd(call_id="c1", tool_name="big", arguments="{}")
            yield Finish(reason=FinishReason.TOOL_CALLS)
            return
        yield TextDelta(text="done")
        yield Finish(reason=FinishReason.STOP)
