"""Schedules as agents and their callers see them. Pure."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, TypeAlias

from fibers.core.schedules.states import ScheduleStatus
from fibers.core.schedules.timing import ScheduleKind
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.retry import RetryPolicy

When: TypeAlias = float | datetime | str
"""Seconds from now, an instant, or a cron text."""


Callback: TypeAlias = str | Callable[..., Any]
"""A method of the agent, or its name."""


MAX_PROMPT: Final = 20_000

MAX_ATTEMPTS: Final = 10

MAX_RETRY_SECONDS: Final = 60.0

RETRY: Final = RetryPolicy(attempts=3, first_seconds=0.1, max_seconds=3.0, jitter_share=1.0)
"""How a run whose method raises is tried again, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrence:
    """One run of a schedule, as its method is given it. `key` is the same when the run is repeated after a crash.

    `due`: when it was to run, in UTC; it may run later. `is_test`: it was asked for besides its times.
    """

    schedule_id: str
    key: str
    due: datetime
    is_test: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleView:
    """A schedule as it stands. Either `callback` or `prompt` is set, or `task`, the name of a declared handler.

    `callback` is a method, or the clients' name of a callable. `spec`: seconds, an ISO instant, or cron, by `kind`.
    Instants are in UTC.
    """

    id: str
    kind: ScheduleKind
    spec: str
    zone: str
    callback: str
    prompt: str
    task: str
    payload: JSONValue
    title: str
    status: ScheduleStatus
    next_at: datetime | None
    last_at: datetime | None
    created_at: datetime
    created_by: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleCriteria:
    """A choice of schedules, for `get_schedules`; `None` does not matter. `start` and `end` bound the next run."""

    kind: str | None = None
    callback: str | None = None
    start: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """The work of a schedule: a method with its input, a call as clients make it, or a prompt.

    `callback` with `arguments`: a callable by the clients' name, whose arguments are checked when it runs.
    """

    callback: str = ""
    arguments: tuple[JSONValue, ...] | None = None
    prompt: str = ""
    payload: JSONValue = None
    retry: RetryPolicy | None = None

    def to_json(self) -> JSONObject:
        """The shape in which it is stored with the schedule."""
        if self.prompt:
            return {"prompt": self.prompt}
        if self.arguments is not None:
            return {"callable": self.callback, "arguments": list(self.arguments)}
        stored: JSONObject = {"method": self.callback, "payload": self.payload}
        if self.retry is not None:
            policy = self.retry
            stored["retry"] = {
                "attempts": policy.attempts,
                "first_seconds": policy.first_seconds,
                "max_seconds": policy.max_seconds,
            }
        return stored
