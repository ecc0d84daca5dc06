"""After any edits by turns and people an undo restores or reports, leaves people's work alone, and redo inverts it."""

import itertools
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from django.db import transaction
from django.db.models import Q
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from tests.budget import examples
from thinkproject.kernel.aio import db
from tools_app.core.files.paths import chain, parent_of
from tools_app.core.files.workspace import Link, MakeDirectory, Put, Remove
from tools_app.errors import FileFailed
from tools_app.workspace.services import open_for_scope
from tools_app.workspace.stores.backups import count_steps
from tools_app.workspace.stores.database import DatabaseWorkspace
from tools_app.workspace.stores.directory import DirectoryWorkspace
from tools_app.workspace.undo import Undoable, undo_files

pytestmark = pytest.mark.django_db(transaction=True)
_scopes = itertools.count()

PATHS = st.sampled_from(["/a", "/b", "/d", "/d/a", "/d/b", "/d/e", "/d/e/a"])
TEXTS = st.sampled_from(["one", "two", "x" * 40])  # the last is kept in storage
CHANGES = st.one_of(
    st.tuples(st.just("write"), PATHS, TEXTS),
    st.tuples(st.just("remove"), PATHS, st.just("")),
    st.tuples(st.just("mkdir"), PATHS, st.just("")),
    st.tuples(st.just("link"), PATHS, st.sampled_from(["/a", "/d", "/nowhere"])),
    st.tuples(st.just("move"), PATHS, PATHS),
    st.tuples(st.just("copy"), PATHS, PATHS),
)
Change = tuple[str, str, str]
Tree = dict[str, tuple[str, str]]
Store = DatabaseWorkspace | DirectoryWorkspace
each_store = pytest.mark.parametrize("store", ["database", "directory"])
TURNS = st.lists(st.tuples(st.sampled_from(["t1", "t2", "t3"]), CHANGES), min_size=1, max_size=10)
MIXED = st.lists(st.tuples(st.sampled_from(["t1", "t1", "t2", ""]), CHANGES), min_size=1, max_size=10)


async def changed(workspace: Store, change: Change) -> None:
    name, path, other = change
    with suppress(FileFailed):  # what is not possible changes nothing
        match name:
            case "write":
                await workspace.apply([Put(path=path, content=other.encode())])
            case "remove":
                await workspace.apply([Remove(path=path)])
            case "mkdir":
                await workspace.apply([MakeDirectory(path=path)])
            case "link":
                await workspace.apply([Link(path=path, target=other)])
            case "move":
                await workspace.mv(path, other)
            case "copy":
                await workspace.cp(path, other, recursive=True)


async def tree_of(workspace: Store) -> Tree:
    found: Tree = {}
    for entry in await workspace.glob("/**"):
        text = entry.target if entry.kind == "symlink" else ""
        if entry.kind == "file":
            text = (await workspace.read_bytes(entry.path) or b"").decode()
        found[entry.path] = (entry.kind.value, text)
    return found


def differing(one: Tree, other: Tree) -> set[str]:
    return {path for path in {*one, *other} if one.get(path) != other.get(path)}


async def undone(some: Q, undo_id: str) -> list[Undoable]:
    """Returns what was left."""

    def work() -> list[Undoable]:
        with transaction.atomic():
            return undo_files(some, undo_id=undo_id, may_write=Q())[1]

    return await db(work)


async def begun(store: str, folder: Path, changes: Sequence[Change], settings: Any) -> Store:
    settings.THINK_WORKSPACE_INLINE_BYTES = 30
    scope = f"undo_{next(_scopes)}"
    workspace: Store = open_for_scope(scope, None) if store == "database" else DirectoryWorkspace(folder / scope)
    await workspace.write_file("/kept", "kept")
    for change in changes:
        await changed(workspace, change)
    steps = itertools.count()
    count_steps(lambda: next(steps) // 2)
    return workspace


async def place_of(workspace: Store) -> Q:
    if isinstance(workspace, DatabaseWorkspace):
        return Q(workspace_id=await workspace.workspace_id())
    return Q(workspace__root=str(workspace.root))


@each_store
@given(before=st.lists(CHANGES, max_size=6), turns=TURNS)
@settings(max_examples=examples(50), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_an_undo_of_turns_alone_restores_all_and_redo_brings_it_back(
    before: list[Change],
    turns: list[tuple[str, Change]],
    settings: Any,
    transactional_db: None,
    store: str,
    tmp_path: Path,
) -> None:
    workspace = await begun(store, tmp_path, before, settings)
    own = await place_of(workspace)
    first = await tree_of(workspace)
    for turn, change in sorted(turns, key=lambda each: each[0]):
        await changed(workspace.in_turn(turn), change)
    last = await tree_of(workspace)
    assert await undone(own & Q(turn_id__in=["t1", "t2", "t3"]), "undo") == []
    assert await tree_of(workspace) == first
    assert await undone(own & Q(turn_id__in=["undo"]), "redo") == []
    assert await tree_of(workspace) == last
    assert await undone(own & Q(turn_id__in=["t1", "t2", "t3", "undo", "redo"]), "again") == []
    assert await tree_of(workspace) == first


@each_store
@given(before=st.lists(CHANGES, max_size=6), edits=MIXED)
@settings(max_examples=examples(75), suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
async def test_an_undo_restores_or_reports_and_overwrites_nothing_of_peoples(
    before: list[Change],
    edits: list[tuple[str, Change]],
    settings: Any,
    transactional_db: None,
    store: str,
    tmp_path: Path,
) -> None:
    workspace = await begun(store, tmp_path, before, settings)
    own = await place_of(workspace)
    now = await tree_of(workspace)
    base: dict[str, tuple[str, str] | None] = {}  # before the first change by a turn
    by_people: set[str] = set()  # after that
    left_there: dict[str, tuple[str, str] | None] = {}  # by the last turn
    for turn, change in edits:
        await changed(workspace.in_turn(turn), change)
        was, now = now, await tree_of(workspace)
        for path in differing(was, now):
            if turn:
                base.setdefault(path, was.get(path))
                if path not in by_people:
                    left_there[path] = now.get(path)
            elif path in base:
                is_again = store == "directory" and path in left_there and now.get(path) == left_there[path]
                (by_people.discard if is_again else by_people.add)(path)  # the same content is the same version there
    left = {each.path for each in await undone(own & Q(turn_id__in=["t1", "t2"]), "undo")}
    final = await tree_of(workspace)
    event(f"conflicts: {min(len(left), 3)}")
    for path in differing(now, final):
        is_directory = {tree[path][0] for tree in (now, final) if path in tree} == {"directory"}
        assert is_directory or (path in base and path not in by_people), path
    for path in set(base) - by_people - left:
        children = [each for each in final if parent_of(each) == path]
        is_used = final.get(path) == ("directory", "") and bool(children)  # by what stays there
        is_below = bool({*chain(path)} & (by_people | left))
        assert final.get(path) == base[path] or is_used or is_below, path
    assert await undone(own & Q(turn_id__in=["undo"]), "redo") == []
    assert await tree_of(workspace) == now
