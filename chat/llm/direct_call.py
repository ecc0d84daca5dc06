"""A model that makes given calls and says nothing: how a program calls a tool as a turn, and how commands begin."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass

from chat.core.model.language_model import (
    DIRECT_CALL,
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from thinkproject.kernel.jsonvalue import JSONObject, dump
from tools_app.core.tool_calls import ToolCall


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectCall:
    """The calls. `is_made`: they were made in the turn that this one continues, so there is nothing left to do."""

    calls: tuple[ToolCall, ...]
    is_made: bool = False

    name: str = DIRECT_CALL
    accepts_images: bool = True
    accepts_documents: bool = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:  # noqa: ARG002 - as models
        """Make the calls. The same ones however often it is asked."""
        for call in () if self.is_made else self.calls:
            arguments = dump(call.input)
            yield ToolCallStart(call_id=call.call_id, tool_name=call.tool_name)
            yield ToolCallDelta(call_id=call.call_id, text=arguments)
            yield ToolCallEnd(call_id=call.call_id, tool_name=call.tool_name, arguments=arguments)
        yield Finish(reason=FinishReason.STOP if self.is_made else FinishReason.TOOL_CALLS, model_name=DIRECT_CALL)

    def describe(self, request: ModelRequest) -> JSONObject:  # noqa: ARG002 - as models
        """Describe the calls: nothing is sent anywhere."""
        return {"direct_calls": [{"tool": call.tool_name, "input": call.input} for call in self.calls]}
