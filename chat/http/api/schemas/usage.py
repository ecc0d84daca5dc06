"""Schemas of usage over all conversations, of limits, and of the price of what comes next."""

from datetime import datetime

from ninja import Schema

from chat.http.api.schemas.from_values import Amount, shows
from chat.reads.budgets import BudgetView
from chat.reads.limits import LimitView
from chat.reads.usage import Figures, UsageRow


@shows(Figures)
class FiguresOut(Schema):
    """Sums. `turn_count`, `failed_count`: of turns; `side_call_count`: titles, summaries and the like.

    Input includes cached tokens; `cost` is in US dollars, by the price table at the time of each.
    """


class UsagePointOut(Schema):
    """An hour or a day, by its beginning."""

    start: datetime
    figures: FiguresOut


@shows(UsageRow)
class UsageRowOut(Schema):
    """A line of a table. `key`: the kind, model or agent, or the conversation's id; `agent`: of a conversation."""

    figures: FiguresOut


class UsageReportOut(Schema):
    """Usage of a person's conversations since the beginning of the first day, in their time zone.

    `points`: hours of today, else days; those without use are there too. `by_kind`: `answer`, `title`, `summary` (for
    people), `compaction` (of older messages, for models), `review` (of calls), `sampling` (for MCP servers). Other
    tables have the 25 dearest lines.
    """

    days: int
    since: datetime
    points: list[UsagePointOut]
    total: FiguresOut
    by_kind: list[UsageRowOut]
    by_model: list[UsageRowOut]
    by_agent: list[UsageRowOut]
    by_conversation: list[UsageRowOut]


@shows(LimitView)
class LimitOut(Schema):
    """A limit and what is used of it. `window_seconds`: of a pace; 0 for room and for what is there at a time."""


@shows(BudgetView)
class OwnBudgetOut(Schema):
    """A budget of one history, in US dollars. `cost`: with the sub-agents of its conversation. `left`: never below 0.

    `session_name`: of the history, where it has one.
    """


class NextPriceOut(Schema):
    """The price of the next message, from `low` to `high`, in US dollars; both null where no price is known."""

    model: str | None
    low: Amount | None
    high: Amount | None
