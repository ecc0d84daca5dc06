"""Writers of tool calls and decisions; the only ones."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now
from django.utils import timezone

from fibers.models import Fiber
from fibers.services import cancel_pending
from thinkproject.kernel.append_only import erasing
from thinkproject.kernel.jsonvalue import JSONObject, fingerprint
from tools_app.core.inner_calls import inner_prefix
from tools_app.core.permissions.rules import RULE, RuleAction
from tools_app.core.questions import question_of
from tools_app.core.tool_calls import OPEN, CallStatus, ToolCall, ToolPause, ToolResult
from tools_app.models import ApprovalEvent, ApprovalEventKind, ToolCallRecord

MAX_REASON_CHARS = 1000
MAX_EARLY = 64
_DECIDED = (CallStatus.APPROVED, CallStatus.RUNNING)


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """The author of an answer or decision: a user (`None`: the product) and the entry point."""

    user_id: int | None
    via: str


@transaction.atomic
def begin_call(call: ToolCall, *, turn_id: str, owner_id: int | None) -> int:
    """Write that a call runs; returns the attempt (1 the first time, more after a crash).

    Durability: safe to call again; a settled row is left as it is. An approved call begins its first attempt.
    """
    row, made = ToolCallRecord.objects.get_or_create(
        turn_id=turn_id,
        call_id=call.call_id,
        defaults={"owner_id": owner_id, "tool_name": call.tool_name, "input": call.input},
    )
    if made:
        return 1
    rows = ToolCallRecord.objects.filter(pk=row.pk)
    if row.status == CallStatus.EARLY:  # a call of ours: what a client says of it does not count
        rows.update(status=CallStatus.RUNNING, output=None, continues=False, scope="", **_call_fields(call))
        return 1
    if rows.filter(status=CallStatus.APPROVED).update(status=CallStatus.RUNNING):
        return row.attempt
    rows.filter(status=CallStatus.RUNNING).update(attempt=F("attempt") + 1)
    return row.attempt + 1


def settle_call(call_id: str, *, turn_id: str, result: ToolResult) -> bool:
    """Write how a call that ran ended; `False` if it had ended already (the first result wins).

    A rule that decided about it is an event of the call. In the caller's transaction.
    """
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, call_id=call_id, status=CallStatus.RUNNING)
    row = rows.only("pk", "input", "expires_at").first()
    if row is None or not _settle(row.pk, result, {CallStatus.RUNNING}):
        return False
    if isinstance(rule := result.details.get(RULE), dict):
        is_refusal = rule.get("action") == RuleAction.DENY.value
        kind = ApprovalEventKind.REFUSED if is_refusal else ApprovalEventKind.ALLOWED
        _note(row, kind, Actor(user_id=None, via="rule"), str(rule.get("name", "")))
    return True


def note_executor(idempotency_key: str, fiber_id: str) -> None:
    """Write which fiber runs a call in another process. A call without a row, as code makes it, has none."""
    turn_id, _, call_id = idempotency_key.partition(":")
    ToolCallRecord.objects.filter(turn_id=turn_id, call_id=call_id).update(executor_id=fiber_id)


@transaction.atomic
def note_late(fiber_id: str) -> None:
    """Note that the result of a call came when its turn did not wait any more. People see it; no model does."""
    for row in ToolCallRecord.objects.filter(executor_id=fiber_id):
        ToolCallRecord.objects.filter(pk=row.pk).update(details={**(row.details or {}), "late": True})


def forget_executors(scopes: Collection[str]) -> None:
    """Let go of the fibers that run calls of these conversations: they are about to be removed."""
    ToolCallRecord.objects.filter(executor__scope__in=scopes).update(executor=None)


@transaction.atomic
def close_cut_calls(turn_id: str, text: str) -> list[str]:
    """Settle the calls of a turn that still ran when it ended, as failed with this text. Returns their call ids."""
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, status=CallStatus.RUNNING, wait_key="")
    ids = dict(rows.select_for_update().values_list("pk", "call_id"))
    ToolCallRecord.objects.filter(pk__in=ids).update(status=CallStatus.FAILED, output=text, settled_at=timezone.now())
    return list(ids.values())


@transaction.atomic
def pause_call(
    call: ToolCall, pause: ToolPause, *, turn_id: str, scope: str, owner_id: int | None, wait_key: str = ""
) -> ToolCallRecord:
    """Record that a call waits for an answer from outside its turn; returns its row.

    `wait_key`: of the wait in which the turn itself is parked meanwhile, for a call that another call makes. Safe to
    call again; the first counts.
    """
    expires = None if pause.expires_seconds is None else Now() + timedelta(seconds=pause.expires_seconds)
    row, made = ToolCallRecord.objects.get_or_create(
        turn_id=turn_id,
        call_id=call.call_id,
        defaults={
            "owner_id": owner_id,
            "scope": scope,
            "tool_name": call.tool_name,
            "input": call.input,
            "status": pause.status,
            "approval_id": pause.approval_id,
            "question": pause.question,
            "lasting": question_of(pause.question).lasting,
            "expires_at": expires,
            "wait_key": wait_key,
        },
    )
    if not made and row.status == CallStatus.EARLY:
        made = _take_early(row, call, pause, expires, wait_key)
    if made and pause.status is CallStatus.ASKED:
        _note(row, ApprovalEventKind.ASKED, Actor(user_id=None, via="turn"), "")
    return row


def _take_early(row: ToolCallRecord, call: ToolCall, pause: ToolPause, expires: object, wait_key: str) -> bool:
    """Let a client's early answer count for a call of a client; a question to a person is asked all the same."""
    rows = ToolCallRecord.objects.filter(pk=row.pk, status=CallStatus.EARLY)
    if pause.status is CallStatus.WAITING:
        early: JSONObject = row.output or {}
        rows.update(status=CallStatus.WAITING, output=None, **_call_fields(call))
        _settle(row.pk, ToolResult(output=early.get("output"), is_error=bool(early.get("is_error"))), OPEN)
        return False
    rows.update(
        status=CallStatus.ASKED,
        output=None,
        continues=False,
        approval_id=pause.approval_id,
        question=pause.question,
        lasting=question_of(pause.question).lasting,
        expires_at=expires,
        wait_key=wait_key,
        **_call_fields(call),
    )
    row.refresh_from_db()
    return True


def _call_fields(call: ToolCall) -> dict[str, Any]:
    return {"tool_name": call.tool_name, "input": call.input}


def keep_open(row_ids: Collection[int]) -> None:
    """Let questions last: what the conversation goes on with neither answers nor ends them."""
    ToolCallRecord.objects.filter(pk__in=row_ids, status=CallStatus.ASKED).update(lasting=True)


@transaction.atomic
def keep_early_answer(
    call_id: str, result: ToolResult, *, turn_id: str, scope: str, owner_id: int | None, continues: bool
) -> bool:
    """Keep a client's result of a call that its turn has not handed out yet; `False` if one is kept already.

    At most 64 for a turn: further ones cannot belong to a model's call.
    """
    kept = ToolCallRecord.objects.filter(turn_id=turn_id, status=CallStatus.EARLY)
    if kept.count() >= MAX_EARLY:
        return False
    _, made = ToolCallRecord.objects.get_or_create(
        turn_id=turn_id,
        call_id=call_id,
        defaults={
            "owner_id": owner_id,
            "scope": scope,
            "status": CallStatus.EARLY,
            "output": {"output": result.output, "is_error": result.is_error},
            "continues": continues,
        },
    )
    return made


@transaction.atomic
def answer_call(row: ToolCallRecord, result: ToolResult, *, continues: bool) -> bool:
    """Give a client's call its result from outside; `False` if another answer was first or it is not a client's."""
    if not _settle(row.pk, result, {CallStatus.WAITING}):
        return False
    ToolCallRecord.objects.filter(pk=row.pk).update(continues=continues)
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """A person's decision about a call. `edited_input`: the arguments that run in place of those that were asked about.

    `continues`: the conversation goes on by itself once nothing is open.
    """

    approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None
    continues: bool = False


@transaction.atomic
def decide_call(row: ToolCallRecord, decision: Decision, actor: Actor) -> bool:
    """Approve or deny a call, with who and why; `False` if it was not asked any more, or the question has expired.

    An approved call of a client waits for that client's result from then on.
    Whether the arguments may be changed like this was decided before (`tools_app.core.questions.checked_edit`).
    """
    asked = ToolCallRecord.objects.filter(pk=row.pk, status=CallStatus.ASKED)
    asked = asked.exclude(expires_at__lte=Now())
    reason, continues = decision.reason, decision.continues
    if decision.approved and question_of(row.question).runs_elsewhere:
        changed = asked.update(status=CallStatus.WAITING, continues=continues, expires_at=None)
    elif decision.approved:
        edited = decision.edited_input
        changed = asked.update(status=CallStatus.APPROVED, edited_input=edited, continues=continues)
    else:
        changed = asked.update(status=CallStatus.DENIED, output=reason, continues=continues, settled_at=timezone.now())
    if changed:
        kind = ApprovalEventKind.APPROVED if decision.approved else ApprovalEventKind.DENIED
        _note(row, kind, actor, reason, decision.edited_input)
    return bool(changed)


@transaction.atomic
def abandon_call(row: ToolCallRecord, text: str, kind: ApprovalEventKind, actor: Actor) -> bool:
    """Settle an open call without an answer: an approval as denied, any other as failed; `False` if it had ended."""
    if row.status == CallStatus.ASKED:
        asked = ToolCallRecord.objects.filter(pk=row.pk, status=CallStatus.ASKED)
        changed = bool(asked.update(status=CallStatus.DENIED, output=text, settled_at=timezone.now()))
    else:
        changed = _settle(row.pk, ToolResult(output=text, is_error=True), {CallStatus(row.status)})
    if changed and row.approval_id:
        _note(row, kind, actor, text)
    return changed


def begin_inner_call(row_id: int) -> None:
    """Write that an approved call that another call makes runs. Safe to call again."""
    rows = ToolCallRecord.objects.filter(pk=row_id, status=CallStatus.APPROVED)
    rows.update(status=CallStatus.RUNNING)


def settle_inner_call(call_id: str, *, turn_id: str, result: ToolResult) -> None:
    """Write how a call that another call makes has ended, if a person approved it. One statement."""
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, call_id=call_id, status__in=_DECIDED).exclude(wait_key="")
    status = CallStatus.FAILED if result.is_error else CallStatus.SUCCEEDED
    rows.update(status=status, output=result.output, duration_ms=result.duration_ms, settled_at=timezone.now())


@transaction.atomic
def close_inner_calls(turn_id: str, text: str, *, within: str = "") -> bool:
    """Settle the calls that calls of a turn made and left open: questions as denied, approved ones as failed.

    `within`: only those of this call. Returns whether there were any.
    """
    rows = ToolCallRecord.objects.filter(turn_id=turn_id, status__in=(CallStatus.ASKED, *_DECIDED)).exclude(wait_key="")
    found = [row for row in rows if not within or row.call_id.startswith(inner_prefix(within))]
    for row in found:
        if row.status == CallStatus.RUNNING:
            _settle(row.pk, ToolResult(output=text, is_error=True), {CallStatus.RUNNING})
        else:
            abandon_call(row, text, ApprovalEventKind.SUPERSEDED, Actor(user_id=None, via="turn"))
    return bool(found)


def forget_calls(*, scopes: Collection[str] = (), turn_ids: Collection[str] = ()) -> None:
    """Delete the tool calls of these conversations and turns, with their decisions."""
    rows = ToolCallRecord.objects.filter(Q(scope__in=scopes) | Q(turn_id__in=turn_ids))
    asked = rows.filter(status=CallStatus.ASKED, expires_at__isnull=False)
    _stop_expiry(list(asked.values_list("pk", flat=True)))
    with erasing():
        rows.delete()


def expiry_key(row_id: int) -> str:
    """The key of the fiber that ends a question in time."""
    return f"expire:{row_id}"


def _stop_expiry(row_ids: Sequence[int]) -> None:
    """Stop the fibers that would end these questions, after the commit: who decides holds other fibers' rows.

    One that is left behind by a crash finds its question decided.
    """
    fibers = Fiber.objects.filter(key__in=[expiry_key(row_id) for row_id in row_ids])
    if row_ids:
        transaction.on_commit(partial(cancel_pending, fibers, reason="answered"))


def _settle(pk: int, result: ToolResult, expected: Collection[CallStatus]) -> bool:
    status = CallStatus.FAILED if result.is_error else CallStatus.SUCCEEDED
    rows = ToolCallRecord.objects.filter(pk=pk, status__in=expected)
    changed = rows.update(
        status=status,
        output=result.output,
        details=result.details or None,
        duration_ms=result.duration_ms,
        settled_at=timezone.now(),
    )
    return changed == 1


def _note(
    row: ToolCallRecord,
    kind: ApprovalEventKind,
    actor: Actor,
    reason: str,
    edited_input: JSONObject | None = None,
) -> None:
    ApprovalEvent.objects.create(
        call=row,
        kind=kind,
        actor_id=actor.user_id,
        via=actor.via,
        reason=reason[:MAX_REASON_CHARS],
        input_hash=fingerprint(row.input),
        edited_input=edited_input,
    )
    if kind not in (ApprovalEventKind.ASKED, ApprovalEventKind.EXPIRED) and row.expires_at is not None:
        _stop_expiry([row.pk])
