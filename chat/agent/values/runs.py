"""Shapes of runs: an agent that works for another one, as its tool or for its code. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

WorkspaceUse: TypeAlias = Literal["own", "shared"]
"""The files that a child works on: its own, or those of its parent."""

McpUse: TypeAlias = Literal["own", "shared"]
"""The MCP servers that a child has: its own, or those of its parent as well."""

DAY_SECONDS: Final = 24 * 3600.0
HOUR_SECONDS: Final = 3600.0

NO_PROGRESS: Final = "no-progress"
BUDGET_EXCEEDED: Final = "budget-exceeded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """A run that no call waits for. Units: seconds; 0 sets no limit.

    `budget_seconds`: for the whole run. `no_progress_seconds`: without a step, a chunk or a report of progress; a child
    that waits for a person or for an answer is not idle. A run beyond either ends as interrupted; with `stops_child`
    the child is stopped as well, else it goes on. `on_end`: name of a method of the parent, which gets the run
    (`AgentRunInfo`). `wakes_parent`: a message about the end is put into the parent's conversation, and answered.
    """

    budget_seconds: float = DAY_SECONDS
    no_progress_seconds: float = HOUR_SECONDS
    stops_child: bool = False
    on_end: str = ""
    wakes_parent: bool = False

    def to_json(self) -> JSONObject:
        """As it is stored with the run."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """The facts of a run that is wanted. `run_id`: empty for one that is made up.

    `is_of_person`: a person asked for it, so that its turn counts as one of that person's messages.
    """

    agent: str
    input: JSONValue
    run_id: str = ""
    call_id: str = ""
    display: JSONObject | None = None
    display_order: int = 0
    detached: Detached | None = None
    workspace: WorkspaceUse = "own"
    mcp: McpUse = "own"
    is_of_person: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRunInfo:
    """A run for code of the parent. `outcome`: `None` while it is under way, else as `run_agent_tool` returns it."""

    run_id: str
    agent: str
    call_id: str
    is_detached: bool
    display: JSONObject | None
    outcome: JSONObject | None
    progress: JSONObject | None = None


SubAgentStatus: TypeAlias = Literal["running", "waiting", "idle"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SubAgentInfo:
    """A sub-agent in its parent's registry.

    `status`: `waiting` for a person, a client or an answer; `running` also when its turn is queued. `run`: of a child
    that was made for a run.
    """

    id: str
    agent: str
    name: str
    status: SubAgentStatus
    turn_count: int
    created_at: datetime
    active_at: datetime
    run: AgentRunInfo | None = None


def input_text(value: JSONValue) -> str:
    """The message for a child: a text as it is, the text of an object that has nothing else, anything else as JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, Mapping) and len(value) == 1:
        [only] = value.values()
        if isinstance(only, str):
            return only
    return dump(value)


def succeeded(run_id: str, summary: str, output: JSONValue = None) -> JSONObject:
    """The outcome of a run that ended well."""
    found: JSONObject = {"ok": True, "runId": run_id, "status": "completed", "summary": summary}
    return found if output is None else {**found, "output": output}


def failed(run_id: str, status: str, error: str, **more: Any) -> JSONObject:
    """The outcome of any other run.

    `more`: `retryable`, `reason`, `summary` (of what was found), `childStillRunning`; what is `None` is left out.
    """
    found: JSONObject = {"ok": False, "runId": run_id, "status": status, "error": error, "retryable": False}
    return {**found, **{name: value for name, value in more.items() if value is not None}}


def started(run_id: str) -> JSONObject:
    """The result of a call whose run no one waits for."""
    return {"ok": True, "runId": run_id, "status": "running"}
