"""The concurrency policy: decides about a submit while other turns are active. Pure.

Only plain submits are concerned; regenerations, continuations, approvals and turns of the server always queue.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from chat.errors import InputInvalid
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.phrases import Phrase

DEFAULT_DEBOUNCE_MS: Final = 750.0


class Strategy(StrEnum):
    """The word a developer sets as `message_concurrency`."""

    QUEUE = "queue"
    LATEST = "latest"
    MERGE = "merge"
    DROP = "drop"
    DEBOUNCE = "debounce"
    STEER = "steer"
    INTERRUPT = "interrupt"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConcurrencyPolicy:
    """A strategy and, for `debounce`, how long it must be quiet."""

    strategy: Strategy = Strategy.QUEUE
    debounce_ms: float = DEFAULT_DEBOUNCE_MS


@dataclass(frozen=True, slots=True, kw_only=True)
class OverlapAdmission:
    """The decision about a submit.

    Shape: `superseded` are waiting requests that end as skipped, their messages stay; `merged` are those of them whose
    messages the model answers together with the new one. `delay_seconds` is how long the turn waits for a newer one.
    """

    is_accepted: bool = True
    superseded: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    delay_seconds: float = 0.0


def to_policy(value: str | Mapping[str, JSONValue]) -> ConcurrencyPolicy:
    """Parse a developer's setting: a strategy's name, or `{"strategy": ..., "debounceMs": ...}`.

    Errors: `InputInvalid` for an unknown strategy. A `debounceMs` that is no number of milliseconds is the default.
    """
    values: Mapping[str, JSONValue] = {"strategy": value} if isinstance(value, str) else value
    try:
        strategy = Strategy(values.get("strategy", Strategy.QUEUE))
    except ValueError as error:
        known = ", ".join(Strategy)
        raise InputInvalid(
            Phrase(
                "There is no strategy {strategy!r}; it is one of {known}.", strategy=values.get("strategy"), known=known
            )
        ) from error
    milliseconds = values.get("debounceMs", values.get("debounce_ms"))
    return ConcurrencyPolicy(strategy=strategy, debounce_ms=_debounce_ms(milliseconds))


def _debounce_ms(value: JSONValue) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and math.isfinite(value) and value >= 0 else DEFAULT_DEBOUNCE_MS


def decide(
    policy: ConcurrencyPolicy, *, is_submit: bool, is_busy: bool, waiting: Sequence[str] = ()
) -> OverlapAdmission:
    """Decide about one incoming request.

    Shape: `is_busy` when another turn of the instance runs, waits or is being accepted; `waiting` are the submits,
    oldest first, whose turns have not started. After a clear nothing is busy and nothing waits.
    """
    if not is_submit or not is_busy:
        return OverlapAdmission()
    match policy.strategy:
        case Strategy.QUEUE | Strategy.STEER | Strategy.INTERRUPT:
            return OverlapAdmission()
        case Strategy.LATEST:
            return OverlapAdmission(superseded=tuple(waiting))
        case Strategy.MERGE:
            return OverlapAdmission(superseded=tuple(waiting), merged=tuple(waiting))
        case Strategy.DROP:
            return OverlapAdmission(is_accepted=False)
        case Strategy.DEBOUNCE:
            return OverlapAdmission(superseded=tuple(waiting), delay_seconds=policy.debounce_ms / 1000)
        case _:
            assert_never(policy.strategy)
