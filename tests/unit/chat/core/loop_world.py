"""A world for the loop of a turn: a model, tools, hooks, and a journal and a log that survive a crash."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime

from chat.core.context.prompt import GO_ON_TEXT, to_model_messages
from chat.core.loop.context_window import ContextReducer
from chat.core.loop.hooks import Moment, StepConfig, StepContext, StepRecord
from chat.core.loop.loop import TurnLoop
from chat.core.loop.plan import TurnPlan
from chat.core.loop.step_limit import StepLimit
from chat.core.loop.totals import TurnTotals
from chat.core.loop.turn_state import TurnState
from chat.core.model.language_model import (
    Finish,
    FinishReason,
    ModelEvent,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    ReasoningDelta,
    TextDelta,
    ToolCallDelta,
    ToolCallEnd,
    ToolCallStart,
    ToolMessage,
    ToolSpec,
    Usage,
    UserMessage,
)
from chat.core.model.output_schema import Output
from chat.core.wire.chunks import Chunk, is_shown
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.call_check import CheckedCall, check_call
from tools_app.core.deferral import WrappedCall
from tools_app.core.tool import tool
from tools_app.core.tool_calls import ToolCall, ToolProgress, ToolResult
from tools_app.core.toolset import Toolset

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
HISTORY: list[Message] = [{"id": "u1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}]


class Crash(BaseException):
    """The process dies here."""


@tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


TOOLS = (ToolSpec(name=add.name, description=add.description, input_schema=add.input_schema),)


class Model:
    """Answers with a function of the request; breaks where it is asked to."""

    name = "test/model"
    accepts_images = False
    accepts_documents = False

    def __init__(self, answer: Callable[[ModelRequest], list[ModelEvent | Exception]]) -> None:
        self._answer = answer
        self.requests: list[ModelRequest] = []

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        for event in self._answer(request):
            if isinstance(event, Exception):
                raise event
            yield event

    def describe(self, request: ModelRequest) -> JSONObject:
        return {"messages": [repr(message) for message in request.messages]}


class Journal:
    """A dictionary that survives the crash, without the last record where that was not written yet."""

    def __init__(self) -> None:
        self.rows: dict[str, JSONObject] = {}
        self.log_length = 0
        self.settled_at = 0
        self.loses_last = False
        self._unwritten: tuple[str, int] | None = None

    async def recorded(self, key: str) -> JSONObject | None:
        return self.rows.get(key)

    async def record(self, key: str, value: JSONObject, *, is_last: bool = False) -> None:
        assert key not in self.rows, f"{key} was settled twice"
        self.rows[key] = value
        self._unwritten = (key, self.settled_at) if is_last else None
        self.settled_at = self.log_length

    def crash(self) -> None:
        """Forget the record that was to be written with the end."""
        if self.loses_last and self._unwritten is not None:
            key, self.settled_at = self._unwritten
            del self.rows[key]
        self._unwritten = None


class Tools:
    """Runs `add` and counts; the count is the effect that must happen once per recorded call."""

    def __init__(self) -> None:
        self.set = Toolset([add])
        self.runs: list[str] = []

    def repair(self, tool_name: str) -> str:
        return self.set.repaired(tool_name)

    def unwrap(self, tool_name: str, arguments: str) -> WrappedCall | None:
        return None

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        return check_call(self.set, tool_name, arguments)

    async def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult]:
        self.runs.append(call.call_id)
        yield ToolResult(output=add(**call.input))


class Hooks:
    """No opinion, and a memory."""

    def __init__(self) -> None:
        self.records: list[StepRecord] = []
        self.contexts: list[StepContext] = []

    async def before_step(self, context: StepContext) -> StepConfig | None:
        self.contexts.append(context)
        return None

    async def message_metadata(self, moment: Moment, totals: TurnTotals) -> JSONObject | None:
        return None

    async def take_messages(self, number: int) -> list[JSONObject]:
        return []

    async def on_step_finish(self, record: StepRecord) -> None:
        self.records.append(record)


class World:
    """What survives a crash: the journal and the log; and a way to run the loop over them."""

    def __init__(self, model: Model, *, max_steps: int = 10) -> None:
        self.model = model
        self.journal = Journal()
        self.log: list[Chunk] = []
        self.tools = Tools()
        self.hooks = Hooks()
        self.max_steps = max_steps
        self.reducer: ContextReducer | None = None
        self.prompt = prompt_of
        self.settings = ModelSettings()
        self.output: Output | None = None
        self.loop: TurnLoop

    async def run(self, *, crash_after: int | None = None) -> Message:
        fold = TurnState("a1")
        for chunk in self.log:
            fold.apply(chunk)
        plan = TurnPlan(
            request_id="r1",
            assistant_id="a1",
            model=self.model,
            resolve_model=lambda choice: self.model,
            system="",
            prompt=self.prompt,
            reducer=self.reducer,
            tools=TOOLS,
            settings=self.settings,
            output=self.output,
            limit=StepLimit(max_steps=self.max_steps),
            clock=lambda: NOW,
            partial_output_shown=any(is_shown(c) for c in self.log[self.journal.settled_at :]),
        )
        self.loop = TurnLoop(plan, fold, journal=self.journal, tools=self.tools, hooks=self.hooks)
        async with aclosing(self.loop.run()) as chunks:
            async for chunk in chunks:
                self.log.append(chunk)
                self.journal.log_length = len(self.log)
                if crash_after is not None and len(self.log) >= crash_after:
                    self.journal.crash()
                    raise Crash
        return fold.message


def prompt_of(message: Message) -> tuple[ModelMessage, ...]:
    said = [message] if any(p["type"] != "step-start" for p in message["parts"]) else []
    return to_model_messages([*HISTORY, *said])


def finish(reason: FinishReason = FinishReason.STOP) -> Finish:
    return Finish(reason=reason, usage=Usage(input_tokens=10, output_tokens=5), model_name="test/model")


def add_call(call_id: str, arguments: str, name: str = "add") -> list[ModelEvent | Exception]:
    return [
        ToolCallStart(call_id=call_id, tool_name=name),
        ToolCallDelta(call_id=call_id, text=arguments),
        ToolCallEnd(call_id=call_id, tool_name=name, arguments=arguments),
    ]


def says(*texts: str) -> Callable[[ModelRequest], list[ModelEvent | Exception]]:
    return lambda request: [*(TextDelta(text=t) for t in texts), finish()]


WANTED = {3: '{"a":1,"b":2}', 7: '{"a":3,"b":4}'}


def two_rounds(request: ModelRequest) -> list[ModelEvent | Exception]:
    """Reason, say, call two tools; then answer with the sum.

    Goes on from a cut text where it was cut, and calls again what failed.
    """
    results = [m for m in request.messages if isinstance(m, ToolMessage)]
    done = {m.output for m in results if not m.is_error}
    missing = [arguments for output, arguments in WANTED.items() if output not in done]
    calls = [
        event
        for number, arguments in enumerate(missing, start=1 + len(results))
        for event in add_call(f"c{number}", arguments)
    ]
    if not results:
        whole = "Let me add."
        said = said_before(request)
        first: list[ModelEvent | Exception] = [] if said else [ReasoningDelta(text="Hm. "), ReasoningDelta(text="Add.")]
        return [*first, *(TextDelta(text=c) for c in whole[len(said) :]), *calls, finish(FinishReason.TOOL_CALLS)]
    if missing:
        return [*calls, finish(FinishReason.TOOL_CALLS)]
    whole = f"The sum is {sum(done)}."
    return [*(TextDelta(text=c) for c in whole[len(said_before(request)) :]), finish()]


def said_before(request: ModelRequest) -> str:
    """Text of the assistant that the request ends with, when it asks to go on."""
    last = request.messages[-1]
    if not (isinstance(last, UserMessage) and any(getattr(c, "text", "") == GO_ON_TEXT for c in last.content)):
        return ""
    said = request.messages[-2]
    assert not isinstance(said, ToolMessage)
    return "".join(getattr(c, "text", "") for c in said.content)


def texts(message: Message) -> list[str]:
    return [part["text"] for part in message["parts"] if part["type"] == "text"]
