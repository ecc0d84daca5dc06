"""Run one turn: glue between the loop, the session, the tools, the journal and the log.

There is one way through here for fresh and for recovered turns. Whatever happens, what was shown is stored, the turn
ends in exactly one state, and only then the stream is closed.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from dataclasses import replace
from functools import partial
from typing import Any, Literal

from django.utils import timezone

from chat.agent.think import USE_LOOP, Think
from chat.core.context.sent_note import latest_zone
from chat.core.context.session_setup import ContextUsage
from chat.core.loop.call_records import cut_outputs, recorded_outputs, with_recorded
from chat.core.loop.hooks import (
    ChatErrorContext,
    ChunkContext,
    MetadataContext,
    Moment,
    RecoveryDecision,
    StepConfig,
    StepContext,
    StepRecord,
)
from chat.core.loop.loop import StepView, TurnLoop
from chat.core.loop.reply_chunks import reply_chunks
from chat.core.loop.totals import TurnTotals, totals_of
from chat.core.wire import chunks as chunk_of
from chat.core.wire.chunks import STATUS, Chunk
from chat.errors import TurnTimeout
from chat.instances.notifications import send_conversation, send_notification, turn_group
from chat.instances.rows import find_instance
from chat.streams.reader import close_stream
from chat.streams.writing.writer import StreamWriter
from chat.turns import policies
from chat.turns.admission.admit import LISTED_FOR
from chat.turns.admission.oversized import fit_answer
from chat.turns.background.compaction import context_usage
from chat.turns.background.summaries import start_summary, writes_summaries
from chat.turns.delegation.reports import reporting
from chat.turns.execution.after_turn import TurnEnd
from chat.turns.execution.approved import late_note, run_approved
from chat.turns.execution.assembly import Assembled, MakeAgent, assemble, guard_of, make_think_for
from chat.turns.execution.begin import BEGIN, begin_turn
from chat.turns.execution.finish import COMPLETED, FINAL, finish_turn
from chat.turns.execution.journal import TurnJournal
from chat.turns.execution.opening import with_opening
from chat.turns.execution.recovery import (
    ResumePoint,
    ask_recovery,
    load_resume_point,
    note_status,
    without_partial,
)
from chat.turns.execution.steering import TurnSteering
from chat.turns.execution.tool_call.call import close_cut
from chat.turns.execution.tools import TurnTools
from chat.turns.execution.turn_facts import TurnFacts, has_content
from chat.turns.guarding.handed_down import handing_down
from chat.turns.guarding.turn_guard import TurnGuard, TurnReach
from chat.turns.policies import StepsSoFar
from chat.turns.state.input_reservation import wait_for_input
from chat.turns.state.sent_requests import sent_before
from chat.turns.state.status import SKIPPED_REASON
from chat.user_code.call_hook import (
    ask_hook,
    call_hook,
    is_heard,
    is_overridden,
    iterate,
    notify_hook,
    user_code_boundary,
    user_facing_error,
    watcher_of,
)
from fibers.context import FiberContext
from fibers.core.states import FiberStatus, Interrupt
from fibers.errors import Cancelled, Failed, FiberError, Parked
from sessions_app.core.messages import call_texts
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.aio import db, user_code
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, dump, load
from thinkproject.kernel.zones import in_zone
from tools_app.core.guard.reach import reaching
from tools_app.errors import DatabaseAway
from tools_app.workspace.stores.backups import count_steps

logger = logging.getLogger(__name__)

INTERNAL = "Something went wrong. Try again in a moment."


class TurnRun:
    """One attempt at one turn."""

    def __init__(self, context: FiberContext, make_agent: MakeAgent) -> None:
        self._context = context
        self._make_agent = make_agent
        self._turn_id = str(context.payload["turn_id"])
        self._facts: TurnFacts
        self._standing: ResumePoint
        self._agent: Think | None = None
        self._assembled: Assembled | None = None
        self._totals = TurnTotals()
        self._keeps_partial = True
        self._is_stored = False  # whether all of the log is in the database
        self._gave_up = False  # a turn that a crash cut does not go on

    async def run(self) -> JSONObject:
        """Run the turn. Errors: `Cancelled`, `Failed`; the fiber runner retries any other."""
        self._context.on_settled(self._announce)
        final = await self._context.recorded(FINAL)
        if final is not None:
            return _settle_as(final.value)
        self._facts = await self._begin_turn()
        async with StreamWriter(
            self._turn_id,
            fence=self._context.fence,
            ctx_fenced=self._context.fenced,
            is_new=self._context.attempt == 1,
            on_progress=self._context.advance,
        ) as writer:
            self._standing = await load_resume_point(self._context, writer, self._facts.assistant_id)
            return _settle_as(await self._attempt(writer))

    async def _begin_turn(self) -> TurnFacts:
        """The turn's facts, read with the claim, or now where its caller had to supply the input first."""
        facts: TurnFacts | None = self._context.begun
        if facts is None:
            await wait_for_input(self._context, self._turn_id)
            facts = await db(begin_turn, self._context, self._turn_id)
        if facts.is_skipped:
            raise Cancelled(reason=SKIPPED_REASON)
        self._context.reached(BEGIN)
        return facts

    async def _attempt(self, writer: StreamWriter) -> JSONObject:
        try:
            await self._answer(writer)
        except asyncio.CancelledError:
            if self._context.interrupt is not Interrupt.CANCEL:
                raise
            return await self._finish(writer, "aborted")
        except FiberError:
            raise  # the lease is lost or the fiber is misused: nothing we write counts
        except DatabaseAway as away:
            raise away.error from away  # a call has no result: another attempt makes it again
        except Parked as parked:
            since = timezone.now().isoformat()
            waits = [
                {"kind": wait.kind, "label": wait.label, "callId": wait.call_id, "since": since}
                for wait in parked.waits
            ]
            writer.write(chunk_of.status("waiting", {"waits": waits}))
            await writer.flush_cold()
            raise
        except ThinkError as error:
            return await self._fail(writer, error)
        except Exception:  # the turn's own boundary: the last attempt ends with a visible reason
            logger.exception("turn failed", extra={"action": "turn_failed", "turn_id": self._turn_id})
            if self._context.retries < self._context.max_retries:
                raise
            return await self._fail(writer, ThinkError(INTERNAL))
        return await self._finish(writer, "completed")

    async def _answer(self, writer: StreamWriter) -> None:
        self._agent = agent = await make_think_for(self._facts, self._make_agent)
        if records := list(self._context.records()):
            before = await db(sent_before, self._facts.session_id, self._facts.position, records)
            self._facts = replace(self._facts, sent_before=before)
        if self._is_recovering:
            _notify_recovering(self._context, True)
            await self._ask_recovery(agent)
        guard = await guard_of(agent, self._facts, self._context)
        with reaching(TurnReach(guard)), handing_down(self._facts.key, self._facts.denied):
            self._assembled = assembled = await assemble(
                agent,
                self._facts,
                guard,
                attempt=self._context.attempt,
                partial_output_shown=self._standing.partial_output_shown,
                answer=with_recorded(self._standing.fold.message, dict(self._context.records())),
            )
            limit = asyncio.timeout(assembled.timeout_seconds or None)
            try:
                async with limit:
                    with (
                        handing_down(self._facts.key, assembled.handed_down),
                        in_zone(latest_zone(assembled.history)),
                    ):
                        await self._stream(assembled, writer)
            except TimeoutError as error:
                if limit.expired():
                    raise TurnTimeout(f"The turn took longer than {assembled.timeout_seconds:g} s.") from error
                raise

    async def _stream(self, assembled: Assembled, writer: StreamWriter) -> None:
        agent, watches = assembled.agent, is_heard(assembled.agent, "on_chunk")
        view = StepView(shared=assembled.plan.shared)
        count_steps(lambda: view.number)
        tools = TurnTools(assembled, self._facts, self._context, view, self._make_agent)
        answer = await self._own_answer(assembled) or self._loop_answer(assembled, writer, tools)
        async with (
            reporting(agent, self._standing.fold, writer) as reports,
            aclosing(self._after_approved(assembled, tools, answer)) as chunks,
        ):
            async for chunk in chunks:
                writer.write(chunk)
                reports.flush()
                if chunk["type"] == STATUS:
                    self._follow(
                        await note_status(agent, self._facts, self._context, chunk["data"], self._standing.fold)
                    )
                if watches:
                    await notify_hook(agent, "on_chunk", ChunkContext(request_id=self._facts.request_id, chunk=chunk))
                await writer.drain()
                self._context.passed(f"chunk:{chunk['type']}")
        watcher = watcher_of(agent)
        if watcher is not None:
            await watcher.flush()

    async def _after_approved(
        self, assembled: Assembled, tools: TurnTools, answer: AsyncGenerator[Chunk, None]
    ) -> AsyncGenerator[Chunk, None]:
        """Run the calls that a person approved, then answer. The stream begins first: tools may take their time."""
        async with aclosing(answer):
            if self._facts.is_continuation:
                if not self._standing.fold.started:
                    yield await self._begin(assembled.agent)
                tools.turn.view.messages = assembled.options.messages  # what led to the calls, and the calls themselves
                await run_approved(self._context, self._facts, tools, assembled.history)
                assembled.prompt.note = await late_note(self._facts)
                tools.turn.view.messages = ()
            if reminder := await tools.turn.permissions.reminder():
                assembled.prompt.note = f"{assembled.prompt.note}\n\n{reminder}".strip()
            async for chunk in answer:
                if chunk["type"] == "finish":
                    for part in reply_chunks(self._standing.fold, dict(self._context.records())):
                        yield part
                yield chunk

    def _loop_answer(self, assembled: Assembled, writer: StreamWriter, tools: TurnTools) -> AsyncGenerator[Chunk, None]:
        agent = assembled.agent
        steers = TurnSteering(self._context, writer, self._facts, assembled.prompt, tells_time=agent.tells_time)
        guard, has_budget = assembled.guard, assembled.has_budget
        hooks = _StepHooks(agent, self._facts, self._context, has_budget=has_budget, guard=guard, steering=steers)
        loop = TurnLoop(
            assembled.plan,
            self._standing.fold,
            journal=TurnJournal(self._context, writer, self._facts, guard),
            tools=tools,
            hooks=hooks,
            view=tools.turn.view,
        )
        self._totals = loop.totals
        return loop.run()

    async def _own_answer(self, assembled: Assembled) -> AsyncGenerator[Chunk, None] | None:
        """The answer of an agent that does its own inference; `None` when the loop answers."""
        if self._facts.direct_call is not None or not is_overridden(assembled.agent, "on_chat_message"):
            return None
        stream = await call_hook(assembled.agent, "on_chat_message", assembled.options)
        return None if stream is USE_LOOP else self._own_chunks(stream)

    async def _own_chunks(self, stream: Any) -> AsyncGenerator[Chunk, None]:
        fold, agent = self._standing.fold, self._agent
        assert agent is not None
        if not fold.started:
            yield await self._begin(agent)
        if self._standing.partial_output_shown:
            # What was shown cannot be asked for again in the middle: it is kept, and the turn ends with it.
            self._gave_up = True
            raise ThinkError(agent.interrupted_text)
        async with aclosing(iterate(stream)) as chunks:
            async for chunk in chunks:
                if chunk["type"] not in {"start", "finish"}:
                    yield _fold(fold, chunk)
                elif chunk.get("messageMetadata") is not None:
                    yield _fold(fold, chunk_of.message_metadata(chunk["messageMetadata"]))
        metadata = await _StepHooks(agent, self._facts, self._context).message_metadata("finish", self._totals)
        yield _fold(fold, chunk_of.finish("stop", metadata=metadata))

    async def _begin(self, agent: Think) -> Chunk:
        metadata = await _StepHooks(agent, self._facts, self._context).message_metadata("start", self._totals)
        return _fold(self._standing.fold, chunk_of.start(self._facts.assistant_id, metadata=metadata))

    async def _ask_recovery(self, agent: Think) -> None:
        decision = await ask_recovery(agent, self._facts, self._context, self._standing)
        if decision is None:
            self._gave_up = True
            raise ThinkError(agent.interrupted_text)
        self._follow(decision)

    def _follow(self, decision: RecoveryDecision) -> None:
        self._gave_up = not decision.continue_turn
        if self._gave_up:
            self._keeps_partial = decision.persist
            raise ThinkError("The assistant was interrupted.")

    async def _finish(
        self, writer: StreamWriter, outcome: str, error: ThinkError | None = None, text: str = ""
    ) -> JSONObject:
        for chunk in recorded_outputs(self._standing.fold, dict(self._context.records())):
            writer.write(chunk)  # settled in the moment in which the turn was stopped or its worker lost
        for chunk in reply_chunks(self._standing.fold, dict(self._context.records())):
            writer.write(chunk)  # of a turn that ends without the end of an answer
        has_open = self._standing.fold.unsettled_calls() or self._facts.is_continuation  # of approved calls as well
        if outcome != "completed" and has_open:
            cut = await db(close_cut, self._context, self._turn_id)
            for chunk in cut_outputs(self._standing.fold, cut, call_texts.INTERRUPTED):
                writer.write(chunk)
        message = self._standing.fold.message
        kept = message if self._keeps_partial else without_partial(message)
        message, original_ids = await db(fit_answer, self._facts.key, kept)
        well = self._assembled if outcome == COMPLETED else None  # what an answer that ended well was made of
        end = TurnEnd(
            outcome=outcome,
            message=message,
            totals=replace(
                totals_of(dict(self._context.records()), self._totals.unrecorded),
                ended=self._totals.ended if outcome == COMPLETED else "",
            ),
            agent=self._agent,
            error_text=text,
            error_code=error.code if error else "",
            output=self._totals.output if outcome == "completed" else None,
            max_messages=None if self._agent is None else self._agent.max_persisted_messages,
            original_ids=tuple(original_ids),
            context_usage=None if well is None else await _fullness(well, message),
            pruned={} if well is None else well.prompt.find_prunable(),  # models are sent it no more
        )
        result = {"outcome": outcome, "error": text, "code": end.error_code}
        within = partial(self._context.completing, result) if outcome == COMPLETED else None
        await writer.flush_cold(lambda _offsets: finish_turn(self._context, self._facts, end), within=within)
        self._is_stored = True
        self._context.reached(FINAL)
        return result

    async def _fail(self, writer: StreamWriter, error: ThinkError) -> JSONObject:
        stage: Literal["recovery", "stream", "turn"] = "stream" if self._standing.fold.started else "turn"
        context = ChatErrorContext(
            request_id=self._facts.request_id,
            stage="recovery" if self._gave_up else stage,
            messages_persisted=has_content(self._standing.fold.message),
            code=error.code,
        )
        return await self._finish(writer, "error", error, await user_facing_error(self._agent, error, context))

    @property
    def _is_recovering(self) -> bool:
        """Whether an attempt was lost before this one. A turn that waited and goes on has lost nothing."""
        return self._context.attempt > 1 and not self._context.is_resumed

    async def _announce(self, status: FiberStatus) -> None:
        """Notify readers after the commit that ended this run. Their own look-ups cover a lost notification."""
        if status is FiberStatus.PARKED:
            send_notification(turn_group(self._turn_id), {"type": "turn.stepped"})  # its caller may have the answer
        if status in {FiberStatus.PENDING, FiberStatus.RUNNING, FiberStatus.PARKED}:
            return
        await close_stream(self._turn_id, is_stored=self._is_stored)
        if self._is_recovering:
            _notify_recovering(self._context, False)
        _notify_settled(self._context, self._turn_id)


def _notify_recovering(context: FiberContext, is_recovering: bool) -> None:
    # An attempt that only repeats the end has not read the facts: the fiber's metadata has what is needed.
    known = context.metadata
    request_id = known.get("request_id", "")
    send_notification(
        known["address"], {"type": "turn.recovering", "request_id": request_id, "recovering": is_recovering}
    )


def _notify_settled(context: FiberContext, turn_id: str) -> None:
    """Notify those who follow the instance or have it in a list."""
    known = context.metadata
    send_notification(known["address"], {"type": "turn.settled", "turn_id": turn_id})
    send_conversation(known.get(LISTED_FOR, context.owner_id), known["instance_id"])


async def _fullness(assembled: Assembled, message: Message) -> ContextUsage | None:
    """The session's context usage with this answer; `None` if its counter fails."""
    if not assembled.setup.compacts:
        return None
    with suppress(ThinkError), user_code_boundary("token_counter"):
        history = [*assembled.history, message]
        return await user_code(context_usage, assembled.setup, assembled.plan.system, history)
    return None


def _settle_as(final: JSONObject) -> JSONObject:
    """End the fiber with the recorded outcome."""
    if final["outcome"] == "aborted":
        raise Cancelled(reason="stopped")
    if final["outcome"] == "error":
        raise Failed(final["code"] or "error", final["error"], is_final=True)
    return final


def _fold(fold: Any, chunk: Chunk) -> Chunk:
    fold.apply(chunk)
    return chunk


class _StepHooks:
    """The loop's hooks, on the agent."""

    def __init__(
        self,
        agent: Think,
        facts: TurnFacts,
        context: FiberContext,
        *,
        has_budget: bool | None = None,
        guard: TurnGuard | None = None,
        steering: TurnSteering | None = None,
    ) -> None:
        self._guard = guard
        self._steering = steering
        self._agent = agent
        self._facts = facts
        self._context = context
        self._has_budget = has_budget

    async def before_step(self, context: StepContext) -> StepConfig | None:
        """Ask the policies, then the agent. A first step for which none has to look at anything needs no thread."""
        if context.step_number or policies.looks_before(has_budget=self._has_budget):
            await db(self._check_policies, context.step_number)
        if context.step_number == 0 and self._facts.direct_call is None and writes_summaries(self._agent):
            await db(start_summary, self._facts.key, self._facts.session_id)
        config: StepConfig | None = await ask_hook(self._agent, "before_step", context)
        if self._guard is not None:
            await self._guard.begin_step()
        return with_opening(self._facts, context, config)

    async def take_messages(self, number: int) -> list[JSONObject]:
        """Take what people have sent to steer the answer."""
        return [] if self._steering is None else await self._steering.take(number)

    def _check_policies(self, step_number: int) -> None:
        # The first step follows the begin, which has just read the row; others may follow a look at who steers.
        read = self._facts.instance if step_number == 0 else self._steering and self._steering.instance
        instance = read or find_instance(self._facts.key)
        if self._steering is not None:
            self._steering.instance = None
        if instance is not None:
            steps = StepsSoFar(
                count=step_number,
                cost=totals_of(dict(self._context.records())).cost,
                session_id=self._facts.session_id,
                has_budget=self._has_budget if step_number == 0 else None,
            )
            policies.check_step(instance, steps)

    async def on_step_finish(self, record: StepRecord) -> None:
        """Notify the agent."""
        await notify_hook(self._agent, "on_step_finish", record)

    async def message_metadata(self, moment: Moment, totals: TurnTotals) -> JSONObject | None:
        """Ask the agent."""
        if not is_overridden(self._agent, "get_message_metadata"):
            return None
        context = MetadataContext(
            moment=moment,
            request_id=self._facts.request_id,
            message_id=self._facts.assistant_id,
            continuation=self._facts.is_continuation,
            finish_reason=str(totals.finish_reason or "") if moment == "finish" else "",
            model_name=totals.model_name,
            steps=totals.steps,
            input_tokens=totals.usage.input_tokens,
            output_tokens=totals.usage.output_tokens,
        )
        metadata = await ask_hook(self._agent, "get_message_metadata", context)
        return None if metadata is None else load(dump(metadata))
