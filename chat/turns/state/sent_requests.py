"""The records of requests over the turns of a session: the last one before a turn, and the whole that it stands for."""

from collections.abc import Iterable, Mapping
from typing import Final

from chat.core.loop.request_records import NOTHING_SENT, ChainEnd, SentRequest, request_in, restored
from chat.models import Turn
from fibers.models import FiberStep
from thinkproject.kernel.jsonvalue import JSONValue, load

MODEL_STEPS: Final = "model:"

LAST_RECORD: Final = """
    (
        SELECT r.id FROM think_fibers_fiberstep r WHERE r.step_key LIKE 'model:%%' AND r.fiber_id = (
            SELECT b.fiber_id FROM think_chat_turn b
            WHERE b.session_id = :session: AND b.position < :position: AND EXISTS (
                SELECT 1 FROM think_fibers_fiberstep e WHERE e.fiber_id = b.fiber_id AND e.step_key LIKE 'model:%%'
            )
            ORDER BY b.position DESC LIMIT 1
        )
        ORDER BY r.id DESC LIMIT 1
    )
"""
"""The id of the last step of a model in a session's turns before a position, as part of another statement.

`:session:` and `:position:` stand for expressions of them.
"""


def chain_end(fiber_id: str | None, step_key: str | None, value: str | None) -> ChainEnd | None:
    """Read the columns of a step as a driver gives them; nothing where there is no step, or it asked no model."""
    stored = None if value is None else request_in(load(value))
    if fiber_id is None or step_key is None or stored is None:
        return None
    return ChainEnd(fiber_id=fiber_id, step_key=step_key, stored=stored)


def sent_before(session_id: str, position: int, records: Iterable[tuple[str, JSONValue]]) -> SentRequest:
    """The request that the first record of a turn goes on from. One query, none for a record that is whole.

    Nothing where one of the turns between has been deleted: a reader sees that at the hash of the whole.
    """
    return sent_before_each(session_id, {position: (value for _, value in records)})[position]


def sent_before_each(session_id: str, turns: Mapping[int, Iterable[JSONValue]]) -> dict[int, SentRequest]:
    """The same for several turns, by their positions; the values of their records, oldest first. One query for all."""
    firsts = {at: next((found for value in values if (found := request_in(value))), {}) for at, values in turns.items()}
    named = {at: stored for at, stored in firsts.items() if isinstance(stored.get("after"), dict)}
    whole: dict[tuple[str, str], SentRequest] = {}
    if named:
        begin = min(stored["chain"]["from"] for stored in named.values())
        before = Turn.objects.filter(session_id=session_id, position__gte=begin, position__lt=max(named))
        steps = FiberStep.objects.filter(fiber_id__in=before.values("fiber_id"), step_key__startswith=MODEL_STEPS)
        whole = _whole(steps.order_by("pk").values_list("fiber_id", "step_key", "value"))
    names = {at: (stored["after"]["fiber"], stored["after"]["key"]) for at, stored in named.items()}
    return {at: whole.get(names[at], NOTHING_SENT) if at in names else NOTHING_SENT for at in turns}


def _whole(rows: Iterable[tuple[str, str, JSONValue]]) -> dict[tuple[str, str], SentRequest]:
    """The whole requests of records, which come in the order in which they were stored."""
    whole: dict[tuple[str, str], SentRequest] = {}
    last: dict[str, SentRequest] = {}
    for fiber_id, step_key, value in rows:
        stored = request_in(value)
        if stored is not None:
            after = stored.get("after")
            named = whole.get((after["fiber"], after["key"])) if isinstance(after, dict) else None
            last[fiber_id] = restored(stored, last.get(fiber_id) or named or NOTHING_SENT)
            whole[fiber_id, step_key] = last[fiber_id]
    return whole
