"""Methods for the context blocks of a conversation: `self.context` of an agent, `handle.context` elsewhere.

    await self.context.append("memory", "Likes tea.")

Works in hooks, tools, callables and views alike, but not inside `configure_session`, which declares the blocks. The
rules are those of the blocks: a read-only one refuses, a full one refuses, and a kept prompt changes with a refresh.
"""

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from chat.errors import InputInvalid
from sessions_app.core.context.context_blocks import Block

if TYPE_CHECKING:
    from sessions_app.context.session_context import SessionContext

_configuring: ContextVar[bool] = ContextVar("configuring_session", default=False)


@contextmanager
def configuring() -> Iterator[None]:
    """The session setup is running: calls within this block belong to `configure_session`."""
    token = _configuring.set(True)
    try:
        yield
    finally:
        _configuring.reset(token)


class ContextMethods:
    """The context of a conversation's current session; inside a turn, of the turn's session.

    Errors: `BlockNotFound`, `BlockNotWritable`, `BlockTooLarge`, `ContextInvalid`, unless a method lists others.
    """

    def __init__(self, open_context: "Callable[[], Awaitable[SessionContext]]") -> None:
        self._open_context = open_context

    async def blocks(self) -> list[Block]:
        """Read every block with its content, in the order of the prompt."""
        return await (await self._open()).blocks()

    async def block(self, label: str) -> Block | None:
        """Read one block; `None` for an unknown label."""
        return await (await self._open()).block(label)

    async def replace(self, label: str, content: str) -> Block:
        """Write a block's text."""
        return await (await self._open()).replace(label, content)

    async def append(self, label: str, content: str) -> Block:
        """Write at the end of a block's text, on a line of its own."""
        return await (await self._open()).append(label, content)

    async def set_entry(
        self, label: str, content: str, *, key: str = "", title: str = "", description: str = ""
    ) -> str:
        """Store an entry in a block of skills or a searchable one; returns its key. The same key replaces."""
        return await (await self._open()).set_entry(label, content, key=key, title=title, description=description)

    async def load(self, label: str, key: str) -> str | None:
        """Read a document of a block of skills and note it as loaded; `None` for an unknown key."""
        return await (await self._open()).load(label, key)

    async def unload(self, label: str, key: str) -> bool:
        """Have models read a loaded document no more, from the next turn on; `False` when it was not loaded."""
        return await (await self._open()).unload(label, key)

    async def search(self, label: str, query: str) -> str:
        """Search a searchable block, as its tool does."""
        return await (await self._open()).search(label, query)

    async def add(self, label: str, *, description: str = "", max_tokens: int | None = None) -> None:
        """Add a writable text to this session for good. Blocks with providers are declared in `configure_session`.

        A kept prompt shows it after a refresh. Errors: `BlockExists`.
        """
        await (await self._open()).add(label, description=description, max_tokens=max_tokens)

    async def remove(self, label: str) -> bool:
        """Take a block out of this session, a declared one too; `False` when it is not there. Its text stays stored."""
        return await (await self._open()).remove(label)

    async def system_prompt(self) -> str:
        """Give the system prompt that a turn would get now; where it is kept, this keeps it."""
        return await (await self._open()).system_prompt()

    async def refresh_system_prompt(self) -> str:
        """Render the prompt anew and, where it is kept, keep this one. Turns that begin from now on get it."""
        return await (await self._open()).refresh_system_prompt()

    async def _open(self) -> "SessionContext":
        if _configuring.get():
            raise InputInvalid("The context cannot be used inside configure_session, which declares it.")
        return await self._open_context()
