"""Facts about a session that every view of it has: the session's own, an instance's list of sessions, the API."""

from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionFacts:
    """A session without its messages. `parent_id`: the session it was forked or split from.

    `summary`: for people; empty until one is written. `auto_compaction`: `None` where the agent and the site decide.

    **Units:** `cost` and `max_cost` in the currency of the price table.
    """

    id: str
    name: str
    parent_id: str | None
    model_name: str
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost: Decimal
    max_cost: Decimal | None
    auto_compaction: bool | None
    summary: str
    pinned_at: datetime | None
    archived_at: datetime | None
    created_at: datetime
    updated_at: datetime
