"""A workspace in the database, its large files in storage."""

import asyncio
import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Self, TypeVar

from django.db import IntegrityError, transaction

from thinkproject.kernel.aio import db
from tools_app.core.files.failures import failed
from tools_app.models import StoredWorkspace, WorkspaceAttachment
from tools_app.workspace import objects
from tools_app.workspace.stores.planning import Plan
from tools_app.workspace.stores.rows import DatabaseTree, NoWorkspaceYet
from tools_app.workspace.stores.tree import StoredContent, Tree
from tools_app.workspace.stores.writes import Writes

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopeKey:
    """The workspace that a scope knows by a name. `owner_id`: whose it becomes when it is made."""

    scope: str
    name: str
    owner_id: int | None


class DatabaseWorkspace(Writes):
    """Rows, and objects for large files. Every write is one transaction that holds the workspace's row.

    Made without a query. A workspace of a scope gets its row with the first write. Durable when a method returns.
    """

    def __init__(self, key: ScopeKey | str, *, can_write: bool = True) -> None:
        """`key`: a scope's workspace, or the id of one that exists. `can_write`: for the latter."""
        super().__init__()
        self._key = key
        self._can_write = can_write
        self._turn_id = ""

    def in_turn(self, turn_id: str) -> Self:
        """The same workspace as a turn works on it: files are kept as they were before the turn changed them.

        What is kept is written in the transaction of the change (`tools_app.workspace.turn_files`). An empty id keeps
        nothing. Listeners are shared.
        """
        opened = copy.copy(self)
        opened._turn_id = turn_id
        return opened

    async def workspace_id(self) -> str | None:
        """The id of the row; `None` before the first write."""
        return await db(lambda: row.pk if (row := self._find()[0]) else None)

    def ensure(self) -> StoredWorkspace:
        """The row of a scope's workspace, made where there is none. Sync, in a transaction; the row is locked."""
        row, _ = self._find(is_locked=True)
        if row is None:
            self._make()
            row, _ = self._find(is_locked=True)
        assert row is not None
        return row

    def change_now(self, steps: Callable[[Plan], T]) -> T:
        """Plan and carry out within the caller's transaction, in its thread. No listener learns of it."""

        def work(tree: Tree) -> T:
            plan = Plan(tree)
            result = steps(plan)
            if (changes := plan.changes()) is not None:
                tree.commit(changes)
            return result

        return self._transaction(work)

    async def _reading(self, work: Callable[[Tree], T]) -> T:
        return await db(lambda: self._read(self._find()[0], work))

    async def _writing(self, work: Callable[[Tree], T], contents: Sequence[StoredContent] = ()) -> T:
        large = [content for content in contents if content.size >= self.inline_bytes]
        if not large:
            return await db(self._transaction, work)
        await asyncio.to_thread(_store, large)
        try:
            return await db(self._transaction, work)
        except BaseException:
            await db(objects.discard_unused, [content.object_name for content in large])
            raise

    def _transaction(self, work: Callable[[Tree], T]) -> T:
        with transaction.atomic():
            row, can_write = self._find(is_locked=True)
            try:
                return self._write(row, can_write, work)
            except NoWorkspaceYet:
                self._make()
            row, can_write = self._find(is_locked=True)
            return self._write(row, can_write, work)

    def _read(self, row: StoredWorkspace | None, work: Callable[[Tree], T]) -> T:
        """Give the entries to work that changes nothing. A subclass may know of rows that stand for other stores."""
        return work(DatabaseTree(row))

    def _write(self, row: StoredWorkspace | None, can_write: bool, work: Callable[[Tree], T]) -> T:
        """Give the entries to work that changes them; in the transaction that holds the row."""
        return work(DatabaseTree(row, can_write=can_write, turn_id=self._turn_id))

    def _find(self, *, is_locked: bool = False) -> tuple[StoredWorkspace | None, bool]:
        """The row, locked on demand, and whether it may be written to. One query."""
        key = self._resolve(is_writing=is_locked)
        if key is None:
            return None, True
        if isinstance(key, str):
            rows = StoredWorkspace.objects.filter(pk=key)
            row = (rows.select_for_update(no_key=True) if is_locked else rows).first()
            if row is None and is_locked:
                raise failed("ENOENT", "/", "this workspace no longer exists")
            return row, self._can_write
        links = WorkspaceAttachment.objects.filter(scope=key.scope, name=key.name)
        if is_locked:
            links = links.select_for_update(of=("workspace",), no_key=True)
        link = links.select_related("workspace").first()
        return (link.workspace, link.can_write) if link else (None, True)

    def _resolve(self, *, is_writing: bool) -> ScopeKey | str | None:
        """The key by which the workspace is found. A subclass may look its scope up, or make it before a write."""
        del is_writing
        return self._key

    def _make(self) -> None:
        """Make the row of a scope's workspace, unless another writer does."""
        key = self._resolve(is_writing=True)
        assert isinstance(key, ScopeKey)
        try:
            with transaction.atomic():
                row = StoredWorkspace.objects.create(owner_id=key.owner_id, name=key.name)
                WorkspaceAttachment.objects.create(workspace=row, scope=key.scope, name=key.name)
        except IntegrityError:
            if not WorkspaceAttachment.objects.filter(scope=key.scope, name=key.name).exists():
                raise  # the owner is gone


def _store(contents: Sequence[StoredContent]) -> None:
    """Save each as an object and note its name. Errors: the storage's; then those saved before are deleted."""
    try:
        for content in contents:
            content.object_name = objects.save_object(content.open(), content.size)
    except BaseException:
        objects.discard([content.object_name for content in contents if content.object_name])
        raise
