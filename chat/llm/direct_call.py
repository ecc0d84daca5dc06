"""A model that makes one given call and says nothing: how a program calls a tool of an agent as a turn."""

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from typing import Final

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
)
from thinkproject.kernel.jsonvalue import JSONObject, dump

NAME: Final = "direct/call"


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectCall:
    """The call. `is_made`: it was made in the turn that this one continues, so there is nothing left to do."""

    tool: str
    input: JSONObject
    call_id: str
    is_made: bool = False

    name: str = NAME
    accepts_images: bool = True
    accepts_documents: bool = True

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:  # noqa: ARG002 - as models
        """Make the call. The same one however often it is asked."""
        if not self.is_made:
            arguments = dump(self.input)
            yield ToolCallStart(call_id=self.call_id, tool_name=self.tool)
            yield ToolCallDelta(call_id=self.call_id, text=arguments)
            yield ToolCallEnd(call_id=self.call_id, tool_name=self.tool, arguments=arguments)
        yield Finish(reason=FinishReason.STOP if self.is_made else FinishReason.TOOL_CALLS, model_name=NAME)

    def describe(self, request: ModelRequest) -> JSONObject:  # noqa: ARG002 - as models
        """Describe the call: nothing is sent anywhere."""
        return {"direct_call": {"tool": self.tool, "input": self.input}}
