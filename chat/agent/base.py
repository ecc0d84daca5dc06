"""`Agent`: a class that is served, without a chat. `Think` extends it.

A fresh object is made for each turn, callable or connection and thrown away; nothing about a turn lives on `self`. What
must outlive it goes to the state, the session or a model of the developer's own. The object reaches the product through
its `instance` (`chat.agent.ports`), in web processes and in workers alike. How agents without a chat work:
`docs/howto/agents-without-a-chat.md`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias

from chat.agent import declared
from chat.agent.connection import ClientConnection
from chat.agent.methods.background import FiberDeclarations
from chat.agent.methods.mcp_servers import McpServerMethods
from chat.agent.methods.queue import QueueMethods
from chat.agent.methods.recovery import RetryMethods
from chat.agent.methods.schedules import ScheduleMethods
from chat.agent.methods.sub_agents import SubAgentDeclarations
from chat.agent.ports import InstancePort
from thinkproject.kernel.jsonvalue import JSONValue
from tools_app.core.files.workspace import Workspace

if TYPE_CHECKING:
    from django.utils.functional import _StrOrPromise
    from pydantic import BaseModel

ConfigAccess: TypeAlias = Literal["private", "read", "write"]
"""What clients may do with a configuration."""

StateSource: TypeAlias = Literal["client", "server"]
"""Who set a state."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceKey:
    """The address of an instance: whose, which class, which name, and below which other instance.

    `instance_id` is empty before the first write. A sub-agent has the owner of its root.
    """

    owner_id: int | None
    agent: str
    name: str
    instance_id: str = ""
    parent: "InstanceKey | None" = None

    @property
    def ancestors(self) -> "tuple[InstanceKey, ...]":
        """The instances above this one, root first; none for a root."""
        return () if self.parent is None else (*self.parent.ancestors, self.parent)

    def below(self, agent: str, name: str) -> "InstanceKey":
        """The address of a sub-agent of this instance."""
        return InstanceKey(owner_id=self.owner_id, agent=agent, name=name, parent=self)


class Agent(FiberDeclarations, QueueMethods, ScheduleMethods, SubAgentDeclarations, McpServerMethods, RetryMethods):
    """Base of everything that is served at `/agents/{route name}/{instance name}`.

    Subclasses register themselves under their kebab-cased name; `class Base(Agent, abstract=True)` opts out.
    """

    instance: InstancePort

    is_abstract: ClassVar[bool] = True
    title: "ClassVar[_StrOrPromise]" = ""
    """Name that people see, at most 60 characters; may be a lazy translation. Empty: the class name in words."""

    description: "ClassVar[_StrOrPromise]" = ""
    """One line below the title, at most 200 characters. Empty: the first line of the class's own docstring."""

    icon: ClassVar[str] = "chat"
    """A symbol of the page (`chat.agent.appearance.ICONS`), or the path of a static file, such as
    `support/agent.svg`."""

    suggestions: "ClassVar[Sequence[_StrOrPromise]]" = ()
    """Prompts that an empty conversation offers: at most 6 of at most 120 characters."""

    listed: ClassVar[bool] = True
    """Whether people are offered the agent to begin a conversation with. One that only works for other agents says
    `False`; it is served all the same, and opened by its name where access allows it."""

    initial_state: JSONValue = None
    """The synced state of an instance that has none yet; `None` for agents without state."""

    sub_agents: "ClassVar[Sequence[type[Agent] | str]]" = ()
    """Classes, or their route names, that clients may open below an instance of this one. None by default."""

    config_model: "ClassVar[type[BaseModel] | None]" = None
    """A pydantic class that types the configuration: what is stored is checked, what is read is an object of it."""

    config_access: ClassVar[ConfigAccess] = "private"
    """What the owner of an instance may do with its configuration through the API. Code may always do both."""

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_abstract = abstract
        if not abstract:
            declared.register(cls)

    def __init__(self, instance: InstancePort, key: InstanceKey) -> None:
        self.instance = instance
        self.key = key

    @classmethod
    def route_name(cls) -> str:
        """Segment of the URL: the class name in kebab case."""
        return declared.kebab(cls.__name__)

    @classmethod
    def resolve_name(cls, name: str, owner_id: int) -> Any:
        """Choose the instance that serves this user's request for `name`; by default that name.

        Called whenever a client connects. If the result differs after a reconnect, clients learn of it from the
        identity: `onIdentityChange`. Must give its own answers as they are: an instance that is reached as `today` is
        also opened under its own name. May be sync or async.
        """
        del owner_id
        return name

    # Decisions of the developer. All may be sync or async.

    def on_start(self) -> Any:
        """Run when an object of this class was made, before anything else. Must not fail; errors are logged."""

    def on_connect(self, connection: ClientConnection) -> Any:
        """Run in a web process after a client connected and got its first frames."""

    def on_message(self, connection: ClientConnection, message: str) -> Any:
        """Run in a web process for a text that is not a frame of the protocol."""

    def on_close(self, connection: ClientConnection, code: int) -> Any:
        """Run in a web process after a client left."""

    def on_before_sub_agent(self, agent: str, name: str) -> Any:
        """Decide whether clients may open this sub-agent, whose class is one of `sub_agents`.

        Runs in a web process whenever a client connects below this instance. `False` or raising a `ThinkError` refuses.
        """

    def is_read_only(self, connection: ClientConnection) -> Any:
        """Decide whether this client may see the state and not set it, nor choose the model.

        Asked for each change, calls included.
        """
        del connection
        return False

    def validate_state_change(self, state: JSONValue, source: StateSource) -> Any:
        """Validate a new state; raise to refuse it. The error stays on the server. `set_state` is validated as well."""

    def on_state_changed(self, state: JSONValue, source: StateSource) -> Any:
        """Run after a state was stored and sent. Its exceptions are logged and undo nothing."""

    # Methods that the developer calls.

    @property
    def workspace(self) -> Workspace:
        """The files of this instance: its own workspace in the database, whatever `get_workspace` gives.

        Nothing is read or made before it is used; the first write makes it.
        """
        return self.instance.open_workspace()

    async def get_state(self) -> JSONValue:
        """Read the synced state; `initial_state` when it was never set."""
        return await self.instance.state.load(self.initial_state)

    async def set_state(self, value: JSONValue) -> None:
        """Replace the synced state; every connected client gets it.

        Durability: stored when this returns. Errors: `StateRefused` when `validate_state_change` raises, when the
        state is too large or not JSON, and inside a call of a client for which `is_read_only` holds.
        """
        await self.instance.state.change(value)

    async def configure(self, config: Any) -> None:
        """Store the instance's private configuration, replacing the previous one. Survives restarts.

        Shape: any JSON, or an object of `config_model`. Errors: `ConfigInvalid`, whose text says what was expected;
        then nothing has changed.
        """
        await self.instance.state.save_config(config)

    async def get_config(self) -> Any:
        """Read the private configuration; `None` when it was never set. Usable inside `configure_session`.

        An object of `config_model` where the class has one. What is returned is the caller's own copy. Errors:
        `ConfigInvalid` when what is stored does not fit a class that has changed since.
        """
        return await self.instance.state.load_config()
