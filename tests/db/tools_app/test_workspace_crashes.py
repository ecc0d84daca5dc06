"""A write that ends anywhere: at each statement, at the commit, before and after each object. Nothing is half there."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import FileSystemStorage
from django.db import OperationalError, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import Q

from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.files.workspace import Put, Remove
from tools_app.models import WorkspaceEntry
from tools_app.workspace import objects, services
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.undo import undo_files

pytestmark = pytest.mark.django_db(transaction=True)

Operation = Callable[[DatabaseWorkspace], Awaitable[Any]]
LARGE, SMALL = b"L" * 50, b"s"

OPERATIONS: dict[str, Operation] = {
    "write": lambda w: w.write_file("/new/large", LARGE),
    "replace": lambda w: w.write_file("/d/large", b"M" * 60),
    "shrink": lambda w: w.write_file("/d/large", SMALL),
    "grow": lambda w: w.write_file("/d/small", LARGE),
    "append": lambda w: w.append_file("/d/large", b"more"),
    "delete": lambda w: w.delete_file("/d/large"),
    "remove": lambda w: w.rm("/d", recursive=True),
    "copy": lambda w: w.cp("/d", "/e", recursive=True),
    "move over": lambda w: w.mv("/d/small", "/d/large"),
    "several": lambda w: w.apply([Put(path="/d/large", content=SMALL), Put(path="/x", content=LARGE)]),
}


class Ended(OperationalError):
    """The end of the process, or of its connections: as the database's error, after which Django rolls back."""


class Fate:
    """Counts the steps of an operation, and ends it at one of them."""

    def __init__(self) -> None:
        self.at: int | None = None
        self.steps = 0
        self.is_final = False
        """Whether nothing more happens after the end, as when the process is killed: cleaning up fails too."""

    def step(self) -> None:
        if self.at is None:
            return
        self.steps += 1
        if self.steps == self.at or (self.is_final and self.steps > self.at):
            raise Ended


@pytest.fixture
def fate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Fate]:
    found = Fate()
    _stepping(monkeypatch, CursorWrapper, "_execute", found, is_after=False)
    _stepping(monkeypatch, type(connections["default"]), "_commit", found, is_after=True)
    _stepping(monkeypatch, FileSystemStorage, "_save", found, is_after=True)
    _stepping(monkeypatch, FileSystemStorage, "delete", found, is_after=True)
    yield found
    found.at = None


def _stepping(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, fate: Fate, *, is_after: bool) -> None:
    real = getattr(owner, name)

    def stepping(self: Any, *arguments: Any, **named: Any) -> Any:
        fate.step()
        result = real(self, *arguments, **named)
        if is_after:
            fate.step()
        return result

    monkeypatch.setattr(owner, name, stepping)


def objects_now() -> set[str]:
    return {f"{objects.FOLDER}/{name}" for name in object_storage().listdir(objects.FOLDER)[1]}


async def contents(workspace: DatabaseWorkspace) -> dict[str, bytes | None]:
    entries = await workspace.glob("**/*")
    return {entry.path: await workspace.read_bytes(entry.path) for entry in entries if entry.kind == "file"}


@pytest.mark.parametrize("is_final", [True, False], ids=["killed", "failed"])
@pytest.mark.parametrize("name", OPERATIONS)
async def test_no_row_is_without_its_object(
    name: str, is_final: bool, fate: Fate, alice: User, settings: Any, monkeypatch: Any
) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    monkeypatch.setattr(objects, "ORPHAN_HOURS", -1)
    await db(objects.sweep_orphans)
    fate.is_final = is_final
    operation, at, is_done = OPERATIONS[name], 0, False
    while not is_done:
        at += 1
        assert at < 60
        workspace = services.open_for_scope(f"ins_{at}", alice.pk)
        await workspace.apply([Put(path="/d/large", content=LARGE), Put(path="/d/small", content=SMALL)])
        before = await contents(workspace)
        fate.at, fate.steps = at, 0
        try:
            await operation(workspace)
            is_done = fate.steps < at
        except Ended:
            pass
        finally:
            fate.at = None
        after = await contents(workspace)
        assert None not in after.values()
        named = {row async for row in _object_names()}
        assert named <= objects_now(), f"a row without its object after step {at}"
        if not is_done and after != before:  # then it happened, whole
            other = services.open_for_scope(f"other_{at}", alice.pk)
            await other.apply([Put(path="/d/large", content=LARGE), Put(path="/d/small", content=SMALL)])
            await operation(other)
            assert after == await contents(other)
            named = {row async for row in _object_names()}
        await db(objects.sweep_orphans)
        assert objects_now() == named
    assert at > 5


@pytest.mark.long
async def test_an_undo_that_ends_anywhere_is_whole_or_did_not_begin(fate: Fate, alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    at, is_done = 0, False
    while not is_done:
        at += 1
        assert at < 80
        workspace = services.open_for_scope(f"undo_{at}", alice.pk)
        await workspace.apply([Put(path="/d/large", content=LARGE), Put(path="/d/small", content=SMALL)])
        first = await contents(workspace)
        turn = workspace.in_turn(f"turn_{at}")
        await turn.apply(
            [Put(path="/d/large", content=SMALL), Remove(path="/d/small"), Put(path="/new", content=LARGE)]
        )
        last = await contents(workspace)
        fate.at, fate.steps = at, 0
        try:
            await db(undone, f"turn_{at}", f"undo_{at}")
            is_done = fate.steps < at
        except Ended:
            pass
        finally:
            fate.at = None
        after = await contents(workspace)
        assert after in (first, last), f"half undone after step {at}"
        if after == last:
            await db(undone, f"turn_{at}", f"undo_{at}")
        assert await contents(workspace) == first
        await db(undone, f"undo_{at}", f"redo_{at}")
        assert await contents(workspace) == last
        assert {row async for row in _object_names()} <= objects_now()
    assert at > 5


def undone(turn_id: str, undo_id: str) -> None:
    with transaction.atomic():
        undo_files(Q(turn_id=turn_id), undo_id=undo_id, may_write=Q())


async def test_an_object_of_a_failed_write_is_removed_at_once(alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    settings.THINK_WORKSPACE_QUOTA_BYTES = 60
    workspace = services.open_for_scope("ins_1", alice.pk)
    await workspace.write_file("/f", LARGE)
    before = objects_now()
    with pytest.raises(Exception, match="ENOSPC"):
        await workspace.write_file("/g", LARGE)
    assert objects_now() == before


async def test_the_sweep_leaves_young_objects_alone(alice: User, settings: Any, monkeypatch: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    workspace = services.open_for_scope("ins_1", alice.pk)
    await workspace.write_file("/f", LARGE)
    await WorkspaceEntry.objects.all().adelete()
    orphans = objects_now()
    assert await db(objects.sweep_orphans) == 0
    monkeypatch.setattr(objects, "ORPHAN_HOURS", -1)
    assert await db(lambda: objects.sweep_orphans(dry_run=True)) == len(orphans)
    assert objects_now() == orphans
    assert await db(objects.sweep_orphans) == len(orphans)
    assert objects_now() == set()


async def test_a_lost_object_reads_as_empty(alice: User, settings: Any, caplog: pytest.LogCaptureFixture) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    workspace = services.open_for_scope("ins_1", alice.pk)
    await workspace.write_file("/f", LARGE)
    for name in objects_now():
        object_storage().delete(name)
    assert await workspace.read_file("/f") == ""
    assert "/f is lost" in caplog.text


async def test_a_cancelled_write_still_ends_whole(alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 10
    workspace = services.open_for_scope("ins_1", alice.pk)
    changes: list[Any] = []
    ended = asyncio.Event()

    def note(some: Any) -> None:
        changes.extend(some)
        ended.set()

    workspace.on_change(note)
    task = asyncio.create_task(workspace.write_file("/f", LARGE))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(ended.wait(), 20)
    assert [change.path for change in changes] == ["/f"]
    assert await workspace.read_bytes("/f") == LARGE


def _object_names() -> Any:
    return WorkspaceEntry.objects.exclude(storage_name="").values_list("storage_name", flat=True)
