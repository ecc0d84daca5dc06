"""Methods for the sessions of an instance: create, switch, read, rename, clear, delete.

`Think` and `AgentHandle` share these methods. Where a class keeps several (`keeps_sessions`), one is current: turns go
to it, sockets show it, and it is the same one after a restart. A class that keeps one can read and empty it.
"""

from chat.agent.ports import InstancePort
from chat.agent.values.turns import StoredSession
from sessions_app.core.messages.shapes import Message


class SessionMethods:
    """Manage the sessions of an instance, and read the current one."""

    instance: InstancePort

    async def create_session(self, name: str = "") -> StoredSession:
        """Make an empty history and make it current; every client gets the empty list.

        Errors: `InputInvalid` when the class does not keep several, `QuotaExceeded`.
        """
        return await self.instance.sessions.create(name)

    async def switch_session(self, session_id: str) -> list[Message]:
        """Make another history current and read it; every client gets its list.

        Turns of the former one continue; clients receive nothing of them until it is current again.
        Errors: `SessionNotFound`, `InputInvalid` when the class does not keep several.
        """
        await self.instance.sessions.switch(session_id)
        return await self.get_history()

    async def get_sessions(self) -> list[StoredSession]:
        """Read the histories, the most recently changed first; at most 200."""
        return await self.instance.sessions.list_all()

    async def get_session(self) -> StoredSession | None:
        """Read the current history without its messages; `None` when there is none."""
        return next((kept for kept in await self.get_sessions() if kept.is_current), None)

    async def get_current_session_id(self) -> str | None:
        """Id of the current session; `None` before the first message and after the current session was deleted."""
        current = await self.get_session()
        return None if current is None else current.id

    async def rename_session(self, session_id: str, name: str) -> None:
        """Give a history a name. Errors: `SessionNotFound`."""
        await self.instance.sessions.rename(session_id, name)

    async def delete_session(self, session_id: str) -> None:
        """Stop the turns of a history and remove it. If it was current, none is, and every client's list is emptied.

        Errors: `SessionNotFound`, `InputInvalid` when the class does not keep several.
        """
        await self.instance.sessions.delete(session_id)

    async def clear_messages(self) -> None:
        """Stop the turns of the current history and forget its messages. Inside a turn this stops it."""
        await self.instance.sessions.clear()

    async def get_history(self, leaf_id: str | None = None) -> list[Message]:
        """Read the path to a message of the current history, or the shown one, root first; its newest stretch."""
        return [message.to_ui() for message in await self.instance.sessions.path(leaf_id)]

    async def messages(self) -> list[Message]:
        """Read what the conversation shows, oldest first: `get_history()` under the name that handles have for it."""
        return await self.get_history()

    async def get_message_count(self) -> int:
        """Count the messages of the current history on all its branches; 0 when there is none."""
        return await self.instance.sessions.count_messages()
