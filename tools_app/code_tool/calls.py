"""The functions that code may call: tools, the workspace, and the catalogue of both."""

import functools
from dataclasses import dataclass, replace

from django.db import Error as DatabaseError

from fibers.errors import FiberError, Parked
from fibers.waits import Wait, WaitEnd
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.outages import is_outage
from tools_app.calls.asking import judge_call
from tools_app.calls.run import execute
from tools_app.calls.services import settle_inner_call
from tools_app.code_tool import records
from tools_app.code_tool.journal import Attempt, CallJournal, CallOutcome
from tools_app.code_tool.state.functions import StateFunctions
from tools_app.core.code.catalogue import Catalogue
from tools_app.core.guard.reach import held_back, note_here
from tools_app.core.inner_calls import inner_call_id
from tools_app.core.permissions.rules import RULE
from tools_app.core.tool import Ask, AskedCall, Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult, details_of
from tools_app.errors import CodeInvalid, DatabaseAway
from tools_app.models.code_runs import ExecutionCallStatus
from tools_app.sandbox.contract import Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class _Allowed:
    """A call that may run. `was_asked`: a person has approved it. `rule`: what lets it run without one."""

    call: ToolCall
    was_asked: bool = False
    rule: JSONObject | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CodeCalls:
    """Answers the calls of one run. Everything but the catalogue goes through the journal."""

    catalogue: Catalogue
    state: StateFunctions | None
    journal: CallJournal
    context: ToolContext
    ask: Ask

    async def answer(self, name: str, args: list[JSONValue]) -> Answer:
        """Answer a call of the code. Errors: `ThinkError` for the code; `RunAborted`, `Parked` for the run.

        `DatabaseAway` for the run, too: code that saw the error would go on as if its call had failed for good.
        """
        try:
            return await self._answer(name, args)
        except DatabaseError as error:
            if self.context.repeats_outages and is_outage(error):
                raise DatabaseAway(error) from error
            raise

    async def _answer(self, name: str, args: list[JSONValue]) -> Answer:
        family = name.partition(".")[0]
        if family == "codemode":
            return Answer(value=self._look_up(name, _one_object(name, args)))
        try:
            value = _one_object(name, args)
        except CodeInvalid as error:
            raise CodeInvalid(self.catalogue.explained(name, error.message)) from None
        if family == "state" and self.state is not None:
            return await self.journal.call(name, args, functools.partial(self._run_state, self.state, name, value))
        tool = self.catalogue.tool(name)
        guard, permissions = self.context.guard, self.context.permissions
        is_asked = tool.needs_approval or tool.asks_person or (guard is not None and guard.may_ask(tool))
        is_asked = is_asked or (permissions is not None and permissions.may_decide(tool))
        status = ExecutionCallStatus.BEGUN if is_asked else ExecutionCallStatus.RUNNING
        return await self.journal.call(name, args, functools.partial(self._run_tool, name, tool, value), status=status)

    def _look_up(self, name: str, value: JSONObject) -> JSONValue:
        if name == "codemode.search":
            limit = value.get("limit", 10)
            return self.catalogue.search(str(value.get("query", "")), limit if isinstance(limit, int) else 10)
        if name == "codemode.describe":
            return self.catalogue.describe(str(value.get("name", "")))
        raise CodeInvalid(f"There is no function {name}. codemode has search and describe.")

    async def _run_state(self, state: StateFunctions, name: str, value: JSONObject, attempt: Attempt) -> CallOutcome:
        if attempt.was_cut and not state.repeats(name):
            return CallOutcome(output=records.INTERRUPTED, is_error=True)
        with held_back() as texts:
            try:
                outcome = CallOutcome(output=await state.run(name, value))
            except FiberError:
                raise
            except CodeInvalid as error:
                outcome = CallOutcome(output=self.catalogue.explained(name, error.message), is_error=True)
            except ThinkError as error:
                rule = error.data.get(RULE)
                outcome = CallOutcome(output=error.message, is_error=True, details={RULE: rule} if rule else {})
        for text in texts:
            note_here(text.origin, text.source)
        return replace(outcome, details={**details_of(origins=texts), **outcome.details}) if texts else outcome

    async def _run_tool(self, path: str, tool: Tool, value: JSONObject, attempt: Attempt) -> CallOutcome:
        ordinal = attempt.row.ordinal
        call = ToolCall(call_id=inner_call_id(self.context.call_id, ordinal), tool_name=tool.name, input=value)
        context = replace(
            self.context,
            call_id=call.call_id,
            tool_name=tool.name,
            attempt=attempt.row.attempt,
            idempotency_key=f"{self.context.idempotency_key}:{ordinal}",
            waiter=functools.partial(self._wait, ordinal),
        )
        try:
            tool.parse(value)
        except ThinkError as error:
            return CallOutcome(output=self.catalogue.explained(path, error.message), is_error=True)
        was_asked, outcome = attempt.row.was_asked, CallOutcome(output=records.INTERRUPTED, is_error=True)
        if tool.reruns or not attempt.was_cut:
            allowed = await self._allowed(tool, call, context, attempt)
            if isinstance(allowed, CallOutcome):
                was_asked, outcome = True, allowed
            else:
                was_asked, outcome = allowed.was_asked, await self._execute(tool, allowed, context, attempt)
        if not was_asked or self.context.asker is None:
            return outcome
        return replace(outcome, also=functools.partial(_settle_asked, call.call_id, context.turn_id))

    async def _execute(self, tool: Tool, allowed: _Allowed, context: ToolContext, attempt: Attempt) -> CallOutcome:
        inner, call, result = self.context.inner, allowed.call, ToolResult(output=None)
        if inner is None:
            items = execute(tool, call, context)
        else:
            items = inner.run(tool, call, context, is_approved=allowed.was_asked)
        try:
            async for item in items:
                if isinstance(item, ToolResult):
                    result = item
        except Parked:
            await self.journal.move(attempt.row, ExecutionCallStatus.WAITING)
            raise
        details = {} if inner is None else await inner.keep(call, result)
        if inner is not None and details:
            inner.deliver(call.call_id, details)
        details = {**details, RULE: allowed.rule} if allowed.rule is not None else details
        return CallOutcome(output=result.output, is_error=result.is_error, details=details)

    async def _allowed(
        self, tool: Tool, call: ToolCall, context: ToolContext, attempt: Attempt
    ) -> _Allowed | CallOutcome:
        """The call as it may run, or why it may not. Parks while a person has not decided."""
        row = attempt.row
        if row.status in {ExecutionCallStatus.RUNNING, ExecutionCallStatus.WAITING}:  # it needs no decision, or has one
            decided = call if row.edited_input is None else replace(call, input=row.edited_input)
            return _Allowed(call=decided, was_asked=row.was_asked)
        if row.status == ExecutionCallStatus.BEGUN:
            judged = await judge_call(tool, call, context)
            if judged.denied is not None:
                return CallOutcome(output=judged.denied.output, is_error=True, details=judged.denied.details)
            if not judged.must_ask:
                await self.journal.move(row, ExecutionCallStatus.RUNNING)
                return _Allowed(call=call, rule=judged.used)
            inner = self.context.inner
            reviewed = await inner.review(tool, call) if inner is not None and judged.is_by_tool else None
            if reviewed is not None:
                await self.journal.move(row, ExecutionCallStatus.RUNNING)
                return _Allowed(call=call, rule=reviewed)
            await self.journal.move(row, ExecutionCallStatus.ASKED)
        decision = await self.ask(AskedCall(tool=tool, call=call, ordinal=row.ordinal, context=self.context))
        if decision.refused is not None:
            return CallOutcome(output=decision.refused.output, is_error=decision.refused.is_error)
        if not decision.is_approved:
            reason = f": {decision.reason}" if decision.reason else "."
            return CallOutcome(output=f"A person did not approve this call{reason}", is_error=True)
        if decision.edited_input is not None:
            try:
                tool.parse(decision.edited_input)
            except ThinkError as error:
                return CallOutcome(output=error.message, is_error=True)
            call = replace(call, input=decision.edited_input)
        await self.journal.move(row, ExecutionCallStatus.RUNNING, edited_input=decision.edited_input)
        return _Allowed(call=call, was_asked=True)

    async def _wait(self, ordinal: int, wait: Wait) -> WaitEnd:
        key = f"{ordinal}:{wait.key}"
        return await self.context.wait(wait.kind, label=wait.label, key=key, seconds=wait.seconds, request=wait.request)


def _settle_asked(call_id: str, turn_id: str, outcome: CallOutcome, duration_ms: int) -> None:
    """Write how a call ended into the row of the question that a person was asked."""
    result = ToolResult(output=outcome.output, is_error=outcome.is_error, duration_ms=duration_ms)
    settle_inner_call(call_id, turn_id=turn_id, result=result)


def _one_object(name: str, args: list[JSONValue]) -> JSONObject:
    """The argument of a call. Errors: `CodeInvalid`."""
    if not args or args == [None]:
        return {}
    if len(args) == 1 and isinstance(args[0], dict):
        return args[0]
    raise CodeInvalid(f"{name} takes one object with named fields, as {name}({{field: value}}).")
