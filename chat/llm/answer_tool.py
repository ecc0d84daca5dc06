"""A structured answer asked for as the call of a tool made for it, and read back from that call. Pure."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextDelta,
    TextWasReasoning,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolSpec,
)
from thinkproject.kernel.jsonvalue import JSONObject, dump, load

NAME: Final = "final_answer"
_DESCRIPTION: Final = "Give the final answer. Call this once, when everything is known; do not answer in any other way."
_WRAPPED: Final = "answer"


def by_tool(request: ModelRequest) -> ModelRequest:
    """The same request without a schema and with the tool. A tool has to be called: this one, or another first."""
    schema = request.settings.response_schema
    assert schema is not None
    answer = ToolSpec(name=NAME, description=_DESCRIPTION, input_schema=_input_schema(schema))
    choice = request.tool_choice
    if choice in ("auto", "required"):
        choice = "required" if request.tools else NAME
    elif choice == "none":
        choice = NAME
    return replace(
        request,
        tools=(*request.tools, answer),
        tool_choice=choice,
        settings=replace(request.settings, response_schema=None, response_by_tool=False),
    )


def _is_object(schema: JSONObject) -> bool:
    return schema.get("type") == "object"


def _input_schema(schema: JSONObject) -> JSONObject:
    """A tool's input is an object; any other answer is put into one."""
    if _is_object(schema):
        return schema
    rest = {key: value for key, value in schema.items() if key != "$defs"}
    wrapped: JSONObject = {"type": "object", "properties": {_WRAPPED: rest}, "required": [_WRAPPED]}
    return {**wrapped, "$defs": schema["$defs"]} if "$defs" in schema else wrapped


class AnswerCalls:
    """A model's events with calls of that tool turned into text. Other text waits: beside the answer it is chatter."""

    def __init__(self, schema: JSONObject) -> None:
        self._is_wrapped = not _is_object(schema)
        self._call_ids: set[str] = set()
        self._waiting: list[ModelEvent] = []
        self._others = False
        self._answered = False

    def __call__(self, event: ModelEvent) -> Iterator[ModelEvent]:
        """The events to pass on now."""
        match event:
            case ToolCallStart(tool_name=name, call_id=call_id) if name == NAME:
                self._call_ids.add(call_id)
            case ToolCallDelta(call_id=call_id) if call_id in self._call_ids:
                pass
            case ToolCallEnd(call_id=call_id, arguments=arguments) if call_id in self._call_ids:
                if not self._answered:
                    self._answered = True
                    self._waiting = []
                    yield TextDelta(text=_unwrapped(arguments) if self._is_wrapped else arguments)
            case TextDelta():
                self._waiting.append(event)
            case TextWasReasoning():
                self._waiting = []
            case Finish():
                yield from self._flush()
                is_end = self._answered and not self._others and event.reason is FinishReason.TOOL_CALLS
                yield replace(event, reason=FinishReason.STOP) if is_end else event
            case _:
                self._others = self._others or isinstance(event, ToolCallStart)
                yield from self._flush()
                yield event

    def _flush(self) -> Iterator[ModelEvent]:
        waiting, self._waiting = self._waiting, []
        yield from waiting


def _unwrapped(arguments: str) -> str:
    try:
        value = load(arguments)
    except ValueError:
        return arguments
    return dump(value[_WRAPPED]) if isinstance(value, dict) and _WRAPPED in value else arguments
