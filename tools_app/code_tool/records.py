"""Readers and writers of executions; the only ones.

Within a fiber each writes under its fence, so that a worker which lost its lease records nothing any more.
"""

import secrets
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone

from fibers.context import current_fiber
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, fingerprint
from tools_app.models.code_runs import Execution, ExecutionCall, ExecutionCallStatus, ExecutionStatus

KEPT: Final = 50
"""Executions of a scope that are kept. Those that wait are kept besides."""
INTERRUPTED: Final = "The call was interrupted before its result was recorded."
SETTLED: Final = frozenset({ExecutionCallStatus.SUCCEEDED, ExecutionCallStatus.FAILED})
ENDED: Final = frozenset({ExecutionStatus.SUCCEEDED, ExecutionStatus.FAILED})


@contextmanager
def _fenced() -> Iterator[None]:
    fiber = current_fiber()
    if fiber is None:
        with transaction.atomic():
            yield
        return
    with fiber.fenced():
        yield


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExecution:
    """The facts of an execution that is to be opened."""

    key: str
    scope: str
    owner_id: int | None
    turn_id: str
    call_id: str
    code: str


def open_execution(new: NewExecution) -> tuple[Execution, list[ExecutionCall]]:
    """The execution under this key, made where there is none, and the calls it has made so far."""
    with _fenced():
        row, _made = Execution.objects.get_or_create(
            key=new.key,
            defaults={
                "scope": new.scope,
                "owner_id": new.owner_id,
                "turn_id": new.turn_id,
                "call_id": new.call_id,
                "code": new.code,
                "seed": secrets.token_hex(16),
                "clock_ms": time.time_ns() // 1_000_000,
            },
        )
        if row.status == ExecutionStatus.WAITING:
            Execution.objects.filter(pk=row.pk).update(status=ExecutionStatus.RUNNING)
        return row, list(row.calls.order_by("ordinal"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """The end of an execution. Shape: `console` is a list of `{level, text}`."""

    outcome: str
    value: JSONValue = None
    error: str = ""
    console: JSONValue = None
    duration_ms: int = 0


def end_execution(pk: int, ending: Ending) -> None:
    """Write how an execution ended, once, and delete the oldest of its scope beyond those that are kept."""
    with _fenced():
        status = ExecutionStatus.FAILED if ending.error else ExecutionStatus.SUCCEEDED
        changed = (
            Execution.objects.filter(pk=pk)
            .exclude(status__in=ENDED)
            .update(
                status=status,
                outcome=ending.outcome,
                value=ending.value,
                error=ending.error,
                console=ending.console or [],
                duration_ms=ending.duration_ms,
                ended_at=timezone.now(),
            )
        )
        if not changed:
            return
        cut = ExecutionCall.objects.filter(execution_id=pk).exclude(status__in=SETTLED)
        cut.update(status=ExecutionCallStatus.FAILED, output=INTERRUPTED)
        _forget_old(Execution.objects.values_list("scope", flat=True).get(pk=pk))


def _forget_old(scope: str) -> None:
    ended = Execution.objects.filter(scope=scope, status__in=ENDED).order_by("-pk")
    old = list(ended.values_list("pk", flat=True)[KEPT:])
    Execution.objects.filter(pk__in=old).delete()


def pause_execution(pk: int) -> None:
    """Write that an execution waits for an answer from outside."""
    with _fenced():
        Execution.objects.filter(pk=pk).exclude(status__in=ENDED).update(status=ExecutionStatus.WAITING)


@dataclass(frozen=True, slots=True, kw_only=True)
class NewCall:
    """A call that code makes. `ordinal`: its place among the calls, from 1; `args`: as they came."""

    ordinal: int
    name: str
    args: list[JSONValue]
    status: ExecutionCallStatus


def begin_call(execution_pk: int, call: NewCall) -> ExecutionCall:
    """Write that a call is made, before it runs."""
    with _fenced():
        return ExecutionCall.objects.create(
            execution_id=execution_pk,
            ordinal=call.ordinal,
            name=call.name,
            input=call.args,
            input_hash=fingerprint(call.args),
            status=call.status,
        )


def move_call(
    pk: int, status: ExecutionCallStatus, *, edited_input: JSONObject | None = None, repeats: bool = False
) -> None:
    """Write that a call that has no result goes on: it waits, or runs (`repeats`: after it was cut)."""
    with _fenced():
        changes: dict[str, object] = {"status": status}
        if status == ExecutionCallStatus.ASKED:
            changes["was_asked"] = True
        if edited_input is not None:
            changes["edited_input"] = edited_input
        if repeats:
            changes["attempt"] = F("attempt") + 1
        ExecutionCall.objects.filter(pk=pk).exclude(status__in=SETTLED).update(**changes)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """The answer to a call. `settled_as`: its place among the answers; `clock_ms`: the code's time then.

    `details`: what the result of the tool call that contains the code has of it.
    """

    output: JSONValue
    is_error: bool
    settled_as: int
    clock_ms: int
    duration_ms: int
    details: JSONObject | None = None


def settle_call(pk: int, settled: Settled, also: Callable[[], None] | None = None) -> None:
    """Write the answer to a call, before the code has it. `also` writes in the same transaction."""
    with _fenced():
        if also is not None:
            also()
        ExecutionCall.objects.filter(pk=pk).exclude(status__in=SETTLED).update(
            status=ExecutionCallStatus.FAILED if settled.is_error else ExecutionCallStatus.SUCCEEDED,
            output=settled.output,
            settled_as=settled.settled_as,
            clock_ms=settled.clock_ms,
            duration_ms=settled.duration_ms,
            details=settled.details or None,
        )


def forget_executions(*, scopes: Collection[str] = (), turn_ids: Collection[str] = ()) -> None:
    """Delete the executions of these scopes and turns, with their calls."""
    Execution.objects.filter(Q(scope__in=scopes) | Q(turn_id__in=turn_ids)).delete()
