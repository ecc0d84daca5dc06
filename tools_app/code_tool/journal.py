"""The calls of one execution, in the order in which its code makes them and in which it is answered.

Code that runs again makes the same calls, as its clock, its randomness and its answers are the same. So a call is known
by its ordinal; that name and arguments agree is checked. Answers are given in the order in which they were recorded.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Final, ParamSpec, TypeVar

from fibers.errors import Parked
from fibers.waits import Wait
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, byte_size, dump, fingerprint
from tools_app.code_tool import records
from tools_app.errors import ReplayMismatch, ToolError
from tools_app.models.code_runs import Execution, ExecutionCall, ExecutionCallStatus
from tools_app.sandbox.contract import Answer

P = ParamSpec("P")
R = TypeVar("R")

ORDER_SECONDS: Final = 10.0
PREVIEW_CHARS: Final = 200


class RunAborted(BaseException):
    """Ends a run from within one of its calls. `error`: what the execution fails with."""

    def __init__(self, error: ThinkError) -> None:
        self.error = error
        super().__init__(error)


class CallFailed(ToolError):
    """The call failed with this text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """A call that is to run. `was_cut`: a crash ended an earlier attempt, which may have had its effect."""

    row: ExecutionCall
    was_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CallOutcome:
    """The outcome of a call: its output, or the text of its error.

    `details`: what the result of the tool call that contains the code has of it. `also` writes in the transaction that
    records the outcome.
    """

    output: JSONValue
    is_error: bool = False
    details: JSONObject = field(default_factory=dict)
    also: Callable[["CallOutcome", int], None] | None = None


Perform = Callable[[Attempt], Awaitable[CallOutcome]]


class CallJournal:
    """Records the calls of a run, and answers those that an earlier run has recorded."""

    def __init__(self, execution: Execution, recorded: list[ExecutionCall], *, max_bytes: int) -> None:
        self.waits: list[Wait] = []
        self.made: list[JSONObject] = []
        self._execution = execution
        self._recorded = {row.ordinal: row for row in recorded}
        self._places = _places(recorded)
        self._max_bytes = max_bytes
        self._ordinal = 0
        self._answers = len(self._places)
        self._given = 0
        self._turns: dict[int, asyncio.Event] = {}

    async def call(
        self,
        name: str,
        args: list[JSONValue],
        perform: Perform,
        *,
        status: ExecutionCallStatus = ExecutionCallStatus.RUNNING,
    ) -> Answer:
        """Answer a call: as recorded, or by what `perform` gives, which is recorded first.

        `status`: of a new call; `BEGUN` where `perform` finds out whether it may run.

        Errors: `CallFailed` for the code; `RunAborted` where nothing can be recorded or the code does not repeat its
        calls; `Parked` of a call that waits.
        """
        self._ordinal += 1  # before anything is awaited: the order of the calls is that of the code
        ordinal = self._ordinal
        shown: JSONObject = {"name": name, "input": dump(args)[:PREVIEW_CHARS], "ok": False, "ms": 0}
        self.made.append(shown)
        started = time.monotonic()
        try:
            row = self._known(ordinal, name, args)
            if row is not None and row.status in records.SETTLED:
                settled = _settled_before(row, self._places[ordinal])
            else:
                attempt = await self._attempt(row, ordinal, name, args, status)
                settled = await self._perform(attempt, perform)
            await self._in_order(settled.settled_as)
        except Parked as parked:
            self.waits += parked.waits
            shown["waits"] = True
            raise
        shown["ok"] = not settled.is_error
        shown["ms"] = settled.duration_ms or round((time.monotonic() - started) * 1000)
        if settled.is_error:
            raise CallFailed(str(settled.output))
        return Answer(value=settled.output, now_ms=settled.clock_ms)

    def _known(self, ordinal: int, name: str, args: list[JSONValue]) -> ExecutionCall | None:
        row = self._recorded.get(ordinal)
        if row is not None and (row.name, row.input_hash) != (name, fingerprint(args)):
            raise RunAborted(
                ReplayMismatch(
                    f"The code did not repeat its calls: call {ordinal} was {row.name} and is now {name}, or has other "
                    "arguments. Nothing was repeated."
                )
            )
        return row

    async def _perform(self, attempt: Attempt, perform: Perform) -> records.Settled:
        started = time.monotonic()
        outcome = await perform(attempt)
        if byte_size(outcome.output) > self._max_bytes:
            text = f"The result of this call is larger than {self._max_bytes} bytes."
            outcome = replace(outcome, output=text, is_error=True)
        self._answers += 1
        settled = records.Settled(
            output=outcome.output,
            is_error=outcome.is_error,
            settled_as=self._answers,
            clock_ms=time.time_ns() // 1_000_000,
            duration_ms=round((time.monotonic() - started) * 1000),
            details=outcome.details,
        )
        also = None if outcome.also is None else partial(outcome.also, outcome, settled.duration_ms)
        await self._write(records.settle_call, attempt.row.pk, settled, also)
        return settled

    async def _attempt(
        self, row: ExecutionCall | None, ordinal: int, name: str, args: list[JSONValue], status: ExecutionCallStatus
    ) -> Attempt:
        if row is None:
            new = records.NewCall(ordinal=ordinal, name=name, args=args, status=status)
            return Attempt(row=await self._write(records.begin_call, self._execution.pk, new))
        if row.status != ExecutionCallStatus.RUNNING:
            return Attempt(row=row)
        await self.move(row, ExecutionCallStatus.RUNNING, repeats=True)
        row.attempt += 1
        return Attempt(row=row, was_cut=True)

    async def move(
        self,
        row: ExecutionCall,
        status: ExecutionCallStatus,
        *,
        edited_input: JSONObject | None = None,
        repeats: bool = False,
    ) -> None:
        """Record that a call without a result goes on. Errors: `RunAborted`."""
        await self._write(records.move_call, row.pk, status, edited_input=edited_input, repeats=repeats)

    async def _write(self, service: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
        """Record. Where that fails the run ends: the code must not know a result that is not recorded."""
        try:
            return await db(service, *args, **kwargs)
        except ThinkError as error:
            raise RunAborted(error) from error

    async def _in_order(self, place: int) -> None:
        """Wait until every answer before this one has been given."""
        if place > self._given + 1:
            turn = self._turns.setdefault(place, asyncio.Event())
            try:
                async with asyncio.timeout(ORDER_SECONDS):
                    await turn.wait()
            except TimeoutError:
                text = "The code did not repeat its calls: one that was answered before is missing."
                raise RunAborted(ReplayMismatch(text)) from None
        self._given = max(self._given, place)
        following = self._turns.pop(self._given + 1, None)
        if following is not None:
            following.set()


def _places(recorded: list[ExecutionCall]) -> dict[int, int]:
    """The place of each recorded answer, by ordinal, without gaps: an answer that a crash kept from the table has none.

    The code had none of those that came after it, so they may be given before it now.
    """
    settled = [row for row in recorded if row.status in records.SETTLED]
    settled.sort(key=lambda row: (row.settled_as or 0, row.ordinal))
    return {row.ordinal: place for place, row in enumerate(settled, start=1)}


def _settled_before(row: ExecutionCall, place: int) -> records.Settled:
    return records.Settled(
        output=row.output,
        is_error=row.status == ExecutionCallStatus.FAILED,
        settled_as=place,
        clock_ms=row.clock_ms,
        duration_ms=row.duration_ms,
    )
