"""Waits of parked fibers, and delivery of their answers.

A wait has a key of its own in the journal: its answer is the record of the step `wait:<key>`, written once by the
process that answers first. So an answer that comes before the fiber has parked, or twice, or together with the end of
the wait's time, is delivered exactly once.
"""

from dataclasses import asdict, dataclass
from typing import Final

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

WAIT_PREFIX: Final = "wait:"
RESUMED: Final = "resumed"
"""Reason of a fiber that goes on because what it waited for is there; a crash of that attempt replaces it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """One thing that is waited for. `kind` and `label` are for people; `seconds`: how long, 0 is for ever.

    `request`: for code that answers it.
    """

    key: str
    kind: str
    label: str = ""
    call_id: str = ""
    seconds: float = 0.0
    request: JSONObject | None = None

    @property
    def step_key(self) -> str:
        """The journal key of its answer."""
        return f"{WAIT_PREFIX}{self.key}"

    def to_json(self) -> JSONObject:
        """As it is stored with the fiber and shown."""
        stored = asdict(self)
        if self.request is None:
            del stored["request"]
        return stored


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitEnd:
    """The outcome of a wait. `answer`: the given one; `None` after its timeout."""

    answer: JSONValue = None
    has_expired: bool = False


def answered(value: JSONValue) -> JSONObject:
    """The record of an answer."""
    return {"answer": value}


EXPIRED: Final[JSONObject] = {"expired": True}
"""The record of a wait whose time was over."""


def read_end(record: JSONValue) -> WaitEnd:
    """Read the record of a wait."""
    assert isinstance(record, dict)
    return WaitEnd(answer=record.get("answer"), has_expired=bool(record.get("expired")))
