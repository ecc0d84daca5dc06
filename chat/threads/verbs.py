"""The verbs of a `ThreadsAgent`, for its own code, its clients and code of the server alike.

    threads = ThreadsHandle(key, ThreadsAgent)
    thread = await threads.create_thread("Parser")
    await threads.add_message(thread["id"], {"role": "user", "content": "Write a parser."})
    await threads.run_thread(thread["id"])

Clients call them by name, or send the frames of `chat/core/wire/thread_frames.py`, which call them.
Durability: what a verb has changed is committed when it returns, and every client of the orchestrator is notified.
"""

from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from chat.agent.base import InstanceKey
from chat.agent.callables import client_callable
from chat.agent.methods.sub_agents import AgentName, route_of
from chat.instances.rows import find_instance
from chat.runtime.state import asking_client
from chat.threads import conversation, files, registry
from chat.threads.messages import milliseconds
from chat.threads.registry import CLEARED, ENDED, MESSAGES, THREADS, Thread, ThreadWorkspace
from chat.turns.admission.stop import clear_instance
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.workspace.stores.database import DatabaseWorkspace

T = TypeVar("T")


class RegistryVerbs:
    """Threads and workspaces: make, name, attach, remove."""

    key: InstanceKey

    @property
    def _route(self) -> str:
        """Route name of the class of the threads."""
        raise NotImplementedError

    @client_callable(name="listThreads")
    async def list_threads(self) -> list[JSONObject]:
        """The threads, the one active last first: `{id, name, workspaceId, createdAt, lastActiveAt}`."""
        return [thread_json(thread) for thread in await db(registry.threads_of, self.key, self._route)]

    @client_callable(name="createThread")
    async def create_thread(self, name: str = "") -> JSONObject:
        """Make a thread, on the workspace `default`. Without a name it is `Thread <id>`. Errors: `QuotaExceeded`."""
        return thread_json(await db(registry.create_thread, self.key, self._route, name))

    @client_callable(name="renameThread")
    async def rename_thread(self, thread_id: str, name: str) -> bool:
        """Name a thread; false where there is none. Errors: `InputInvalid`."""
        return await db(registry.rename_thread, self.key, self._route, thread_id, name)

    @client_callable(name="deleteThread")
    async def delete_thread(self, thread_id: str) -> bool:
        """Stop a thread and remove it with its messages; its workspace stays. False where there is none."""
        return await db(registry.delete_thread, self.key, self._route, thread_id)

    @client_callable(name="listWorkspaces")
    async def list_workspaces(self) -> list[JSONObject]:
        """The workspaces, oldest first: `{id, name, createdAt}`."""
        return [workspace_json(each) for each in await db(registry.workspaces_of, self.key)]

    @client_callable(name="createWorkspace")
    async def create_workspace(self, name: str = "") -> JSONObject:
        """Make a workspace that no thread works on yet. Without a name it is `Workspace <id>`."""
        return workspace_json(await db(registry.create_workspace, self.key, name))

    @client_callable(name="renameWorkspace")
    async def rename_workspace(self, workspace_id: str, name: str) -> bool:
        """Name a workspace; false where there is none. Errors: `InputInvalid`."""
        return await db(registry.rename_workspace, self.key, workspace_id, name)

    @client_callable(name="deleteWorkspace")
    async def delete_workspace(self, workspace_id: str) -> bool:
        """Take a workspace from all threads and delete it with its files; false where there is none."""
        return await db(registry.delete_workspace, self.key, self._route, workspace_id)

    @client_callable(name="attachWorkspace")
    async def attach_workspace(self, thread_id: str, workspace_id: str) -> bool:
        """Have a thread work on this workspace from now on, in place of any other; an unknown thread is made.

        False for a workspace that is not of this registry.
        """
        return await db(registry.move_thread, self.key, self._route, thread_id, workspace_id)

    @client_callable(name="detachWorkspace")
    async def detach_workspace(self, thread_id: str) -> bool:
        """Leave a thread without files, so without tools; false where it has none. The files stay."""
        return await db(registry.move_thread, self.key, self._route, thread_id, None)


class ConversationVerbs(RegistryVerbs):
    """Messages, runs and files of threads."""

    @client_callable(name="getMessages")
    async def get_messages(self, thread_id: str) -> list[JSONObject]:
        """The newest messages, oldest first: `{id, role, content, reasoning?, createdAt}`; none of an unknown thread.

        At most 500, of 512 KiB.
        """
        return await db(conversation.messages_of, self._child(thread_id))

    @client_callable(name="addMessage")
    async def add_message(self, thread_id: str, message: dict[str, Any]) -> str:
        """Store a message at the end of a thread, or give a known one new content; returns its id.

        No model is asked. `message`: `{id?, role?, content}`, or with `parts`. An unknown thread is made, called by its
        id. Clients other than the one that asks get the messages. Errors: `InputInvalid`, `QuotaExceeded`.
        """
        checked = conversation.read_message(message)
        child = await db(registry.ensure_thread, self.key, self._route, thread_id)
        message_id = await db(conversation.add_message, self._child(thread_id), checked)
        await db(registry.touch, child)
        await self._notify(MESSAGES, THREADS, thread_id=thread_id, origin=asking_client(self.key))
        return message_id

    @client_callable(name="deleteMessage")
    async def delete_message(self, thread_id: str, message_id: str) -> bool:
        """Delete one message; false where there is none. Errors: `TurnConflict` while a run goes on."""
        removed = await db(conversation.remove_message, self._child(thread_id), message_id)
        if removed:
            await self._notify(MESSAGES, thread_id=thread_id)
        return removed

    @client_callable(name="clearMessages")
    async def clear_messages(self, thread_id: str) -> bool:
        """Stop a thread and forget its messages; false where there is no thread."""
        child = self._child(thread_id)
        if await db(find_instance, child) is None:
            return False
        await db(clear_instance, child)
        await self._notify(CLEARED, thread_id=thread_id)
        return True

    @client_callable(name="runThread")
    async def run_thread(self, thread_id: str) -> bool:
        """Have a thread's messages answered, and return at once. An unknown thread is made.

        While one run goes on another may wait, which reads everything anew; a further one is ignored: false. Errors:
        `QuotaExceeded`, `AgentNotFound`; clients learn that the run is over all the same.
        """
        try:
            await db(registry.ensure_thread, self.key, self._route, thread_id)
            return await db(conversation.run, self._child(thread_id))
        except ThinkError:
            await self._notify(ENDED, MESSAGES, THREADS, thread_id=thread_id)
            raise

    @client_callable(name="listFiles")
    async def list_files(self, workspace_id: str, directory: str = "/") -> list[JSONObject] | None:
        """The first 1,000 entries of a directory, directories first; `None` for a workspace of another registry.

        `{path, name, type, mimeType, size, createdAt, updatedAt}`: bytes, milliseconds.
        """
        return await self._in_workspace(workspace_id, lambda workspace: files.entries_of(workspace, directory))

    @client_callable(name="readFile")
    async def read_file(self, workspace_id: str, path: str) -> str | None:
        """The text of a file, 100,000 characters at most; `None` without one, and for a workspace of another one."""
        return await self._in_workspace(workspace_id, lambda workspace: files.text_of(workspace, path))

    @client_callable(name="writeFile")
    async def write_file(self, workspace_id: str, path: str, content: str) -> bool:
        """Write a file, with its directories; false for a workspace of another registry. Errors: `FileFailed`."""
        return bool(await self._in_workspace(workspace_id, lambda workspace: workspace.write_file(path, content)))

    @client_callable(name="removePath")
    async def remove_path(self, workspace_id: str, path: str) -> bool:
        """Remove a file or a directory with all in it; false where there is none. Errors: `FileFailed`."""

        async def remove(workspace: DatabaseWorkspace) -> bool:
            is_there = await workspace.exists(path)
            if is_there:
                await workspace.rm(path, recursive=True)
            return is_there

        return bool(await self._in_workspace(workspace_id, remove))

    def _child(self, thread_id: str) -> InstanceKey:
        return self.key.below(self._route, thread_id)

    async def _in_workspace(self, workspace_id: str, work: Callable[[DatabaseWorkspace], Awaitable[T]]) -> T | None:
        workspace = await files.workspace_at(self.key, workspace_id)
        return None if workspace is None else await work(workspace)

    async def _notify(self, *shows: str, thread_id: str, origin: str = "") -> None:
        await db(partial(registry.notify, self.key, *shows, thread_id=thread_id, origin=origin))


class ThreadsHandle(ConversationVerbs):
    """The threads of an orchestrator as code of the server holds them. Holds an address, no rows."""

    def __init__(self, key: InstanceKey, thread_agent: AgentName) -> None:
        """`thread_agent`: the class of the threads, or its route name."""
        self.key = key
        self._thread_route = route_of(thread_agent)

    @property
    def _route(self) -> str:
        return self._thread_route


def thread_json(thread: Thread) -> JSONObject:
    """A thread as frames have it."""
    return {
        "id": thread.id,
        "name": thread.name,
        "workspaceId": thread.workspace_id,
        "createdAt": milliseconds(thread.created_at),
        "lastActiveAt": milliseconds(thread.active_at),
    }


def workspace_json(workspace: ThreadWorkspace) -> JSONObject:
    """A workspace as frames have it."""
    return {"id": workspace.id, "name": workspace.name, "createdAt": milliseconds(workspace.created_at)}
