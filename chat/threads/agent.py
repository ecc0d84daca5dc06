"""`ThreadsAgent`: conversations and workspaces of a person on one socket; `ThreadAgent`: one of these conversations.

    class Coder(ThreadAgent):
        def get_model(self):
            return "default"

    class Coders(ThreadsAgent):
        thread_agent = Coder

Served at `/agents/coders/{name}` with the frames of `docs/howto/coding-agent-threads.md`, beside those of every agent.
"""

from typing import Any, ClassVar

from chat.agent.base import Agent
from chat.agent.connection import ClientConnection
from chat.agent.methods.sub_agents import AgentName, route_of
from chat.agent.registry import get_agent_class, is_served, list_agents
from chat.agent.think import Think
from chat.core.loop.hooks import TurnConfig, TurnContext
from chat.core.wire import thread_frames
from chat.core.wire.thread_frames import ThreadRequest
from chat.errors import InstanceNotFound
from chat.instances.rows import find_instance
from chat.models import AgentInstance
from chat.threads.done import done, is_done
from chat.threads.files import workspace_at
from chat.threads.prompts import CODING_PROMPT
from chat.threads.registry import has_workspace
from chat.threads.verbs import ConversationVerbs
from thinkproject.kernel.aio import db


class ThreadAgent(Think, abstract=True):
    """One thread: a chat that works on the workspace that is attached to it. Without one it has no tools."""

    context_policy = "coding"
    title_model = "none"
    workspace_in_prompt = "top"

    def get_system_prompt(self) -> Any:
        """Give the prompt of a coding agent; what is in the workspace follows it."""
        return CODING_PROMPT

    async def get_workspace(self) -> Any:
        """Give what is attached to the thread, or nothing."""
        return None if await db(has_workspace, self.key) else False

    async def get_tools(self) -> Any:
        """Give `done`, where there is a workspace. Those for its files and `bash` come by themselves."""
        return [done] if await db(has_workspace, self.key) else []

    def before_turn(self, context: TurnContext) -> Any:
        """Have the run end with a call of `done`; a class that overrides this gives the condition itself."""
        del context
        return TurnConfig(stop_when=is_done)


class ThreadsAgent(ConversationVerbs, Agent, abstract=True):
    """An agent whose clients work in several threads, each on one of several workspaces. See `ConversationVerbs`.

    The socket sends the lists of both on connecting and after each change, and what all threads say as they say it.
    """

    thread_agent: ClassVar[AgentName] = ""
    """The class of the threads, a `ThreadAgent`, or its route name."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Let clients open the threads as conversations of their own, as the page does."""
        super().__init_subclass__(**options)
        if cls.thread_agent and cls.thread_agent not in cls.sub_agents:
            cls.sub_agents = (*cls.sub_agents, cls.thread_agent)

    @property
    def _route(self) -> str:
        return route_of(self.thread_agent)

    async def on_before_sub_agent(self, agent: str, name: str) -> Any:
        """Open threads that exist; new ones are made by the verbs, which give them a workspace."""
        return agent != self._route or await db(find_instance, self.key.below(agent, name)) is not None

    async def on_message(self, connection: ClientConnection, message: str) -> Any:
        """Carry out a frame of threads. What is none is ignored; a class that overrides this calls it."""
        request = thread_frames.parse(message)
        answer = "" if request is None else await self._carry_out(request)
        if answer:
            await connection.send(answer)

    async def _carry_out(self, request: ThreadRequest) -> str:
        """Call the verb of a frame. Returns the answer to its sender alone, if there is one."""
        values: Any = request.values
        match request.kind:
            case "get_messages":
                return thread_frames.sync(values[0], await self.get_messages(values[0]))
            case "list_files":
                entries = await self.list_files(*values)
                return "" if entries is None else thread_frames.file_list(values[0], values[1], entries)
            case "read_file":
                if await workspace_at(self.key, values[0]) is None:
                    return ""
                return thread_frames.file_content(values[0], values[1], await self.read_file(*values))
            case "create_thread" | "create_workspace":
                await getattr(self, request.kind)(request.name)
            case _:
                await getattr(self, _VERBS.get(request.kind, request.kind))(*values)
        return ""


_VERBS = {
    "add": "add_message",
    "delete": "delete_message",
    "clear_request": "clear_messages",
    "run": "run_thread",
}


def find_thread(owner_id: Any, thread_id: str) -> str:
    """Instance id of a person's thread of this id, the one active last where several orchestrators have one. Sync.

    Errors: `InstanceNotFound`. One query.
    """
    routes = {each.thread_agent for each in list_agents() if each.thread_agent}
    rows = AgentInstance.objects.filter(owner_id=owner_id, name=thread_id, agent__in=routes, parent__isnull=False)
    for row in rows.select_related("parent").order_by("-active_at", "pk"):
        if row.parent is not None and thread_route(row.parent.agent) == row.agent:
            return row.pk
    raise InstanceNotFound


def thread_route(agent: str) -> str:
    """Route name of the threads of a class; empty for a class that has none."""
    found = get_agent_class(agent) if is_served(agent) else None
    return route_of(found.thread_agent) if found is not None and issubclass(found, ThreadsAgent) else ""
