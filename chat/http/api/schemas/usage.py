"""Schemas of usage over all conversations, of limits, and of the price of what comes next."""

from datetime import datetime

from ninja import Schema

from chat.http.api.schemas.from_values import Amount, shows
from chat.reads.limits import LimitView
from chat.reads.usage import Figures, UsageRow


@shows(Figures)
class FiguresOut(Schema):
    """Sums of turns. Input includes cached tokens; `cost` is in US dollars, by the price table at the time of each."""


class UsagePointOut(Schema):
    """An hour or a day, by its beginning."""

    start: datetime
    figures: FiguresOut


@shows(UsageRow)
class UsageRowOut(Schema):
    """A line of a table. `key`: the model, the agent, or the conversation's id; `agent`: of a conversation."""

    figures: FiguresOut


class UsageReportOut(Schema):
    """Usage of a person's conversations since the beginning of the first day, in their time zone.

    `points`: hours of today, else days; those without use are there too. Tables have the 25 dearest lines. Titles and
    summaries are in the totals of conversations and not here.
    """

    days: int
    since: datetime
    points: list[UsagePointOut]
    total: FiguresOut
    by_model: list[UsageRowOut]
    by_agent: list[UsageRowOut]
    by_conversation: list[UsageRowOut]


@shows(LimitView)
class LimitOut(Schema):
    """A limit and what is used of it. `window_seconds`: of a pace; 0 for room and for what is there at a time."""


class NextPriceOut(Schema):
    """The price of the next message, from `low` to `high`, in US dollars; both null where no price is known."""

    model: str | None
    low: Amount | None
    high: Amount | None
