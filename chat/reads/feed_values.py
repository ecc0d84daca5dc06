"""A conversation as messages of the State Protocol: all that there is, and what the change feed names since.

A place in it is a number of the feed and how much of all that there is was read: values are read when they are asked
for, so they may be newer than the change that names them, and are the same when the later change comes.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.db.models import Q, QuerySet

from chat.feed.reading import NamedChange, read_changes
from chat.models import AgentInstance, AgentMessage, AgentRun, Turn
from chat.turns.state.status import turn_status
from sessions_app.models import Compaction, Message, Session
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.models import ToolCallRecord

WHOLE: Final = 10**16 - 1
"""The second number of a place from which on changes are read."""
MESSAGES: Final = 200
"""Messages that are read at a time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatePage:
    """Messages of the protocol, and the place after them. `is_over`: the conversation was deleted."""

    messages: list[JSONObject]
    seq: int
    read: int
    is_up_to_date: bool = False
    is_over: bool = False


def state_page(instance: AgentInstance, seq: int, read: int) -> StatePage:
    """Read on from a place. Errors: `FeedGone`."""
    return _changes(instance, seq) if read == WHOLE else _snapshot(instance, seq, read)


def _snapshot(instance: AgentInstance, seq: int, read: int) -> StatePage:
    """Everything but messages at first, then these in the order of their rows, which new ones do not move."""
    messages: list[JSONObject] = []
    if read == 0:
        messages.append({"headers": {"control": "snapshot-start"}})
        for kind, table in VALUES.items():
            if kind != "message":
                messages += [_written(kind, key, value) for key, value in table.values(table.of(instance))]
    rows = VALUES["message"].of(instance).filter(pk__gt=read).order_by("pk")[:MESSAGES]
    found = list(rows)
    messages += [_written("message", *VALUES["message"].value(row)) for row in found]
    if len(found) == MESSAGES:
        return StatePage(messages=messages, seq=seq, read=found[-1].pk)
    messages.append({"headers": {"control": "snapshot-end"}})
    return StatePage(messages=messages, seq=seq, read=WHOLE)


def _changes(instance: AgentInstance, seq: int) -> StatePage:
    page = read_changes(instance.owner_id, seq, instance_id=instance.pk)
    reset: JSONObject = {"headers": {"control": "reset"}}
    for change in page.changes:
        if (change.type, change.op) == ("conversation", "delete"):
            return StatePage(messages=[reset], seq=change.seq, read=WHOLE, is_up_to_date=True, is_over=True)
    for at, change in enumerate(page.changes):
        if change.op == "reset":  # all of it again, as it is now
            return StatePage(messages=[*_named(instance, page.changes[:at]), reset], seq=change.seq, read=0)
    return StatePage(
        messages=_named(instance, page.changes), seq=page.position, read=WHOLE, is_up_to_date=page.is_up_to_date
    )


def _named(instance: AgentInstance, changes: Sequence[NamedChange]) -> list[JSONObject]:
    """Changes with their values, each thing once, where its last change is. What is gone by now is named later."""
    last = {(each.type, each.key): each for each in changes if each.type in VALUES}
    values = {
        kind: dict(table.values(table.find(table.of(instance), {key for of, key in last if of == kind})))
        for kind, table in VALUES.items()
        if any(of == kind for of, _ in last)
    }
    messages: list[JSONObject] = []
    for change in sorted(last.values(), key=lambda each: each.seq):
        value = values[change.type].get(change.key)
        if change.op == "delete":
            messages.append({"type": change.type, "key": change.key, "headers": {"operation": "delete"}})
        elif value is not None:
            messages.append(_written(change.type, change.key, value, operation="update"))
    return messages


def _written(kind: str, key: str, value: JSONObject, *, operation: str = "insert") -> JSONObject:
    return {"type": kind, "key": key, "value": value, "headers": {"operation": operation}}


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueTable:
    """A reader of things of one type: all of a conversation, some of these by key, and a row as key and value."""

    of: Callable[[AgentInstance], QuerySet[Any]]
    find: Callable[[QuerySet[Any], Iterable[str]], QuerySet[Any]]
    value: Callable[[Any], tuple[str, JSONObject]]

    def values(self, rows: QuerySet[Any]) -> list[tuple[str, JSONObject]]:
        """Keys and values of rows."""
        return [self.value(row) for row in rows]


def _by_id(rows: QuerySet[Any], keys: Iterable[str]) -> QuerySet[Any]:
    return rows.filter(pk__in=keys)


def _sessions(instance: AgentInstance) -> QuerySet[Session]:
    return Session.objects.filter(scope=instance.pk, owner_id=instance.owner_id).select_related("active_leaf")


def _messages(instance: AgentInstance) -> QuerySet[Message]:
    """The messages of its histories, and those that a fork shares with what it was forked from."""
    sessions = list(_sessions(instance).values_list("pk", "forked_from_id"))
    mine = Q(session__in=[pk for pk, _ in sessions])
    for pk, forked_from in sessions:
        if forked_from is not None:
            mine |= Q(pk__in=Message.objects.shared_with_origin(pk, 0).values("pk"))
    return Message.objects.filter(mine).select_related("parent")


def _find_messages(rows: QuerySet[Message], keys: Iterable[str]) -> QuerySet[Message]:
    wanted = Q(pk__in=[])
    for key in keys:
        session_id, _, message_id = key.partition("/")
        wanted |= Q(session_id=session_id, message_id=message_id)
    return rows.filter(wanted)


def _find_calls(rows: QuerySet[ToolCallRecord], keys: Iterable[str]) -> QuerySet[ToolCallRecord]:
    wanted = Q(pk__in=[])
    for key in keys:
        turn_id, _, call_id = key.partition("/")
        wanted |= Q(turn_id=turn_id, call_id=call_id)
    return rows.filter(wanted)


def _conversation(row: AgentInstance) -> tuple[str, JSONObject]:
    return row.pk, {
        "id": row.pk,
        "agent": row.agent,
        "name": row.name,
        "title": row.title,
        "session_id": row.session_id,
        "state": row.state,
        "state_version": row.state_version,
        "pinned_at": _instant(row.pinned_at),
        "archived_at": _instant(row.archived_at),
    }


def _session(row: Session) -> tuple[str, JSONObject]:
    leaf = row.active_leaf
    return row.pk, {
        "id": row.pk,
        "name": row.name,
        "leaf": None if leaf is None else f"{leaf.session_id}/{leaf.message_id}",
        "archived_at": _instant(row.archived_at),
    }


def _message(row: Message) -> tuple[str, JSONObject]:
    key = f"{row.session_id or ''}/{row.message_id}"
    parent = row.parent
    return key, {
        "id": key,
        "session_id": row.session_id,
        "message_id": row.message_id,
        "parent": None if parent is None else f"{parent.session_id or ''}/{parent.message_id}",
        "role": row.role,
        "parts": list(row.content["parts"]),
        "metadata": row.content.get("metadata"),
        "author": row.author or None,
        "turn_id": row.turn_id or None,
        "queued": row.placed_at is None,
        "created_at": _instant(row.created_at),
    }


def _turn(row: Turn) -> tuple[str, JSONObject]:
    return row.pk, {
        "id": row.pk,
        "session_id": row.session_id,
        "status": turn_status(row.fiber.status, row.fiber.reason).value,
        "position": row.position,
        "delivery": row.delivery,
        "assistant_id": row.assistant_id,
        "author": row.author or None,
        "model": row.model_name,
        "error": row.error_text or None,
        "accepted_at": _instant(row.accepted_at),
        "finished_at": _instant(row.finished_at),
    }


def _call(row: ToolCallRecord) -> tuple[str, JSONObject]:
    key = f"{row.turn_id}/{row.call_id}"
    return key, {
        "id": key,
        "turn_id": row.turn_id,
        "call_id": row.call_id,
        "tool": row.tool_name,
        "input": row.input_to_run,
        "status": row.status,
        "output": row.output,
        "expires_at": _instant(row.expires_at),
    }


def _run(row: AgentRun) -> tuple[str, JSONObject]:
    return row.pk, {
        "id": row.pk,
        "agent": row.agent,
        "child_id": row.child_id,
        "turn_id": row.parent_turn_id,
        "call_id": row.call_id,
        "outcome": row.outcome,
        "finished_at": _instant(row.finished_at),
    }


def _agent_message(row: AgentMessage) -> tuple[str, JSONObject]:
    return str(row.pk), {
        "id": str(row.pk),
        "sender": row.sender or None,
        "target": row.target or None,
        "role": row.role,
        "content": row.content,
        "request_id": row.request_id or None,
        "in_reply_to": row.in_reply_to or None,
        "late": row.late,
        "turn_id": row.turn_id,
        "created_at": _instant(row.created_at),
        "processed_at": _instant(row.processed_at),
    }


def _compaction(row: Compaction) -> tuple[str, JSONObject]:
    return row.pk, {
        "id": row.pk,
        "session_id": row.session_id,
        "first": row.first_id,
        "last": row.last_id,
        "summary": row.summary,
        "undone_at": _instant(row.undone_at),
    }


def _instant(at: Any) -> str | None:
    return None if at is None else at.isoformat()


VALUES: Final = {
    "conversation": ValueTable(
        of=lambda instance: AgentInstance.objects.filter(pk=instance.pk), find=_by_id, value=_conversation
    ),
    "session": ValueTable(of=_sessions, find=_by_id, value=_session),
    "turn": ValueTable(
        of=lambda instance: Turn.objects.filter(instance_id=instance.pk).select_related("fiber"),
        find=_by_id,
        value=_turn,
    ),
    "call": ValueTable(
        of=lambda instance: ToolCallRecord.objects.filter(scope=instance.pk), find=_find_calls, value=_call
    ),
    "run": ValueTable(of=lambda instance: AgentRun.objects.filter(parent_id=instance.pk), find=_by_id, value=_run),
    "agent-message": ValueTable(
        of=lambda instance: AgentMessage.objects.filter(room_id=instance.pk).order_by("seq"),
        find=_by_id,
        value=_agent_message,
    ),
    "compaction": ValueTable(
        of=lambda instance: Compaction.objects.filter(session__scope=instance.pk, session__owner_id=instance.owner_id),
        find=_by_id,
        value=_compaction,
    ),
    "message": ValueTable(of=_messages, find=_find_messages, value=_message),
}
"""Types with values in the protocol. Of jobs and workspaces the feed has names alone."""
