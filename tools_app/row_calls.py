"""Calls of tools that are rows of a developer's own table, run where the tools are.

    create_row_call_effect("desk.calls", lambda: DeskCall.objects.filter(status="pending"), tools=[search])

A row that enters the queryset is claimed, its tool runs, and the result is written: each of these in one transaction
with the journal of the fiber that does it. The generator of the rows and the process with the tools share the table
and nothing else; several processes may have the same tools.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Final

from django.core.exceptions import FieldDoesNotExist
from django.db import DEFAULT_DB_ALIAS
from django.db.models import Model, QuerySet

from fibers.context import FiberContext
from fibers.effects.declaring import EffectEvent, RowEffect, create_effect
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from tools_app.calls.run import execute
from tools_app.core.call_check import check_call
from tools_app.core.tool import Tool, ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.core.toolset import Toolset, ToolSource
from tools_app.errors import ToolDeclarationInvalid

__all__ = ["RowColumns", "create_row_call_effect"]

CLAIMED: Final = "claimed"
RESULT: Final = "result"
SETTLED: Final = "settled"
INTERRUPTED: Final = "The call was interrupted. Its outcome is unknown, and the tool may not run twice."


@dataclass(frozen=True, slots=True, kw_only=True)
class RowColumns:
    """Names of the columns of a table of calls. `args` and `result` hold JSON."""

    name: str = "name"
    args: str = "args"
    status: str = "status"
    result: str = "result"
    error: str = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class CallHooks:
    """The writers of a table of calls. Sync; each runs in the transaction of the record that it was done."""

    claim: Callable[[Any], object]
    complete: Callable[[Any, JSONValue], object]
    fail: Callable[[Any, str], object]


def create_row_call_effect(  # noqa: PLR0913 - one keyword for each thing an effect may declare
    name: str,
    query: Callable[[], QuerySet[Any]],
    *,
    tools: ToolSource,
    columns: RowColumns = RowColumns(),
    on_executing: Callable[[Any], object] | None = None,
    on_complete: Callable[[Any, JSONValue], object] | None = None,
    on_error: Callable[[Any, str], object] | None = None,
    max_retries: int = 3,
) -> RowEffect:
    """Run a tool for each row that enters `query`, which gives the calls that wait for these tools.

    **Shape:** by default a status goes from `pending` to `executing`, and from there to `completed` or `failed`; a
    result of a row that is not `executing` any more is dropped. `on_executing(row)`, `on_complete(row, result)` and
    `on_error(row, text)` write in its place; they are sync and short, and run in the transaction that notes that they
    ran. `on_executing` returns `False` for a row that is not to be run. An unknown tool and arguments that do not fit
    are errors without a run.
    **Durability:** a row is claimed once and settled once. A tool whose process died runs again under the same
    `ToolContext.idempotency_key`; one with `reruns=False` is an error then. A writer that raises is tried
    `max_retries` times without the tool being run again; then the row gets the error.
    **Errors:** `ToolDeclarationInvalid` for a table without such columns, or in another database than the default one;
    those of `create_effect`.
    """
    toolset = Toolset(tools)
    model, alias = query().model, query().db
    if alias != DEFAULT_DB_ALIAS:
        raise ToolDeclarationInvalid(
            f"{model.__name__} is in the database {alias!r}: calls are claimed in the default one"
        )
    own = _writers(model, columns)
    _check_columns(model, columns, all_of_them=not (on_executing and on_complete and on_error))
    rows = _RowCalls(
        toolset=toolset,
        columns=columns,
        hooks=CallHooks(
            claim=on_executing or own.claim, complete=on_complete or own.complete, fail=on_error or own.fail
        ),
        writes=max_retries,
    )
    return create_effect(name, query, on_enter=rows.run, max_retries=max_retries + 1)


def _check_columns(model: type[Model], columns: RowColumns, *, all_of_them: bool) -> None:
    names = [each.name for each in fields(columns)] if all_of_them else ["name", "args"]
    for name in names:
        column = getattr(columns, name)
        try:
            model._meta.get_field(column)
        except FieldDoesNotExist as error:
            message = f"{model.__name__} has no column {column!r}: name it in RowColumns({name}=...)"
            raise ToolDeclarationInvalid(message) from error


def _writers(model: type[Model], columns: RowColumns) -> CallHooks:
    """The default writers: each is one conditional UPDATE, which loses where the row has moved on."""

    def move(row: Any, sources: tuple[str, ...], **values: Any) -> bool:
        found = model._default_manager.filter(pk=row.pk, **{f"{columns.status}__in": sources})
        return bool(found.update(**{getattr(columns, name): value for name, value in values.items()}))

    return CallHooks(
        claim=lambda row: move(row, ("pending",), status="executing"),
        complete=lambda row, result: move(row, ("executing",), status="completed", result=result),
        fail=lambda row, text: move(row, ("pending", "executing"), status="failed", error=text),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _RowCalls:
    """Runs the calls of one effect."""

    toolset: Toolset
    columns: RowColumns
    hooks: CallHooks
    writes: int

    async def run(self, event: EffectEvent) -> None:
        """Claim, run, settle; over the journal, so that a crash repeats none of the three."""
        fiber, row = event.fiber, event.row
        if await fiber.recorded(SETTLED) is not None:
            return
        name, args = getattr(row, self.columns.name), getattr(row, self.columns.args)
        checked = check_call(self.toolset, name, args if isinstance(args, str) else dump(args))
        if checked.error is not None:
            await db(self._settle, event, ToolResult(output=checked.error, is_error=True))
            return
        claimed = await fiber.recorded(CLAIMED)
        found: JSONObject = await db(self._claim, event) if claimed is None else claimed.value
        if found["won"]:
            result = await fiber.recorded(RESULT)
            call = ToolCall(call_id=event.object_pk, tool_name=name, input=checked.input)
            ended = await self._result(event, call, found) if result is None else result.value
            if fiber.retries > self.writes:  # its writer has failed each time
                ended = {"output": "The result of the call could not be stored.", "is_error": True}
            await db(self._settle, event, ToolResult(output=ended["output"], is_error=ended["is_error"]))

    def _claim(self, event: EffectEvent) -> JSONObject:
        with event.fiber.fenced():
            found: JSONObject = {"won": self.hooks.claim(event.row) is not False, "attempt": event.fiber.attempt}
            event.fiber.record_in(CLAIMED, found)
        return found

    async def _result(self, event: EffectEvent, call: ToolCall, claimed: JSONObject) -> JSONObject:
        fiber, tool = event.fiber, self.toolset.get(call.tool_name)
        ended: JSONObject = {"output": INTERRUPTED, "is_error": True}
        if tool.reruns or claimed["attempt"] == fiber.attempt:
            result = await _executed(tool, call, fiber, event.key)
            ended = {"output": result.output, "is_error": result.is_error}
        await fiber.record(RESULT, ended)
        return ended

    def _settle(self, event: EffectEvent, result: ToolResult) -> None:
        with event.fiber.fenced():
            if result.is_error:
                self.hooks.fail(event.row, str(result.output))
            else:
                self.hooks.complete(event.row, result.output)
            event.fiber.record_in(SETTLED, None)


async def _executed(tool: Tool, call: ToolCall, fiber: FiberContext, key: str) -> ToolResult:
    context = ToolContext(
        call_id=call.call_id,
        tool_name=call.tool_name,
        user_id=None,
        agent="",
        instance_name="",
        turn_id="",
        attempt=fiber.attempt,
        idempotency_key=key,
    )
    fiber.passed(f"tool:{tool.name}:{call.call_id}:begins")
    async for item in execute(tool, call, context):
        if isinstance(item, ToolResult):
            fiber.passed(f"tool:{tool.name}:{call.call_id}:returned")
            return item
    raise AssertionError("the executor gives a result at the end")
