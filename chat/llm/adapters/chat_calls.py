"""The calls of one Chat Completions answer, put together from their pieces. Does no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chat.core.model.language_model import ModelEvent, ToolCallDelta, ToolCallEnd, ToolCallStart
from chat.core.model.provider_data import ProviderData, is_odd
from chat.llm.adapters.call_arguments import arguments_of, is_repeated, is_whole
from chat.llm.adapters.chat_returns import ReasoningDetails, call_extras
from chat.llm.adapters.chat_wire import HalfCharacters
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump


@dataclass(slots=True)
class _Call:
    """A call as far as it has arrived. Its start is held back until its name is known."""

    call_id: str
    wire_id: str
    name: str = ""
    started: bool = False
    pieces: list[str] = field(default_factory=list)
    extras: JSONObject = field(default_factory=dict)


class CallReader:
    """The calls as far as they have come. `halves`: joins cut characters, once there were any."""

    def __init__(self, model: str, used_call_ids: set[str]) -> None:
        """`model`: `provider/model`."""
        self.halves: HalfCharacters | None = None
        self._model = model
        self._used_ids = set(used_call_ids)
        self._calls: dict[int, _Call] = {}
        self._last_index = -1

    def __bool__(self) -> bool:
        return bool(self._calls)

    def read(self, piece: JSONObject) -> list[ModelEvent]:
        """Take a piece of a call."""
        given = piece.get("function")
        if len(piece) == 2 and self.halves is None and given and len(given) == 1:
            call = self._calls.get(piece.get("index", -1))
            text: JSONValue = given.get("arguments")
            if call is not None and call.started and type(text) is str and text and text[0] != "{":
                # Nearly every piece is this: more of the arguments of a call that has begun.
                self._last_index = piece["index"]
                call.pieces.append(text)
                return [ToolCallDelta(call_id=call.call_id, text=text)]
        function: JSONObject = given if isinstance(given, dict) else {}
        wire_id = piece["id"] if isinstance(piece.get("id"), str) else ""
        name = function["name"] if isinstance(function.get("name"), str) else ""
        arguments = function.get("arguments")
        call = self._find_call(_index(piece.get("index")), wire_id, name, arguments)
        call.extras.update(call_extras(piece, function))
        events: list[ModelEvent] = []
        if not call.started and name:
            call.name = name
            events.extend(self._start(call))
        if arguments not in (None, ""):
            text = arguments if isinstance(arguments, str) else dump(arguments)
            if self.halves is not None:
                text = self.halves.join(call.call_id, text)
            is_shown = call.started and not is_repeated(call.pieces, text)
            call.pieces.append(text)
            if is_shown:
                events.append(ToolCallDelta(call_id=call.call_id, text=text))
        return events

    def _find_call(self, index: int | None, wire_id: str, name: str, arguments: JSONValue) -> _Call:
        """The call that a piece belongs to; a new one when it names another id, or an unknown index."""
        if index is None:
            index = max(self._last_index, 0)
            last = self._calls.get(index)
            if last is not None and _is_another(last, wire_id, name, arguments):
                index = max(self._calls) + 1
        else:
            known = self._calls.get(index)
            if known is not None and wire_id and known.wire_id and wire_id != known.wire_id:
                # Some servers give every parallel call the index 0; only the ids differ.
                index = next((at for at, call in self._calls.items() if call.wire_id == wire_id), max(self._calls) + 1)
        self._last_index = index
        call = self._calls.get(index)
        if call is None:
            call = self._calls[index] = _Call(call_id=self._new_call_id(wire_id), wire_id=wire_id)
        return call

    def _new_call_id(self, wire_id: str) -> str:
        call_id = wire_id if wire_id and wire_id not in self._used_ids else new_id("call")
        self._used_ids.add(call_id)
        return call_id

    def _start(self, call: _Call) -> list[ModelEvent]:
        call.started = True
        events: list[ModelEvent] = [ToolCallStart(call_id=call.call_id, tool_name=call.name)]
        if call.pieces:
            events.append(ToolCallDelta(call_id=call.call_id, text="".join(call.pieces)))
        return events

    def end(self, details: ReasoningDetails) -> Iterator[ModelEvent]:
        """Close the calls. `details`: fields of the message that nothing else could carry."""
        for _, call in sorted(self._calls.items()):
            if not call.started:
                yield from self._start(call)
            yield self._end_call(call, details)

    def _end_call(self, call: _Call, details: ReasoningDetails) -> ToolCallEnd:
        fields: JSONObject = {"call": call.extras} if call.extras else {}
        if details:  # of the message; any of its calls may carry it
            fields["message"] = details.take()
        metadata = ProviderData(model=self._model, fields=fields).metadata() if fields or is_odd(call.call_id) else {}
        arguments = arguments_of(call.pieces)
        return ToolCallEnd(call_id=call.call_id, tool_name=call.name, arguments=arguments, provider_metadata=metadata)


def _is_another(last: _Call, wire_id: str, name: str, arguments: JSONValue) -> bool:
    """Whether a piece without an index begins another call than the last one."""
    if wire_id and last.wire_id and wire_id != last.wire_id:
        return True
    if not name or not last.started:
        return False
    return not wire_id or (is_whole(last.pieces) and arguments not in (None, "", "".join(last.pieces)))


def _index(value: JSONValue) -> int | None:
    """The place of a call, also where a server writes it as a text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else None
    return value if isinstance(value, int) else None
