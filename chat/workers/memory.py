"""One run of the loop in memory: a fresh conversation of one question, whose rows are nowhere. For worker agents."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from django.utils import timezone

from chat.core.context.context_policy import READ_TIME, ContextPolicy
from chat.core.context.prompt import to_model_messages
from chat.core.loop.hooks import Moment, StepConfig, StepContext, StepRecord, StopCondition
from chat.core.loop.loop import TurnLoop
from chat.core.loop.plan import TurnPlan
from chat.core.loop.step_limit import StepLimit
from chat.core.loop.totals import TurnTotals
from chat.core.loop.turn_state import TurnState
from chat.core.model.language_model import ModelMessage, ModelSettings, ToolSpec
from chat.core.model.output_schema import Output
from chat.core.wire.chunks import Chunk
from chat.instances.addresses import MAX_HOPS
from chat.llm.registry import AnyChoice, guarded, resolve_model
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from tools_app.calls.asking import judge_call
from tools_app.calls.run import execute
from tools_app.core.call_check import CheckedCall, check_call
from tools_app.core.deferral import WrappedCall
from tools_app.core.guard.rules import ON
from tools_app.core.origins import UNTRUSTED
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause, ToolProgress, ToolResult
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolError

NO_PERSON: Final = "This call needs a person's decision, and nothing of this worker is shown to one."

_depth: ContextVar[int] = ContextVar("think_worker_depth", default=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryJob:
    """The work of one run. `caller`: the context of the call that it is done for, if there is one.

    `stop_when`: conditions that end it before the next model call. `holds_calls`: calls are asked for and not run, so
    that the run ends with them. `policy`: what of the messages the model is sent.
    """

    model: AnyChoice
    instructions: str
    messages: Sequence[Message]
    tools: Sequence[Tool] = ()
    output: Output | None = None
    max_steps: int = 10
    caller: ToolContext | None = None
    stop_when: tuple[StopCondition, ...] = ()
    holds_calls: bool = False
    policy: ContextPolicy = READ_TIME


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryAnswer:
    """The outcome: the text of the last step, and its value where a form was asked for."""

    text: str
    output: JSONValue


def to_messages(built: str | Sequence[tuple[str, str]]) -> list[Message]:
    """Messages of a text, or of pairs of a role (`user`, `assistant`) and a text."""
    pairs = [("user", built)] if isinstance(built, str) else built
    return [
        {"id": f"m{number}", "role": role, "parts": [{"type": "text", "text": text}]}
        for number, (role, text) in enumerate(pairs)
    ]


async def run_in_memory(job: MemoryJob) -> MemoryAnswer:
    """Run the loop to its end. Nothing is stored; after a crash it is to be run again.

    Errors: `ToolError` more than five levels deep, `OutputInvalid` when no try gave the form, `ModelError`.
    """
    depth = _depth.get()
    if depth >= MAX_HOPS:
        raise ToolError(f"Agents work for each other at most {MAX_HOPS} levels deep.")
    token = _depth.set(depth + 1)
    try:
        run = MemoryRun(job)
        async with aclosing(run.chunks()) as chunks:
            async for _chunk in chunks:
                pass
        return MemoryAnswer(text=run.fold.step_text(), output=run.loop.totals.output)
    finally:
        _depth.reset(token)


class MemoryRun:
    """One run of the loop. `fold` has what was said so far, its `message` is the answer."""

    def __init__(self, job: MemoryJob) -> None:
        self.fold = TurnState(new_id("msg"))
        self.loop = TurnLoop(_plan(job, self.fold), self.fold, journal=_Journal(), tools=_Tools(job), hooks=_Hooks())

    def chunks(self) -> AsyncGenerator[Chunk, None]:
        """Run it, once. Errors: `ModelError`, `OutputInvalid`."""
        return self.loop.run()


def _plan(job: MemoryJob, fold: TurnState) -> TurnPlan:
    model = guarded(resolve_model(job.model))
    settings = ModelSettings()
    if job.output is not None:
        settings = replace(settings, response_schema=job.output.json_schema, response_by_tool=job.output.by_tool)

    def prompt(answer: Message) -> tuple[ModelMessage, ...]:
        said = [answer] if any(part["type"] != "step-start" for part in answer["parts"]) else []
        return to_model_messages([*job.messages, *said], accepts_images=model.accepts_images, policy=job.policy)

    return TurnPlan(
        request_id=new_id("req"),
        assistant_id=fold.message["id"],
        model=model,
        resolve_model=lambda choice: guarded(resolve_model(choice)),
        system=job.instructions,
        prompt=prompt,
        tools=tuple(
            ToolSpec(name=tool.name, description=tool.description, input_schema=tool.input_schema) for tool in job.tools
        ),
        settings=settings,
        limit=StepLimit(max_steps=job.max_steps, stop_when=job.stop_when, text=""),
        output=job.output,
        clock=timezone.now,
    )


class _Journal:
    """Remembers nothing beyond the run."""

    def __init__(self) -> None:
        self._rows: dict[str, JSONObject] = {}

    async def recorded(self, key: str) -> JSONObject | None:
        return self._rows.get(key)

    async def record(self, key: str, value: JSONObject, *, is_last: bool = False) -> None:
        del is_last
        self._rows[key] = value


class _Tools:
    """Runs calls where no person sees them: what one would have to decide about fails."""

    def __init__(self, job: MemoryJob) -> None:
        self._set = Toolset(job.tools)
        self._holds_calls = job.holds_calls
        self._caller = job.caller
        self._has_read_others = False

    def repair(self, tool_name: str) -> str:
        return self._set.repaired(tool_name)

    def unwrap(self, _tool_name: str, _arguments: str) -> WrappedCall | None:
        return None

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        return check_call(self._set, tool_name, arguments)

    async def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult | ToolPause]:
        if self._holds_calls:
            yield ToolPause(status=CallStatus.WAITING)
            return
        try:
            tool = self._set.get(call.tool_name)
        except ToolError as error:
            yield ToolResult(output=error.message, is_error=True)
            return
        context = self._context(call)
        judged = await judge_call(tool, call, context)
        is_harmless = ON.lets_run(tool.name, tool.source, is_read_only=tool.read_only, is_open_world=tool.open_world)
        is_guarded = self._has_read_others and not is_harmless
        if judged.denied is not None:
            yield judged.denied
        elif judged.must_ask or is_guarded or tool.is_client or tool.action is not None:
            yield ToolResult(output=NO_PERSON, is_error=True)
        else:
            if tool.origin in UNTRUSTED:
                self._has_read_others = True
                context.note_origin(tool.origin, tool.name)
            async for item in execute(tool, call, context):
                yield item

    def _context(self, call: ToolCall) -> ToolContext:
        caller = self._caller
        if caller is None:
            return ToolContext(
                call_id=call.call_id,
                tool_name=call.tool_name,
                user_id=None,
                agent="",
                instance_name="",
                turn_id="",
                attempt=1,
                idempotency_key=new_id("call"),
            )
        return replace(
            caller,
            call_id=f"{caller.call_id}:{call.call_id}",
            tool_name=call.tool_name,
            idempotency_key=f"{caller.idempotency_key}:{call.call_id}",
            waiter=None,  # what waits would run the worker again from its start
            reporter=None,
            attach=None,
            act=None,
            asker=None,
            inner=None,
        )


class _Hooks:
    """No opinion."""

    async def before_step(self, _context: StepContext) -> StepConfig | None:
        return None

    async def take_messages(self, _number: int) -> list[JSONObject]:
        return []

    async def on_step_finish(self, _record: StepRecord) -> None:
        return None

    async def message_metadata(self, _moment: Moment, _totals: TurnTotals) -> JSONObject | None:
        return None
