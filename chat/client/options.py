"""Options of a client's connection. Pure."""

import random
from collections.abc import Mapping
from dataclasses import dataclass, field

from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.retry import RetryPolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Timeouts of a client, and additions to its requests. Units: seconds, unless the name says otherwise.

    `ready_seconds`: how long `async with` waits for the first connection. `open_seconds`: for one attempt. The n-th
    attempt waits `first_delay * 2^n` seconds at most, `longest_delay` at the end, shortened by chance to half, so that
    the clients of a restarted server do not come all at once. Every `heartbeat_seconds` the server is asked for a sign
    of life, which it has as long again to give. `frames_per_second` paces what is sent. `headers` go along with each
    connection and HTTP request; `body` are custom fields of every turn. `time_zone`: of the person who writes, as
    `Europe/Vienna`, which models read with each message; empty: not known.
    """

    ready_seconds: float = 30.0
    open_seconds: float = 10.0
    first_delay: float = 0.1
    longest_delay: float = 10.0
    heartbeat_seconds: float = 20.0
    call_seconds: float = 30.0
    frames_per_second: int = 50
    message_max_bytes: int = 16 * 1024 * 1024
    received_max_bytes: int = 64 * 1024 * 1024
    headers: Mapping[str, str] = field(default_factory=dict)
    body: JSONObject = field(default_factory=dict)
    time_zone: str = ""

    def delay(self, attempt: int) -> float:
        """Delay before an attempt; the first is 0."""
        if self.longest_delay <= 0 or self.first_delay <= 0:
            return 0.0
        first = min(self.first_delay, self.longest_delay)
        policy = RetryPolicy(first_seconds=first, max_seconds=self.longest_delay)
        return policy.delay_seconds(attempt + 1, jitter=random.random())  # noqa: S311 - spreads the load, guards nothing
