"""Agents with sub-agents, served for a test, and sockets to them."""

import json
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, ClassVar

from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client

from chat.agent import declared
from chat.agent.base import InstanceKey
from chat.agent.callables import client_callable
from chat.errors import InstanceNotFound
from chat.llm.scripted import ScriptedModel
from chat.think import Think
from tests.db.chat.sockets import connection, cookie_of, frames_until

HEARD: list[tuple[InstanceKey, str]] = []


class NoteBase(Think, abstract=True):
    initial_state = {"notes": 0}
    sub_agents: ClassVar[tuple[str, ...]] = ("note-under-test",)

    def get_model(self) -> ScriptedModel:
        return ScriptedModel()

    def on_chat_response(self, response: Any) -> None:
        HEARD.append((self.key, response.status))

    @client_callable
    async def whoami(self) -> list[list[str]]:
        return [[key.agent, key.name] for key in (*self.key.ancestors, self.key)]


class InboxBase(Think, abstract=True):
    @classmethod
    async def resolve_name(cls, name: str, owner_id: int) -> Any:
        return {"me": f"user-{owner_id}", "broken": 7}.get(name, name)

    async def on_before_sub_agent(self, agent: str, name: str) -> Any:
        state = await self.get_state()
        if name == "crash":
            raise RuntimeError("a secret of the server")
        if name == "denied":
            raise InstanceNotFound
        return name not in (state or {}).get("closed", ["closed"])


@contextmanager
def served_notes() -> Iterator[None]:
    """Serve a note, an inbox that has notes, and an agent that no one's children may be."""
    HEARD.clear()

    class NoteUnderTest(NoteBase):
        """A note."""

    class OtherUnderTest(NoteBase):
        """Not for anybody's children."""

        sub_agents = ()

    class InboxUnderTest(InboxBase):
        """Has notes."""

        sub_agents = (NoteUnderTest, "gone-under-test")

    yield
    for made in (NoteUnderTest, OtherUnderTest, InboxUnderTest):
        declared.unregister(made)


ROOT = "/agents/inbox-under-test/box"
CHILD = f"{ROOT}/sub/note-under-test/one"


def keys(owner: User) -> tuple[InstanceKey, InstanceKey]:
    """Alice's inbox, and a note in it."""
    root = InstanceKey(owner_id=owner.pk, agent="inbox-under-test", name="box")
    return root, root.below("note-under-test", "one")


Connect = Callable[..., Awaitable[Any]]


@asynccontextmanager
async def opener(owner: User) -> AsyncIterator[Connect]:
    """Open sockets of this user's, or another's, which are closed at the end."""
    opened: list[Any] = []

    async def go(path: str, user: User | None = None, *, is_ready: bool = True) -> Any:
        made = connection(path, cookie=await sync_to_async(cookie_of)(user or owner))
        await made.connect(timeout=15)
        opened.append(made)
        if is_ready:
            await frames_until(made, "cf_agent_mcp_servers")
        return made

    yield go
    for made in opened:
        await made.disconnect()


def request_frame(request_id: str, text: str) -> str:
    message = {"id": f"q-{request_id}", "role": "user", "parts": [{"type": "text", "text": text}]}
    init = {"method": "POST", "body": json.dumps({"messages": [message]})}
    return json.dumps({"type": "cf_agent_use_chat_request", "id": request_id, "init": init})


def messages_at(user: User, path: str) -> list[dict[str, Any]]:
    client = Client()
    client.force_login(user)
    found: list[dict[str, Any]] = client.get(f"{path}/get-messages").json()
    return found
