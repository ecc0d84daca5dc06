"""The calls of one Chat Completions answer, put together from their pieces. Does no I/O."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from chat.core.model.language_model import ModelEvent, TextWasReasoning, ToolCallDelta, ToolCallEnd, ToolCallStart
from chat.core.model.provider_data import ProviderData, is_odd
from chat.llm.adapters.call_arguments import arguments_of, is_repeated, is_same, is_whole
from chat.llm.adapters.chat_returns import ReasoningDetails, call_extras
from chat.llm.adapters.chat_wire import HalfCharacters, PlainCall
from chat.llm.adapters.spoken_calls import Tools, spoken_calls
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump


@dataclass(slots=True)
class _Call:
    """A call as far as it has arrived. Its start is held back until its name is there, which its arguments end."""

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
        self._calls: list[_Call] = []
        self._places: dict[int, _Call] = {}  # the last call of each index
        self._last_place = 0

    def __bool__(self) -> bool:
        return bool(self._calls)

    def more(self, piece: PlainCall) -> ToolCallDelta | None:
        """Take more of the arguments of a call that has begun; `None` for a piece that is something else."""
        call, text = self._places.get(piece.index), piece.function.arguments
        if call is None or not call.started or not text or text[0] == "{" or self.halves is not None:
            return None
        if piece.id and piece.id != call.wire_id:
            return None
        self._last_place = piece.index
        call.pieces.append(text)
        return ToolCallDelta(call_id=call.call_id, text=text)

    def read(self, piece: JSONObject) -> list[ModelEvent]:
        """Take a piece of a call."""
        given = piece.get("function")
        function: JSONObject = given if isinstance(given, dict) else piece
        wire_id = piece["id"] if isinstance(piece.get("id"), str) else ""
        name = function["name"] if isinstance(function.get("name"), str) else ""
        arguments = function.get("arguments")
        call = self._find_call(_index(piece.get("index")), wire_id, name, arguments)
        call.extras.update(call_extras(piece, function))
        events: list[ModelEvent] = []
        if name and not call.started:
            call.name = name if name.startswith(call.name) else call.name + name
        if arguments not in (None, ""):
            text = arguments if isinstance(arguments, str) else dump(arguments)
            if self.halves is not None:
                text = self.halves.join(call.call_id, text)
            is_shown = call.started and not is_repeated(call.pieces, text)
            call.pieces.append(text)
            if is_shown:
                events.append(ToolCallDelta(call_id=call.call_id, text=text))
        if call.name and call.pieces and not call.started:
            events.extend(self._start(call))
        return events

    def speak(self, text: str, tools: Tools) -> list[ModelEvent]:
        """Take the calls that a text is, which is none for people then."""
        events: list[ModelEvent] = []
        for place, (name, given) in enumerate(spoken_calls(text, tools)):
            events += [] if events else [TextWasReasoning()]
            events += self.read({"index": place, "function": {"name": name, "arguments": dump(given)}})
        return events

    def _find_call(self, index: int | None, wire_id: str, name: str, arguments: JSONValue) -> _Call:
        """The call that a piece belongs to. Pieces without a place belong to that of the last one."""
        place = self._last_place if index is None else index
        known = self._places.get(place)
        if known is not None and wire_id and wire_id != known.wire_id:
            known = next((call for call in self._calls if call.wire_id == wire_id), known)
        if known is None or _is_another(known, wire_id, name, arguments, is_placed=index is not None):
            known = _Call(call_id=self._new_call_id(wire_id), wire_id=wire_id)
            self._calls.append(known)
        self._places[place], self._last_place = known, place
        return known

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
        for call in self._calls:
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


def _is_another(known: _Call, wire_id: str, name: str, arguments: JSONValue, *, is_placed: bool) -> bool:
    """Whether a piece at the place of a call begins another one. One without a name never does.

    Neither places nor ids can be relied on: servers were seen that give all calls one place, and each piece a new id.
    """
    if not name or not known.name:
        return False
    has_other_id = bool(wire_id and known.wire_id and wire_id != known.wire_id)
    said = "".join(known.pieces).strip()
    text = "" if arguments is None else arguments if isinstance(arguments, str) else dump(arguments)
    if not text.strip():
        return has_other_id and (not said or is_whole([said]))
    if not said or name != known.name:
        return name != known.name
    if said == "{}":
        return has_other_id or not (wire_id or is_placed)
    if is_whole([said]):
        return has_other_id or not (said.endswith(text.strip()) or is_same(text, said))
    begins = text.startswith("{") and not text.startswith(said)
    return begins and (has_other_id or not (wire_id or is_placed))


def _index(value: JSONValue) -> int | None:
    """The place of a call, also where a server writes it as a text."""
    if isinstance(value, str):
        return int(value) if value.isdecimal() else None
    return value if isinstance(value, int) else None
