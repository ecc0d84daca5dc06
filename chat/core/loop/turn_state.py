"""The assistant message of a running turn: wraps the one accumulator with the loop's queries.

Everything the loop decides on (is a step open, which calls wait for a result, which text part is open) is read off the
folded chunks. A recovered turn feeds the log in first and is then exactly where the lost worker was.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

from chat.core.loop.hooks import StepRecord
from chat.core.loop.seam import Joined, Joiner, Seam
from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    Prefilled,
    ReasoningDelta,
    RetryNotice,
    Spent,
    TextDelta,
    TextEnd,
    TextWasReasoning,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    Usage,
)
from chat.core.model.provider_data import KEY
from chat.core.wire import chunks
from chat.core.wire.accumulator import Accumulator
from chat.core.wire.chunks import Chunk
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import CALLED_BY, OURS, Message, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.call_check import CheckedCall
from tools_app.core.deferral import WrappedCall
from tools_app.core.tool_calls import ToolCall

Clock: TypeAlias = Callable[[], datetime]
"""Tells the time."""

Unwrap: TypeAlias = Callable[[str, str], WrappedCall | None]
"""Gives the call that a call of this name and with these arguments makes through another tool, if it is one."""

_MILLISECOND: Final = timedelta(milliseconds=1)
_PENDING_STATES = {ToolState.INPUT_AVAILABLE}
_OPEN_STATES = {*_PENDING_STATES, ToolState.APPROVAL_REQUESTED}


class TurnState:
    """Fold chunks one by one; read the message and the framing at any time."""

    def __init__(self, assistant_id: str) -> None:
        self._accumulator = Accumulator({"id": assistant_id, "role": "assistant", "parts": []})
        self.started = False
        self.finished = False
        self.step_is_open = False
        self.steps_started = 0
        self.open_text_id: str | None = None
        self.open_reasoning_id: str | None = None
        self._ids = 0

    @classmethod
    def of(cls, message: Message) -> "TurnState":
        """The state of a stored answer, for what its steps were."""
        state = cls(message["id"])
        state._accumulator = Accumulator(message)
        return state

    def apply(self, chunk: Chunk) -> None:
        """Take the next chunk of the log. Constant cost per chunk."""
        self._accumulator.apply(chunk)
        kind = chunk["type"]
        if kind == "text-start":
            self.open_text_id = chunk["id"]
            self._ids += 1
        elif kind == "text-end":
            self.open_text_id = None
        elif kind == "reasoning-start":
            self.open_reasoning_id = chunk["id"]
            self._ids += 1
        elif kind == "reasoning-end":
            self.open_reasoning_id = None
        elif kind == "start":
            self.started = True
        elif kind == "finish":
            self.finished = True
        elif kind == "start-step":
            self.step_is_open = True
            self.steps_started += 1
        elif kind == "finish-step":
            self.step_is_open = False

    @property
    def message(self) -> Message:
        """The message so far."""
        return self._accumulator.message

    def new_part_id(self) -> str:
        """Id for the next text or reasoning part: the same after a replay of the same chunks."""
        return f"p{self._ids}"

    def _step_parts(self, index: int = -1) -> list[Part]:
        """Parts of one step, the last one by default."""
        parts = self.message["parts"]
        starts = [i for i, part in enumerate(parts) if part["type"] == "step-start"]
        if not starts:
            return parts
        begin = starts[index]
        return parts[begin + 1 : next((start for start in starts if start > begin), None)]

    def message_before_step(self) -> Message:
        """The message as it was when the last step began."""
        parts = self.message["parts"]
        begin = max((i for i, part in enumerate(parts) if part["type"] == "step-start"), default=0)
        return {**self.message, "parts": parts[:begin]}

    def step_text(self, index: int = -1) -> str:
        """The text of a step."""
        return "".join(part["text"] for part in self._step_parts(index) if part["type"] == "text")

    @property
    def last_step_called_tools(self) -> bool:
        """Whether the last step made any tool call, broken ones included."""
        return any("toolCallId" in part for part in self._step_parts())

    @property
    def waits_for_answers(self) -> bool:
        """Whether calls of the last step wait for a client's result or a person's decision."""
        return any(
            part.get("state") in _OPEN_STATES and not part.get("providerExecuted") for part in self._step_parts()
        )

    def unsettled_calls(self) -> list[ToolCall]:
        """Calls with a complete input and no result yet, in the order the model made them."""
        return [
            ToolCall(call_id=part["toolCallId"], tool_name=_tool_name(part), input=part["input"])
            for part in self._step_parts()
            if (part.get("state") in _PENDING_STATES or part.get("preliminary")) and not part.get("providerExecuted")
        ]

    def calls_up_to(self, call_id: str) -> list[list[ToolCall]]:
        """Calls with a complete input by step, in the order the model made them, up to this one."""
        steps: list[list[ToolCall]] = [[]]
        for part in self.message["parts"]:
            if part["type"] == "step-start":
                steps.append([])
            elif "toolCallId" in part and isinstance(part.get("input"), dict):
                call = ToolCall(call_id=part["toolCallId"], tool_name=_tool_name(part), input=part["input"])
                steps[-1].append(call)
                if call.call_id == call_id:
                    break
        return steps

    def sealing_chunks(self) -> list[Chunk]:
        """Chunks that close an interrupted step: partial calls become input errors, and what is open without any stays.

        Text and reasoning go on in the same part, where the model takes them up.
        """
        sealing: list[Chunk] = []
        if self.open_reasoning_id is not None and self.last_step_called_tools:
            sealing.append(chunks.reasoning_end(self.open_reasoning_id))
        sealing.extend(
            chunks.tool_input_error(part["toolCallId"], _tool_name(part), part.get("input") or {}, call_texts.INPUT_CUT)
            for part in self._step_parts()
            if part.get("state") == ToolState.INPUT_STREAMING
        )
        if self.open_text_id is not None and self.last_step_called_tools:
            sealing.append(chunks.text_end(self.open_text_id))
        return sealing

    def open_text(self, kind: Literal["text", "reasoning"] = "text") -> str:
        """The text or the reasoning that is still open, as far as it has come; empty when none is."""
        open_id = self.open_text_id if kind == "text" else self.open_reasoning_id
        if open_id is None:
            return ""
        return next((part["text"] for part in reversed(self.message["parts"]) if part["type"] == kind), "")

    def seam_mark(self, at: datetime, *, replaced: str = "") -> Chunk | None:
        """The mark of the place where the open text goes on after it was cut; nothing when there is none."""
        text = self.open_text()
        return chunks.resumed(at, text, self.open_text_id or "", replaced=replaced) if text else None

    def message_at(self, seam: Seam) -> Message:
        """The message for a model that is to go on at a seam of the open text: without the word that was cut."""
        message = self.message
        if seam.tail:
            part = next(part for part in reversed(message["parts"]) if part["type"] == "text")
            part["text"] = seam.base
        return message

    @property
    def reasoning_metadata(self) -> JSONObject:
        """The provider's metadata of the last reasoning part."""
        parts = reversed(self.message["parts"])
        return next((part.get("providerMetadata") or {} for part in parts if part["type"] == "reasoning"), {})

    def step_record(self, *, request_id: str, number: int, settled: JSONObject) -> StepRecord:
        """Describe a step whose model call is settled, for hooks. `settled` is its record in the journal."""
        parts = self._step_parts(number)
        return StepRecord(
            request_id=request_id,
            step_number=number,
            text=self.step_text(number),
            reasoning="".join(part["text"] for part in parts if part["type"] == "reasoning"),
            tool_calls=tuple(
                {"toolCallId": part["toolCallId"], "toolName": _tool_name(part), "input": part.get("input")}
                for part in parts
                if "toolCallId" in part
            ),
            tool_results=self.step_results(number),
            files=tuple(part for part in parts if part["type"] in {"file", "reasoning-file"}),
            sources=tuple(part for part in parts if part["type"].startswith("source-")),
            finish_reason=settled.get("finish") or FinishReason.ERROR.value,
            usage=Usage(**settled.get("usage") or {}),
            model_name=settled.get("model_name") or "",
            warnings=tuple(settled.get("warnings") or ()),
            response={"id": settled["response_id"], "model": settled["model_name"]} if "response_id" in settled else {},
            provider_metadata=settled.get("provider_metadata") or {},
        )

    def step_results(self, index: int = -1) -> tuple[JSONObject, ...]:
        """Settled results of a step, the last one by default."""
        return tuple(
            {
                "toolCallId": part["toolCallId"],
                "toolName": _tool_name(part),
                "output": part.get("output", part.get("errorText")),
                "isError": part["state"] == ToolState.OUTPUT_ERROR,
            }
            for part in self._step_parts(index)
            if part.get("state") in {ToolState.OUTPUT_AVAILABLE, ToolState.OUTPUT_ERROR}
        )


def _tool_name(part: Part) -> str:
    return str(part.get("toolName") or part["type"].removeprefix("tool-"))


class EventTranslator:
    """A model's events as chunks: opens and closes parts, checks calls. One per model call."""

    def __init__(
        self,
        fold: TurnState,
        check: Callable[[str, str], CheckedCall],
        *,
        repair: Callable[[str], str],
        send_reasoning: bool,
        titles: Mapping[str, str],
        clock: Clock,
    ) -> None:
        """`titles`: names of tools for people, by the names for models. `repair`: the name that a model meant."""
        self.shown = False  # whether anything a reader can see was emitted
        self.spent: list[Spent] = []  # on attempts that gave no answer
        self._fold = fold
        self._check = check
        self._repair = repair
        self._unwrap: Unwrap = lambda _name, _arguments: None
        self._held: set[str] = set()  # ids of calls through another tool
        self._send_reasoning = send_reasoning
        self._titles = titles
        self._clock = clock
        self._thinks_since: datetime | None = None  # nothing where the reasoning began in an earlier attempt
        # Text and reasoning left open by a sealed step: the continued answer goes on in the same parts.
        self._inherited_text_id = fold.open_text_id
        self._joiner: Joiner | None = None
        thought = fold.open_text("reasoning")
        self._thought_joiner = Joiner(Seam.of(thought, begins_anew=True)) if thought else None

    def see_through(self, unwrap: Unwrap) -> None:
        """Show calls that are made through another tool as calls of their own, once they are whole."""
        self._unwrap = unwrap

    def take_up(self, seam: Seam) -> None:
        """Join what the model says to a text that was cut, at this seam."""
        self._joiner = Joiner(seam) if seam.shown else None

    @property
    def has_taken_up(self) -> bool:
        """Whether anything was shown, or the model has said what may be a repetition."""
        joiners = (self._joiner, self._thought_joiner)
        return self.shown or any(joiner is not None and joiner.has_heard for joiner in joiners)

    def __call__(self, event: ModelEvent) -> Iterator[Chunk]:
        """Chunks for one event. The caller folds each before it asks for the next."""
        match event:
            case TextDelta(text=text):
                return self._text(text)
            case ReasoningDelta():
                return self._reasoning(event)
            case TextEnd(provider_metadata=metadata):
                return self._text_end(metadata)
            case TextWasReasoning():
                return self._text_end({OURS: {"wasThought": True}})  # who folds the stream has reasoning from then on
            case ToolCallStart(call_id=call_id, tool_name=name):
                return self._call_start(call_id, name)
            case ToolCallDelta(call_id=call_id, text=text):
                return self._call_delta(call_id, text)
            case ToolCallEnd():
                return self._call_end(event)
            case RetryNotice():
                return iter((_retry_status(event),))
            case Finish() | Prefilled() | Spent():
                return self._framing(event)

    def close(self) -> Iterator[Chunk]:
        """Close open parts after the model call."""
        yield from self._end_reasoning()
        yield from self._end_seam()
        if self._fold.open_text_id is not None:
            yield chunks.text_end(self._fold.open_text_id)

    def _framing(self, event: Finish | Prefilled | Spent) -> Iterator[Chunk]:
        """Record the model's words about its answer, which are not shown."""
        if isinstance(event, Spent):
            self.spent.append(event)
        elif isinstance(event, Prefilled) and self._joiner is not None:
            self._joiner.goes_on_exactly(echoes=event.echoes)
        return iter(())

    def _text(self, text: str) -> Iterator[Chunk]:
        if not text:
            return
        yield from self._end_reasoning()
        if self._joiner is not None:
            joined = self._joiner.hear(text)
            if joined is not None:
                yield from self._take_up(joined)
            return
        if self._fold.open_text_id is None:
            yield chunks.text_start(self._fold.new_part_id())
        self.shown = True
        assert self._fold.open_text_id is not None
        yield chunks.text_delta(self._fold.open_text_id, text)

    def _end_seam(self) -> Iterator[Chunk]:
        """Join what the model has said to the text that was cut, where it says no more."""
        if self._joiner is not None:
            yield from self._take_up(self._joiner.end())

    def _take_up(self, joined: Joined) -> Iterator[Chunk]:
        self._joiner = None
        if joined.replaced:
            self.shown = True
            mark = self._fold.seam_mark(self._clock(), replaced=joined.replaced)
            assert mark is not None, "what is taken back was shown"
            yield mark
        yield from self._text(joined.added)

    def _text_end(self, metadata: JSONObject) -> Iterator[Chunk]:
        yield from self._end_seam()
        if self._fold.open_text_id is not None:
            yield chunks.text_end(self._fold.open_text_id, provider_metadata=metadata)

    def _reasoning(self, event: ReasoningDelta) -> Iterator[Chunk]:
        if not self._send_reasoning or not (event.text or event.provider_metadata):
            return
        text_id = self._fold.open_text_id
        if text_id is not None and text_id != self._inherited_text_id:
            yield chunks.text_end(text_id)
        if self._thought_joiner is not None:
            joined = self._thought_joiner.hear(event.text)
            if joined is None and not event.provider_metadata:
                return
            joined = joined or self._thought_joiner.end()
            if joined.replaced or not (joined.added or event.text):  # another thought: the first stays as it was cut
                yield from self._end_reasoning()
            self._thought_joiner = None
            event = replace(event, text=joined.added)
        metadata = event.provider_metadata or None
        if self._fold.open_reasoning_id is None:
            self._thinks_since = self._clock()
            yield chunks.reasoning_start(self._fold.new_part_id())
        self.shown = True
        assert self._fold.open_reasoning_id is not None
        yield chunks.reasoning_delta(self._fold.open_reasoning_id, event.text, provider_metadata=metadata)
        if not event.text and KEY in event.provider_metadata:
            yield from self._end_reasoning()  # what has to go back ends the part: the next one has data of its own

    def _end_reasoning(self) -> Iterator[Chunk]:
        """Close the open reasoning part, with the time that it took.

        Clients of other makers replace the metadata of a part by those of its end, so it carries all of them.
        """
        self._thought_joiner = None
        part_id, since = self._fold.open_reasoning_id, self._thinks_since
        if part_id is None:
            return
        metadata: JSONObject | None = None
        if since is not None:
            milliseconds = max(0, (self._clock() - since) // _MILLISECOND)
            metadata = {**self._fold.reasoning_metadata, OURS: {"durationMs": milliseconds}}
        self._thinks_since = None
        yield chunks.reasoning_end(part_id, provider_metadata=metadata)

    def _call_start(self, call_id: str, name: str) -> Iterator[Chunk]:
        name = self._repair(name)
        yield from self.close()
        if self._unwrap(name, "") is not None:
            self._held.add(call_id)
            return
        yield self._begun(call_id, name)

    def _begun(self, call_id: str, name: str) -> Chunk:
        self.shown = True
        return chunks.tool_input_start(call_id, name, title=self._titles.get(name))

    def _call_delta(self, call_id: str, text: str) -> Iterator[Chunk]:
        if text and call_id not in self._held:
            yield chunks.tool_input_delta(call_id, text)

    def _call_end(self, event: ToolCallEnd) -> Iterator[Chunk]:
        name, arguments, metadata = self._repair(event.tool_name), event.arguments, event.provider_metadata
        wrapped = self._unwrap(name, arguments)
        if wrapped is not None:
            name, arguments = wrapped.name, wrapped.arguments
            metadata = {**metadata, OURS: {CALLED_BY: wrapped.by}} if wrapped.by else metadata
            yield self._begun(event.call_id, name)
        checked = self._check(name, arguments)
        if checked.error is None:
            title = self._titles.get(name)
            yield chunks.tool_input_available(
                event.call_id, name, checked.input, title=title, provider_metadata=metadata or None
            )
        else:
            yield chunks.tool_input_error(
                event.call_id,
                name,
                checked.input,
                checked.error,
                dynamic=checked.is_unknown,
                provider_metadata=metadata or None,
            )


def _retry_status(notice: RetryNotice) -> Chunk:
    facts: JSONObject = {
        "code": notice.code,
        "attempt": notice.attempt,
        "attempts": notice.attempts,
        "delaySeconds": round(notice.delay_seconds, 3),
        "retryAt": notice.retry_at.isoformat(timespec="milliseconds"),
        "since": (notice.retry_at - timedelta(seconds=notice.delay_seconds)).isoformat(timespec="milliseconds"),
    }
    return chunks.status("retry", facts)
