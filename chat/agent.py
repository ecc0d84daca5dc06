"""`Agent`: a class that is served, without a chat. `Think` extends it.

A fresh object is made for each turn, callable or connection and thrown away; nothing about a turn lives on `self`. What
must outlive it goes to the state, the session or a model of the developer's own. The object reaches the product through
its `host`, the same protocol in web processes and in workers.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from chat import registry
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue


@dataclass(frozen=True, slots=True, kw_only=True)
class InstanceKey:
    """The address of an instance: whose, which class, which name. `instance_id` is empty before the first write."""

    owner_id: int | None
    agent: str
    name: str
    instance_id: str = ""


class Host(Protocol):
    """What an agent object can reach. Implemented by the product; all methods are async and safe to call from hooks."""

    async def load_state(self) -> JSONValue:
        """Give the stored state, or `None`."""
        ...

    async def save_state(self, value: JSONValue) -> None:
        """Store the state and tell every connection."""
        ...

    async def load_config(self) -> JSONValue:
        """Give the stored configuration, or `None` when it was never set."""
        ...

    async def save_config(self, value: JSONValue) -> None:
        """Store the configuration, as a whole."""
        ...

    async def messages(self) -> list[JSONObject]:
        """Read the shown path of the current session, oldest first."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTurn:
    """How a turn that the agent itself started ended. `status`: completed, aborted, skipped or error."""

    request_id: str
    status: str
    error: str | None = None


class ChatHost(Host, Protocol):
    """What a chat agent can reach in addition."""

    async def run_turn(self, message: JSONObject | str) -> SavedTurn:
        """Say something in this conversation and wait for the answer."""
        ...


class Connection(Protocol):
    """One client's socket, as `on_connect` and `on_message` get it."""

    @property
    def id(self) -> str:
        """Label of the connection; never a credential."""
        ...

    async def send(self, text: str) -> None:
        """Send one text frame."""
        ...

    async def close(self, code: int = 1000, reason: str = "") -> None:
        """Close the socket."""
        ...


class Agent:
    """Base of everything that is served at `/agents/{route name}/{instance name}`.

    Subclasses register themselves under their kebab-cased name; `class Base(Agent, abstract=True)` opts out.
    """

    is_abstract: ClassVar[bool] = True

    def __init_subclass__(cls, *, abstract: bool = False, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.is_abstract = abstract
        if not abstract:
            registry.register(cls)

    def __init__(self, host: Host, key: InstanceKey) -> None:
        self.host = host
        self.key = key

    @classmethod
    def route_name(cls) -> str:
        """Segment of the URL: the class name in kebab case."""
        return registry.kebab(cls.__name__)

    @classmethod
    def title(cls) -> str:
        """Name that people see."""
        return registry.kebab(cls.__name__).replace("-", " ").capitalize()

    @classmethod
    def description(cls) -> str:
        """One line that people see: the first of the class's own docstring."""
        return (cls.__dict__.get("__doc__") or "").strip().partition("\n")[0]

    # Decisions of the developer. All may be sync or async.

    def on_start(self) -> Any:
        """Run when an object of this class was made, before anything else. Must not fail; errors are logged."""

    def on_connect(self, connection: Connection) -> Any:
        """Run in a web process after a client connected and got its first frames."""

    def on_message(self, connection: Connection, message: str) -> Any:
        """Run in a web process for a text that is not a frame of the protocol."""

    def on_close(self, connection: Connection, code: int) -> Any:
        """Run in a web process after a client left."""

    # Verbs that the developer calls.

    async def get_state(self) -> JSONValue:
        """Read the synced state (`None` when never set)."""
        return await self.host.load_state()

    async def set_state(self, value: JSONValue) -> None:
        """Replace the synced state; every connected client gets it."""
        await self.host.save_state(value)

    async def configure(self, config: JSONValue) -> None:
        """Store the instance's private configuration, replacing what was there. Survives restarts."""
        await self.host.save_config(config)

    async def get_config(self) -> JSONValue:
        """Read the private configuration; `None` when it was never set. Usable inside `configure_session`."""
        return await self.host.load_config()
