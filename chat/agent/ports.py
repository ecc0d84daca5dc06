"""The services of an instance, by topic: `InstancePort`, which agents and handles call. `chat.instance` implements it.

The methods of `Think` and `AgentHandle` are documented in `chat/agent/methods`. Nothing here touches the database.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from chat.agent.values.approvals import ExecutionDecision, PendingExecution
from chat.agent.values.background import FiberFunction, FiberInspection, FiberStart, QueuedCall, R
from chat.agent.values.extensions import ExtensionState
from chat.agent.values.messages import AgentCall
from chat.agent.values.runs import AgentRunInfo, RunRequest, SubAgentInfo
from chat.agent.values.schedules import ScheduleView, Work
from chat.agent.values.turns import MessageFunction, SavedTurn, StoredSession, Submission
from chat.core.model.chosen_model import ChosenModel
from fibers.core.schedules.timing import Timing
from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.shapes import Message, NewMessage
from sessions_app.core.messages.tree import Leaf
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.retry import RetryPolicy
from tools_app.core.files.workspace import Workspace
from tools_app.core.mcp.servers import McpServerSpec, McpServerView

if TYPE_CHECKING:
    from sessions_app.context.session_context import SessionContext


class TurnsPort(Protocol):
    """Turns that code runs, adds to, stops and waits for."""

    async def run(
        self,
        words: list[NewMessage] | MessageFunction | None,
        *,
        body: JSONObject | None = None,
        callback: Any = None,
        signal: asyncio.Event | None = None,
    ) -> SavedTurn:
        """Run a turn and wait for its end; without words it goes on from the last answer. Errors: `NestedTurn`."""
        ...

    async def add_messages(
        self, messages: list[NewMessage], *, parent: str | Leaf | None = Leaf.ACTIVE, is_upsert: bool = False
    ) -> list[str]:
        """Store messages without a turn."""
        ...

    async def stop(self, request_id: str | None, reason: str | None) -> bool:
        """Stop one turn by its request id, or all; false when there was nothing to stop."""
        ...

    async def has_pending_interaction(self) -> bool:
        """Whether a call of the active path waits for a person or a client."""
        ...

    async def wait_until_stable(self, timeout_seconds: float | None) -> bool:
        """Wait until nothing runs, waits or is pending; false when that takes longer. Errors: `NestedTurn`."""
        ...

    async def compact(self, instructions: str) -> str:
        """Request a compaction, behind the turns that wait. Returns the id of its fiber."""
        ...


class SubmissionsPort(Protocol):
    """Work that is accepted now and done in its turn."""

    async def submit(self, messages: list[NewMessage], *, key: str | None, metadata: JSONObject) -> Submission:
        """Accept a submission, or return the existing one with this key."""
        ...

    async def find(self, submission_id: str) -> Submission | None:
        """Read one."""
        ...

    async def newest(self, limit: int) -> list[Submission]:
        """Read the newest."""
        ...

    async def cancel(self, submission_id: str) -> bool:
        """Stop one; false when it has ended or is unknown."""
        ...


class SessionsPort(Protocol):
    """The histories of the instance."""

    async def list_all(self) -> list[StoredSession]:
        """Read them, the most recently changed first; none before the first write."""
        ...

    async def create(self, name: str) -> StoredSession:
        """Make a history and make it current."""
        ...

    async def switch(self, session_id: str) -> None:
        """Make a history current."""
        ...

    async def rename(self, session_id: str, name: str) -> None:
        """Give a history a name."""
        ...

    async def delete(self, session_id: str) -> None:
        """Stop the turns of a history and remove it."""
        ...

    async def path(self, leaf_id: str | None) -> list[StoredMessage]:
        """Read the path to a message of the current history, or the active one."""
        ...

    async def shown(self) -> list[Message]:
        """Read the shown path of the current history as the model's context is made of it, oldest first."""
        ...

    async def count_messages(self) -> int:
        """Count the messages of the current history on all branches."""
        ...

    async def clear(self) -> None:
        """Stop the turns of the current history and remove its messages."""
        ...


class ModelChoicePort(Protocol):
    """The model that people chose for the conversation."""

    async def load(self) -> ChosenModel:
        """Read the stored choice."""
        ...

    async def save(self, choice: ChosenModel) -> None:
        """Check and store a choice. Errors: `ModelChoiceInvalid`."""
        ...


class ApprovalsPort(Protocol):
    """The calls that wait for a person's decision, here and in sub-agents."""

    async def pending(self) -> list[PendingExecution]:
        """Read the questions, oldest first."""
        ...

    async def decide(self, execution_id: str, decision: ExecutionDecision) -> bool:
        """Decide one of them; false when it was decided before, or is over."""
        ...

    async def link(self, execution_id: str, *, approves: bool, user_id: Any, hours: float) -> str:
        """Make a link that decides one of them: its path."""
        ...


class StatePort(Protocol):
    """The synced state and the private configuration."""

    async def load(self, default: JSONValue = None) -> JSONValue:
        """Give the stored state, or the default when none was ever stored."""
        ...

    async def change(self, value: JSONValue) -> None:
        """Have the agent validate a state, store it, notify every connection, run the hook. Errors: `StateRefused`."""
        ...

    async def load_config(self) -> Any:
        """Give the stored configuration as its class types it, or `None` when it was never set."""
        ...

    async def save_config(self, value: Any) -> None:
        """Check the configuration against its class and store it, as a whole. Errors: `ConfigInvalid`."""
        ...


class BackgroundPort(Protocol):
    """The fibers of the instance."""

    async def start(self, start: FiberStart, *, waits: bool = False) -> FiberInspection:
        """Start a fiber, or find the one with this id or key; `waits`: until it has ended."""
        ...

    async def find(self, fiber_id: str | None = None, *, key: str | None = None) -> FiberInspection | None:
        """Read a fiber."""
        ...

    async def newest(self, statuses: Collection[str], limit: int) -> list[FiberInspection]:
        """Read fibers, newest first."""
        ...

    async def cancel(self, fiber_id: str | None = None, *, key: str | None = None, reason: str = "cancelled") -> bool:
        """Stop a fiber."""
        ...

    async def restart(self, fiber_id: str) -> FiberInspection:
        """Run a fiber again."""
        ...

    async def resolve(self, fiber_id: str, status: str, *, result: JSONValue, error: str | None) -> bool:
        """Say how an interrupted fiber has ended."""
        ...

    async def delete(
        self, *, statuses: Collection[str] | None, ids: Sequence[str] | None, older_than_seconds: float, limit: int
    ) -> int:
        """Delete fibers that have ended."""
        ...

    async def check(self) -> list[FiberInspection]:
        """Take up the fibers whose workers were lost."""
        ...

    async def run(self, name: str, function: FiberFunction[R], *, metadata: JSONObject | None = None) -> R:
        """Run a function here as a fiber."""
        ...

    async def stash(self, data: JSONValue) -> None:
        """Replace the snapshot of the fiber that is running here."""
        ...

    async def keep_alive(self) -> Callable[[], Awaitable[None]]:
        """Show that the instance is at work, until the function that is returned is called."""
        ...


class QueuePort(Protocol):
    """Calls of the agent's methods that run one at a time, in order."""

    async def append(self, method: str, payload: JSONValue, retry: RetryPolicy | None) -> str:
        """Append a call; give its id. Errors: `FiberInvalid`, `QuotaExceeded`."""
        ...

    async def take_out(self, *, call_id: str | None = None, method: str | None = None) -> int:
        """Take out calls that wait; give how many."""
        ...

    async def calls(self, call_id: str | None = None) -> list[QueuedCall]:
        """Read the calls that have not ended, the next first."""
        ...


class SchedulesPort(Protocol):
    """The schedules of the instance, as the methods and the model's tools call them."""

    def check_method(self, name: str) -> None:
        """Errors: `ScheduleInvalid` for what is no public method of the agent."""
        ...

    async def add(  # noqa: PLR0913 - one keyword for each thing a caller may decide
        self,
        timing: Timing,
        work: Work,
        *,
        is_once: bool,
        title: str = "",
        created_by: str = "code",
        can_overlap: bool = False,
        max_run_seconds: int | None = None,
    ) -> ScheduleView:
        """Store a schedule. Errors: `ScheduleInvalid`, `SchedulesFull`."""
        ...

    async def list_all(self) -> list[ScheduleView]:
        """Read the schedules that have not ended, the next first."""
        ...

    async def remove(self, schedule_id: str) -> bool:
        """Delete a schedule."""
        ...


class SubAgentsPort(Protocol):
    """The instances below this one, and the runs in which they work for it."""

    reports: Any  # takes progress and milestones during a turn; `None` outside of one

    def open(self, route: str, name: str) -> Any:
        """A handle of a sub-agent."""
        ...

    def open_parent(self) -> Any:
        """A handle of the parent; `None` for a root."""
        ...

    async def abort(self, route: str, name: str, reason: str) -> bool:
        """Stop a sub-agent and all below it; false when nothing ran."""
        ...

    async def delete(self, route: str, name: str) -> bool:
        """Stop and remove one; false when there is none."""
        ...

    async def has(self, route: str, name: str) -> bool:
        """Whether there is one."""
        ...

    async def list_all(self, route: str) -> list[SubAgentInfo]:
        """Read the registry, of one class or of all."""
        ...

    async def run(self, request: RunRequest) -> JSONObject:
        """Start a run, or find it, and wait for its end unless it is detached."""
        ...

    async def find_run(self, run_id: str) -> AgentRunInfo | None:
        """Read a run."""
        ...

    async def abort_run(self, run_id: str, reason: str) -> bool:
        """Stop a run; false when it has ended or is unknown."""
        ...

    async def clear_runs(self, older_than_seconds: float) -> int:
        """Remove runs that have ended, and their children."""
        ...

    def report_progress(self, fraction: float, message: str) -> None:
        """Show how far this agent's run is."""
        ...

    def report_milestone(self, name: str, data: JSONObject) -> None:
        """Keep a milestone in the answer."""
        ...


class InboxPort(Protocol):
    """The messages between agents in the room of the instance."""

    async def send(self, target: str, text: str, request_id: str) -> int:
        """Put a message into the inbox of an agent; its number."""
        ...

    async def watch(self, request_id: str, seconds: float) -> str:
        """Wait for the answer to a message."""
        ...

    async def has_pending(self, agent: str) -> bool:
        """Whether anything waits in an inbox; empty: of the instance itself."""
        ...

    async def pause(self, agent: str, *, ends: bool) -> bool:
        """Pause an agent, or end its pause; empty: the instance itself. False where it is so already."""
        ...

    async def call(self, call: AgentCall) -> str:
        """Ask an agent in the course of a turn, and wait for its reply."""
        ...


class McpServersPort(Protocol):
    """The MCP servers of the instance. `by_client`: a client asks, whose owner may not have the right."""

    async def add(self, spec: McpServerSpec, *, by_client: bool = False) -> McpServerView:
        """Add a server, try to connect, and say what came of it. Errors: `McpServerRefused` for a client."""
        ...

    async def remove(self, server_id: str, *, by_client: bool = False) -> bool:
        """Remove a server of the conversation."""
        ...

    async def list_all(self) -> list[McpServerView]:
        """Read all servers that the conversation has."""
        ...


class ExtensionsPort(Protocol):
    """The extensions of the instance."""

    async def load(self, manifest: Any, source: str, *, via: str = "code", replaces: bool = False) -> JSONObject:
        """Load an extension for this conversation."""
        ...

    async def unload(self, name: str) -> bool:
        """Unload one; false where there is none."""
        ...

    async def list_all(self) -> list[JSONObject]:
        """All that the conversation has, in load order."""
        ...

    async def update(self, name: str, *, source: str | None = None, manifest: Any = None) -> JSONObject:
        """Write a new version."""
        ...


class InstancePort(Protocol):
    """An instance, by topic. Methods are async and safe in hooks.

    `turn_id`: the turn that the agent object works for; empty outside of one. `asked_by`: the key of the member who
    asked for it, `None` for the owner. `extension_state`: of the agent object.
    """

    turn_id: str
    asked_by: Any
    extension_state: ExtensionState

    @property
    def turns(self) -> TurnsPort: ...  # noqa: D102 - the type says it, here and below

    @property
    def submissions(self) -> SubmissionsPort: ...  # noqa: D102

    @property
    def sessions(self) -> SessionsPort: ...  # noqa: D102

    @property
    def model_choice(self) -> ModelChoicePort: ...  # noqa: D102

    @property
    def approvals(self) -> ApprovalsPort: ...  # noqa: D102

    @property
    def state(self) -> StatePort: ...  # noqa: D102

    @property
    def background(self) -> BackgroundPort: ...  # noqa: D102

    @property
    def queue(self) -> QueuePort: ...  # noqa: D102

    @property
    def schedules(self) -> SchedulesPort: ...  # noqa: D102

    @property
    def sub_agents(self) -> SubAgentsPort: ...  # noqa: D102

    @property
    def inbox(self) -> InboxPort: ...  # noqa: D102

    @property
    def mcp_servers(self) -> McpServersPort: ...  # noqa: D102

    @property
    def extensions(self) -> ExtensionsPort: ...  # noqa: D102

    def open_workspace(self, name: str = "default") -> Workspace:
        """Open the workspace that the instance knows by a name. No query is made before it is used."""
        ...

    async def open_context(self, session_id: str | None = None) -> "SessionContext":
        """Open a session's context and keep it for the object. `None`: the object's session, else the current one."""
        ...
