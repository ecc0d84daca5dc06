"""Questions that wait for a person, and decisions about them. Pure."""

from dataclasses import dataclass
from datetime import datetime

from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingExecution:
    """A call that waits for a person's decision.

    `id` is that of the question. `title` and `sentence` are for people, `sentence` may be empty; `risk` is "low",
    "medium", "high" or empty. `may_edit`: the arguments that an approval may change. `expires_at`: when it counts as
    denied; `None`: never. `instance_id`, `agent`: the conversation that asks, this one or one of its sub-agents'.
    `by_code`: code asks that a model wrote. `descriptor`: as published clients know a question.
    """

    id: str
    call_id: str
    tool: str
    title: str
    sentence: str
    risk: str
    input: JSONObject
    may_edit: bool | tuple[str, ...]
    requested_at: datetime
    expires_at: datetime | None
    instance_id: str
    agent: str
    by_code: bool
    descriptor: JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionDecision:
    """A decision about a call. `by`: the user who decided; `via`: the way it came; `continues`: go on by itself."""

    approved: bool
    reason: str = ""
    edited_input: JSONObject | None = None
    by: int | None = None
    via: str = "server"
    continues: bool = True
