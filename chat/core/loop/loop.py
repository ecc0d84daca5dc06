"""The agent loop: ask the model, run its tool calls, repeat; yields chunks.

It does no I/O of its own: the model, the tools, the hooks and the journal are ports. There is one loop for fresh and
for recovered turns: recorded steps are skipped and emit nothing, framing that the log already holds is not repeated,
and a step that was cut after something of it had been shown is sealed, so that the model is asked to go on from there.
A request that exceeds the model's context is shortened and sent again (`chat.core.loop.context_window`).
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any, Final, Protocol

from chat.core.context.prompt import goes_on
from chat.core.loop.call_records import (
    CALL_PREFIX,
    call_record,
    progress_chunk,
    settling_chunk,
    steer_chunks,
    todo_chunk,
)
from chat.core.loop.context_window import ContextWindow
from chat.core.loop.failover import ModelFailover, with_models
from chat.core.loop.hooks import Moment, StepConfig, StepContext, StepRecord
from chat.core.loop.plan import TurnPlan
from chat.core.loop.seam import Seam
from chat.core.loop.step_history import StepHistory
from chat.core.loop.step_tools import (
    activity,
    choice_of,
    hidden_tools,
    named_calls,
    offered_tools,
    only_offered,
    through_offered,
)
from chat.core.loop.totals import MODEL_PREFIX, TurnTotals
from chat.core.loop.turn_state import EventTranslator, TurnState
from chat.core.model.language_model import (
    Finish,
    FinishReason,
    LanguageModel,
    ModelMessage,
    ModelRequest,
    Spent,
    Usage,
)
from chat.core.wire import chunks
from chat.core.wire.chunks import Chunk
from chat.errors import AnswerFailed, ContextOverflow, ModelError, NetworkLost
from fibers.errors import Parked
from fibers.waits import Wait
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.call_check import CheckedCall
from tools_app.core.deferral import WrappedCall
from tools_app.core.tool_calls import ToolCall, ToolPause, ToolProgress, ToolResult

UNRECORDED: Final[JSONObject] = {"finish": FinishReason.STOP.value, "ends_step": True, "unrecorded": True}
"""The record of a model call that had ended when its worker died: what it used is not known any more."""

MAX_SEALS = 5
"""How often one turn may go on after the model's stream broke in the middle."""


class LoopJournal(Protocol):
    """Settled steps. A record is durable together with every chunk yielded before it."""

    async def recorded(self, key: str) -> JSONObject | None:
        """Give the record of a settled step, or `None`. No query per key."""

    async def record(self, key: str, value: JSONObject, *, is_last: bool = False) -> None:
        """Settle a step. `is_last`: a step without calls, after which a turn usually ends. Errors: a lost lease."""


class ToolRunner(Protocol):
    """Checks and runs the calls of one turn."""

    def repair(self, tool_name: str) -> str:
        """The name of the tool that a model meant."""

    def unwrap(self, tool_name: str, arguments: str) -> WrappedCall | None:
        """The call that is made through another tool, as one of the tool that it is about; nothing for any other."""

    def check(self, tool_name: str, arguments: str) -> CheckedCall:
        """Parse and validate without running."""

    def run(self, call: ToolCall) -> AsyncIterator[ToolProgress | ToolResult | ToolPause]:
        """Run: any number of `ToolProgress`, then one `ToolResult`; or one `ToolPause` alone.

        Never raises for what a tool does.
        """


@dataclass(slots=True, kw_only=True)
class StepView:
    """The state of the current step. Updated by the loop, read by the tool runner."""

    number: int = 0
    messages: tuple[ModelMessage, ...] = ()
    shared: Any = None
    calls_up_to: Callable[[str], list[list[ToolCall]]] = (
        lambda _call_id: []
    )  # by step of the answer, the named one last


class StepHooks(Protocol):
    """The hooks that run inside the loop."""

    async def before_step(self, context: StepContext) -> StepConfig | None:
        """Run before each model call."""

    async def take_messages(self, number: int) -> list[JSONObject]:
        """Take what people have sent meanwhile for the next step, settled with its number: again the same ones."""

    async def on_step_finish(self, record: StepRecord) -> None:
        """Run after each finished step."""

    async def message_metadata(self, moment: Moment, totals: "TurnTotals") -> JSONObject | None:
        """Metadata that the answer gets at its start and at its end."""


class TurnLoop:
    """One run of the loop. Iterate `run()` once; each yielded chunk is to be logged before the next is asked for."""

    def __init__(
        self,
        plan: TurnPlan,
        fold: TurnState,
        *,
        journal: LoopJournal,
        tools: ToolRunner,
        hooks: StepHooks,
        view: StepView | None = None,
    ) -> None:
        self.plan = plan
        self.fold = fold
        self.totals = TurnTotals()
        self._view = view or StepView()
        self._view.shared = plan.shared
        self._view.calls_up_to = fold.calls_up_to
        self._journal = journal
        self._tools = tools
        self._hooks = hooks
        self._number = 0  # of the next model call
        self._hidden: frozenset[str] = frozenset()  # names of tools that are not there for the present step
        self._seals = 0
        self._answered_steps = 0  # steps whose model call is settled; sealed calls that go on do not end their step
        self._steps = StepHistory(fold, plan.request_id, plan.output, plan.requests)
        self._window = ContextWindow(plan.reducer, journal)
        self._failover = ModelFailover(journal, plan.context_size, self.totals.switches)

    async def run(self) -> AsyncGenerator[Chunk, None]:
        """Yield the chunks of the turn that the log does not hold yet.

        Errors: `ModelError` when the model cannot answer; whatever the journal raises when the lease is lost.
        """
        if not self.fold.started:
            metadata = await self._hooks.message_metadata("start", self.totals)
            yield self._put(chunks.start(self.plan.assistant_id, metadata=metadata))
        await self._skip_recorded()
        if self._has_unrecorded_step:
            await self._settle_model_call(UNRECORDED, is_last=True)
        elif self.plan.partial_output_shown and not self._is_over():
            async for chunk in self._seal():
                yield chunk
        while not self._is_over():
            async with aclosing(self._step()) as step:
                async for chunk in step:
                    yield chunk
        self._read_output()
        for chunk in [] if self.plan.output else self.plan.limit.said_at(self.totals.ended, self.fold):
            yield self._put(chunk)
        if not self.fold.finished:
            metadata = with_models(await self._hooks.message_metadata("finish", self.totals), self.totals.report)
            yield self._put(chunks.finish(self.totals.finish_reason or FinishReason.STOP, metadata=metadata))

    def _put(self, chunk: Chunk) -> Chunk:
        self.fold.apply(chunk)
        return chunk

    async def _skip_recorded(self) -> None:
        while (record := await self._journal.recorded(f"{MODEL_PREFIX}{self._number}")) is not None:
            self._count(record)
            self._number += 1
        await self._window.restore()
        await self._failover.restore()

    def _count(self, record: JSONObject) -> None:
        self.totals.count(record)
        self._window.count(self._number, Usage(**record.get("usage", {})))
        if record.get("sealed"):
            self._seals += 1
        if record["ends_step"]:
            self._steps.settled(record)
            self._answered_steps += 1

    @property
    def _is_answered(self) -> bool:
        """Whether the model call of the present step is settled."""
        return self._answered_steps > 0 and self._answered_steps == self.fold.steps_started

    @property
    def _has_unrecorded_step(self) -> bool:
        """Whether the log has the end of a step that the journal does not have: its worker died before the commit."""
        return not self.fold.step_is_open and self.fold.steps_started > self._answered_steps

    def _is_over(self) -> bool:
        """Whether the model has nothing more to do."""
        if not self._is_answered or self.fold.step_is_open:
            return False
        steps, wants_more = self._steps.records(), self.fold.last_step_called_tools
        end = "" if self.fold.waits_for_answers else self.plan.limit.end_of(steps, wants_more=wants_more)
        self.totals.ended = end or ""
        return end is not None and not (end == "" and self._steps.correction())

    def _read_output(self) -> None:
        """Read the structured answer. Errors: `OutputInvalid`; a turn that waits for answers has none yet."""
        if self.plan.output is not None and not self.fold.waits_for_answers:
            self.totals.output = self.plan.output.read(self.fold.step_text())

    async def _step(self) -> AsyncGenerator[Chunk, None]:
        """Settle the open calls of the last model call; without any, make the next model call."""
        if self._is_answered and self.fold.step_is_open:
            if not self._view.messages:  # a call of an earlier attempt: what its hook overrode is not known any more
                self._view.number = self._answered_steps - 1
                self._view.messages = self.plan.prompt(self.fold.message_before_step())
            async with aclosing(self._settle_calls(self.fold.unsettled_calls())) as outputs:
                async for chunk in outputs:
                    yield chunk
            yield self._put(chunks.finish_step())
            return
        if not self.fold.step_is_open:
            for chunk in await self._steered():
                yield self._put(chunk)
            yield self._put(chunks.start_step())
        async with aclosing(self._ask()) as answer:
            async for chunk in answer:
                yield chunk

    async def _steered(self) -> list[Chunk]:
        """The messages that the answer takes in before its next step, as far as the log does not hold them."""
        taken = await self._hooks.take_messages(self._number) if self._answered_steps else []
        return steer_chunks(self.fold, taken)

    async def _ask(self) -> AsyncGenerator[Chunk, None]:
        """One model call, recorded when it ended; sealed when it broke off after something was shown.

        Ends without either when nothing was shown and the same call is to be made again, with a shorter prompt.
        """
        model, request = await self._fitting_request()
        await self._failover.settle(self._number, model)
        for kind, facts in self._failover.reports():
            yield self._put(activity(kind, facts, self.plan.clock()))
        check = only_offered(self._tools.check, self._hidden)
        plan, finish = self.plan, None
        translate = EventTranslator(
            self.fold,
            check,
            repair=self._tools.repair,
            send_reasoning=plan.send_reasoning,
            titles=plan.titles,
            clock=plan.clock,
        )
        translate.see_through(through_offered(self._tools.unwrap, self._hidden))
        translate.take_up(self._seam())
        facts = {"name": model.name, "step": self._view.number, **self._failover.instead_of(model)}
        yield self._put(activity("model", facts, plan.clock()))
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, Finish):
                        finish = event
                        break
                    for chunk in translate(event):
                        yield self._put(chunk)
            if finish is None:
                raise NetworkLost("The model's answer ended in the middle.")
        except ModelError as error:
            self.totals.spend(model.name, [*translate.spent, *Spent.on(error)], self.plan.cost_of)
            if not await self._goes_on(error, model, is_shown=translate.has_taken_up):
                raise
        ending = self._seal(is_shown=translate.has_taken_up)
        if finish is not None:
            ending = self._end_call(translate, model, request, finish)
        async for chunk in ending:
            yield chunk

    async def _goes_on(self, error: ModelError, model: LanguageModel, *, is_shown: bool) -> bool:
        """Whether a failed call is made again: from where it broke off, with a shorter prompt, or of another model."""
        is_overflow = isinstance(error, ContextOverflow)
        self._failover.note_stall(model, error)
        if is_overflow and await self._window.reduce_after_overflow(self._number, model):
            return True
        if await self._failover.goes_on(self._number, model, error, is_shown=is_shown):
            return True
        if is_overflow:
            raise self._window.explained(error, model, self.plan.context_size(model)) from error
        most = 1 if isinstance(error, AnswerFailed) else MAX_SEALS  # who thinks and says nothing may do so again
        return is_shown and error.may_go_on and self._seals < most

    async def _fitting_request(self) -> tuple[LanguageModel, ModelRequest]:
        """The next request; built again if it did not fit and the prompt was shortened."""
        model, request = await self._request()
        if await self._window.ensure_fits(self._number, model, request):
            return await self._request()
        return model, request

    async def _request(self) -> tuple[LanguageModel, ModelRequest]:
        model = self._failover.choose(self.plan.model)
        seam = self._seam()
        context = StepContext(
            request_id=self.plan.request_id,
            step_number=self._answered_steps,
            system=self.plan.system,
            messages=self._window.with_resume_notice(self._number, self.plan.prompt(self.fold.message_at(seam))),
            model=model,
            steps=self._steps.records(),
            shared=self._view.shared,
        )
        config = await self._hooks.before_step(context) or StepConfig()
        tools = offered_tools(self.plan, config, self.fold.message)
        choice = "none" if self.plan.limit.is_reached(self.totals.steps) else choice_of(self.plan, config, tools)
        self._hidden = hidden_tools(self.plan, config, tools, choice)
        settings = self.plan.settings
        if config.provider_options is not None:
            settings = settings.with_options(config.provider_options)
        if config.model is not None:
            model = self._failover.choose(self.plan.resolve_model(config.model))
        messages = self._steps.corrected(context.messages if config.messages is None else config.messages)
        request = ModelRequest(
            system=context.system if config.system is None else config.system,
            messages=messages,
            tools=tools,
            tool_choice=choice,
            settings=settings,
            continues=goes_on(messages),
            cut_word=seam.tail if seam.base and config.messages is None and goes_on(messages) else None,
            forms=self.plan.forms,
        )
        self._view.number, self._view.messages = context.step_number, request.messages
        self._view.shared = context.shared if config.shared is None else config.shared
        return model, request

    def _seam(self) -> Seam:
        """The place where the text goes on that a lost call left open. JSON of a schema begins anew, it is checked."""
        return Seam.of(self.fold.open_text(), begins_anew=self.plan.settings.response_schema is not None)

    async def _end_call(
        self, translate: EventTranslator, model: LanguageModel, request: ModelRequest, finish: Finish
    ) -> AsyncGenerator[Chunk, None]:
        """Close what is open after an answer, and record the call."""
        for chunk in translate.close():
            yield self._put(chunk)
        self.totals.spend(model.name, translate.spent, self.plan.cost_of)
        self._failover.answered(model)
        record: JSONObject = {
            "finish": finish.reason.value,
            "ends_step": True,
            "usage": asdict(finish.usage),
            "cost": str(self.plan.cost_of((model.name, finish.model_name), finish.usage)),
            "model": model.name,
            "model_name": finish.model_name or model.name,
            "response_id": finish.response_id,
            "request": self._steps.describe(model.describe(request), now=self.plan.clock().timestamp()),
        }
        if finish.warnings:
            record["warnings"] = list(finish.warnings)
        if finish.provider_metadata:
            record["provider_metadata"] = finish.provider_metadata
        await self._settle_model_call(record, is_last=not self.fold.unsettled_calls())

    async def _settle_model_call(self, record: JSONObject, *, is_last: bool = False) -> None:
        if self.totals.unrecorded:
            record, self.totals.unrecorded = {**record, "spent": self.totals.unrecorded}, []
        await self._journal.record(f"{MODEL_PREFIX}{self._number}", record, is_last=is_last)
        self._count(record)
        self._number += 1

    async def _seal(self, *, is_shown: bool = True) -> AsyncGenerator[Chunk, None]:
        """Settle a failed model call with its partial output, so that the next call continues from it.

        Text and reasoning stay open (what comes next goes into the same part); half a tool call becomes an input
        error. Of a call that showed nothing there is nothing to keep.
        """
        if not is_shown:
            return
        for chunk in self.fold.sealing_chunks():
            yield self._put(chunk)
        mark = self.fold.seam_mark(self.plan.clock())
        if mark is not None:
            yield self._put(mark)
        # Results follow calls, so a step with calls ends; only a step of text goes on in place.
        await self._settle_model_call({"sealed": True, "ends_step": self.fold.last_step_called_tools})

    async def _settle_calls(self, calls: list[ToolCall]) -> AsyncGenerator[Chunk, None]:
        """Run calls side by side, each a recorded step of its own; yield their outputs as they come."""
        if calls:
            yield self._put(activity("tool", named_calls(self.plan.titles, calls), self.plan.clock()))
        arrivals: asyncio.Queue[Chunk | BaseException | None] = asyncio.Queue()
        waits: list[Wait] = []
        tasks = [asyncio.create_task(_settle_call(call, self._journal, self._tools, arrivals)) for call in calls]
        try:
            remaining = len(tasks)
            while remaining:
                match await arrivals.get():
                    case None:
                        remaining -= 1
                    case Parked() as parked:  # the other calls end first; then the turn waits for all that wait
                        waits.extend(parked.waits)
                        remaining -= 1
                    case BaseException() as error:
                        raise error
                    case chunk:
                        yield self._put(chunk)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if waits:
            raise Parked(waits[0].kind, waits)
        await self._hooks.on_step_finish(self._steps.records()[-1])


async def _settle_call(
    call: ToolCall, journal: LoopJournal, tools: ToolRunner, arrivals: "asyncio.Queue[Chunk | BaseException | None]"
) -> None:
    """Run one call, unless it is recorded, and record it; its chunks arrive as they come, then `None` or an error."""
    try:
        key = f"{CALL_PREFIX}{call.call_id}"
        record = await journal.recorded(key)
        if record is None:
            async for item in tools.run(call):
                if isinstance(item, ToolProgress):
                    arrivals.put_nowait(progress_chunk(call.call_id, item))
                else:
                    record = call_record(call, item)
            assert record is not None, "a tool runner ends with a result"
            await journal.record(key, record)
        for chunk in (todo_chunk(call, record), settling_chunk(call.call_id, record)):
            if chunk is not None:
                arrivals.put_nowait(chunk)
        arrivals.put_nowait(None)
    except Parked as parked:
        arrivals.put_nowait(parked)
    except BaseException as error:
        arrivals.put_nowait(error)
        raise
