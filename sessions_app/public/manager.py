"""Many sessions as code holds them: make, list, find, choose, remove. Usable without an agent, in any Django project.

    sessions = SessionManager(scope="tickets:42", owner_id=user.pk)
    first = sessions.create("First contact")

A manager sees the sessions of its scope and owner and no others: an id from elsewhere is `SessionNotFound`, so ids that
come from outside may be given to it. `SessionHandle` is one of them.
"""

from collections.abc import Iterator
from functools import cached_property
from typing import Any, TypeAlias

from sessions_app.core.messages.messages import StoredMessage
from sessions_app.core.messages.tree import Leaf
from sessions_app.errors import SessionNotFound
from sessions_app.messages import services, sessions
from sessions_app.messages.sessions import SessionInfo
from sessions_app.public.handle import SessionHandle
from sessions_app.search.query import SearchPage, search
from sessions_app.transfer.export import export_lines, export_markdown
from sessions_app.transfer.import_session import Lines, import_session
from thinkproject.kernel.phrases import Phrase

__all__ = ["SessionManager"]

Infos: TypeAlias = list[SessionInfo]
History: TypeAlias = list[StoredMessage]


class SessionManager:
    """The sessions of a scope, of an owner, or of both; without either, all. Synchronous, and cheap to make.

    One of them may be the current one. This object remembers which; a new one begins with the most recently changed,
    and choosing one counts as a change, so that the choice survives a restart.
    """

    def __init__(self, *, scope: str | None = None, owner_id: Any = None) -> None:
        self.scope = scope
        self.owner_id = owner_id

    def create(
        self, name: str = "", *, parent_id: str | None = None, model_name: str = "", source: str = ""
    ) -> SessionHandle:
        """Make an empty session and make it the current one."""
        made = services.create_session(
            owner_id=self.owner_id,
            scope=self.scope or "",
            name=name,
            parent_id=None if parent_id is None else self.get(parent_id).id,
            source=source,
            model_name=model_name,
        )
        self.current_id = made.pk
        return SessionHandle(made.pk)

    def get(self, session_id: str) -> SessionHandle:
        """One of the sessions. **Errors:** `SessionNotFound`, also for a session of another scope or owner."""
        found = self.find(session_id)
        if found is None:
            raise SessionNotFound(Phrase("There is no session {id!r} here.", id=session_id))
        return found

    def find(self, session_id: str) -> SessionHandle | None:
        """The same, or nothing."""
        rows = sessions.sessions_of(scope=self.scope, owner_id=self.owner_id)
        is_there = "\0" not in session_id and rows.filter(pk=session_id).exists()
        return SessionHandle(session_id) if is_there else None

    def list(self, *, is_archived: bool | None = False, after: SessionInfo | None = None, limit: int = 50) -> Infos:
        """Sessions, pinned ones first, then the most recently changed; `after` is the last of the page before."""
        return sessions.session_list(
            scope=self.scope, owner_id=self.owner_id, is_archived=is_archived, after=after, limit=limit
        )

    # The current one

    @cached_property
    def current_id(self) -> str | None:
        """Id of the current session; nothing before the first, and after it was deleted."""
        return sessions.latest_session_id(scope=self.scope, owner_id=self.owner_id)

    @property
    def current(self) -> SessionHandle | None:
        """The current session, or nothing."""
        return None if self.current_id is None else SessionHandle(self.current_id)

    def switch(self, session_id: str) -> History:
        """Make a session the current one; returns its history. **Errors:** `SessionNotFound`."""
        handle = self.get(session_id)
        sessions.touch_session(handle.id)
        self.current_id = handle.id
        return handle.history()

    def history(self, leaf: str | Leaf = Leaf.ACTIVE) -> History:
        """The path of the current session; empty when there is none."""
        return [] if self.current is None else self.current.history(leaf)

    # One of them, by its id. **Errors:** `SessionNotFound`, as `get`.

    def rename(self, session_id: str, name: str) -> None:
        """Give it a name."""
        self.get(session_id).rename(name)

    def delete(self, session_id: str) -> None:
        """Delete it with its messages; messages shared by a fork stay. If it was current, no session is."""
        services.delete_session(self.get(session_id).id)
        if self.current_id == session_id:
            self.current_id = None

    def pin(self, session_id: str, *, is_pinned: bool = True) -> None:
        """List it before the others, or no longer."""
        sessions.pin_session(self.get(session_id).id, is_pinned=is_pinned)

    def archive(self, session_id: str, *, is_archived: bool = True) -> None:
        """Put it away, or take it back."""
        sessions.archive_session(self.get(session_id).id, is_archived=is_archived)

    def fork(self, session_id: str, message_id: str, name: str = "") -> SessionHandle:
        """Make a session that goes on from a message of this one; it is listed first."""
        return self.get(session_id).fork(message_id, name)

    def compact_and_split(self, session_id: str, summary: str, name: str = "") -> SessionHandle:
        """End a session and continue in a new one that begins with its summary."""
        return self.get(session_id).split(summary, name)

    def search(self, query: str, *, session_id: str | None = None, limit: int = 20, cursor: str = "") -> SearchPage:
        """Search all sessions or one; a malformed query returns a problem and no hits. **Errors:** `CursorInvalid`."""
        scopes = None if self.scope is None else [self.scope]
        chosen = None if session_id is None else self.get(session_id).id
        return search(query, session_id=chosen, scopes=scopes, owner_id=self.owner_id, limit=limit, cursor=cursor)

    # Out and in

    def export(self, session_id: str) -> Iterator[str]:
        """Export a session as lines of JSON, without data of other owners; `import_session` reads them."""
        return export_lines(self.get(session_id).id)

    def export_markdown(self, session_id: str) -> Iterator[str]:
        """The shown path of a session, to read."""
        return export_markdown(self.get(session_id).id)

    def import_session(self, lines: Lines, name: str = "") -> SessionHandle:
        """Create a session from an export. **Errors:** `ExportInvalid`; then nothing is stored."""
        made = import_session(lines, owner_id=self.owner_id, scope=self.scope or "", name=name)
        return SessionHandle(made.session_id)
