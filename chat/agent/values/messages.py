"""Shapes of messages between agents: who is asked, and how long for. Pure."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.tool import ApprovalRule

if TYPE_CHECKING:
    from pydantic import BaseModel

LatePolicy: TypeAlias = Literal["keep", "inbox"]
"""The fate of a reply that comes when its call waits no longer: it is kept, or goes into the caller's inbox."""

ANSWER_SECONDS: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReference:
    """An agent that another one may ask, for `agents`: its calls are messages.

    `agent`: a class, or its route name. `description`: for the model; the agent's own by default. `name`: of the tool;
    the route name by default. `input_schema`: one text, `message`, by default; an input of another form is sent as
    JSON. `output_schema`: the form of a reply that is JSON; `{"response": text}` by default. Units:
    `timeout_seconds`, how long a call waits. `needs_approval`, `read_only`, `open_world`: as of `tool`, of all that the
    agent may do.
    """

    agent: type[Any] | str
    description: str = ""
    name: str = ""
    input_schema: "type[BaseModel] | JSONObject | None" = None
    output_schema: "type[BaseModel] | JSONObject | None" = None
    timeout_seconds: float = ANSWER_SECONDS
    late: LatePolicy = "keep"
    needs_approval: ApprovalRule = False
    read_only: bool = False
    open_world: bool = False

    @property
    def route(self) -> str:
        """The route name of the agent."""
        return self.agent if isinstance(self.agent, str) else str(self.agent.route_name())


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentCall:
    """One call of an agent. `key`: the same when the call runs again; `wait` parks the turn until there is a reply."""

    target: str
    content: str
    key: str
    turn_id: str
    seconds: float
    wait: Callable[[str], Awaitable[Any]]
