"""Workspaces of several conversations: a fork has copies of its own, an attached one is the same for all."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db.models import Count

from chat.agent.base import InstanceKey
from chat.conversations.fork import fork_instance
from chat.instance.handle import AgentHandle
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from tests.db.chat.conftest import ApiClient, say
from tests.db.statements import statements
from tests.workspace_contract import errno
from thinkproject.kernel.aio import db
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.files.workspace import Put
from tools_app.errors import WorkspaceExists, WorkspaceNameInvalid, WorkspaceNotFound
from tools_app.models import StoredWorkspace, WorkspaceEntry
from tools_app.workspace.quotas import usage
from tools_app.workspace.services import attach, create_workspace

pytestmark = pytest.mark.django_db(transaction=True)


def address(user: User, name: str) -> AgentHandle:
    return AgentHandle(InstanceKey(owner_id=user.pk, agent="assistant", name=name))


async def talk(user: User, name: str) -> AgentInstance:
    instance = await db(ensure_instance, address(user, name).key)
    await db(say, instance, f"{name}-q", f"{name}-a")
    return instance


async def forked(instance: AgentInstance) -> AgentHandle:
    made = await db(fork_instance, instance, f"{instance.name}-a")
    return AgentHandle(key_of(made))


# --- forks -----------------------------------------------------------------------------------------------------------


async def test_a_fork_has_files_of_its_own(alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 100
    instance = await talk(alice, "origin")
    origin = address(alice, "origin").workspace
    await origin.apply([Put(path="/d/f", content=b"old"), Put(path="/large", content=b"x" * 1_000)])
    await origin.symlink("d/f", "/link")
    copy = (await forked(instance)).workspace
    assert await copy.info() == await origin.info()
    assert await copy.read_file("/link") == "old"
    before = {entry.path: entry.version for entry in await origin.glob("/**/*")}
    assert {entry.path: entry.version for entry in await copy.glob("/**/*")} == before
    await origin.write_file("/d/f", "of the origin")
    await copy.rm("/d", recursive=True)
    await copy.write_file("/new", "of the fork")
    assert (await origin.read_file("/d/f"), await origin.exists("/new")) == ("of the origin", False)
    assert (await copy.exists("/d/f"), await copy.read_file("/large")) == (False, "x" * 1_000)


async def test_large_files_are_shared_until_the_last_conversation_goes(alice: User, settings: Any) -> None:
    settings.THINK_WORKSPACE_INLINE_BYTES = 100
    instance = await talk(alice, "origin")
    await address(alice, "origin").workspace.write_file("/large", "x" * 1_000)
    fork = await forked(instance)
    names = {name async for name in WorkspaceEntry.objects.values_list("storage_name", flat=True)}
    (name,) = names
    await db(delete_instance, instance)
    assert await fork.workspace.read_file("/large") == "x" * 1_000
    await db(delete_instance, await db(ensure_instance, fork.key))
    assert not object_storage().exists(name)


async def test_a_fork_needs_room_for_its_files_and_leaves_nothing_without(alice: User, settings: Any) -> None:
    instance = await talk(alice, "origin")
    await address(alice, "origin").workspace.write_file("/f", "x" * 700)
    settings.THINK_WORKSPACE_QUOTA_BYTES = 1_000
    assert await errno(forked(instance)) == "ENOSPC"
    assert await StoredWorkspace.objects.acount() == await AgentInstance.objects.acount() == 1
    reply = await db(
        lambda: ApiClient(alice).send("POST", f"/instances/{instance.pk}/fork", {"message_id": "origin-a"})
    )
    assert (reply.status_code, reply.json()["code"]) == (409, "file_failed")
    settings.THINK_WORKSPACE_QUOTA_BYTES = 1_400
    await forked(instance)
    assert (await db(usage, alice.pk)).byte_count == 1_400


async def test_copying_many_files_takes_few_statements(alice: User) -> None:
    instance = await talk(alice, "origin")
    await address(alice, "origin").workspace.apply([Put(path=f"/{at % 9}/{at}", content=b"x") for at in range(900)])
    with statements() as sent:
        await forked(instance)
    assert len([each for each in sent if "INSERT" in each and "workspaceentry" in each]) == 1
    counts = WorkspaceEntry.objects.values("workspace").annotate(count=Count("pk")).values_list("count", flat=True)
    assert [count async for count in counts] == [909, 909]


async def test_a_fork_uses_what_its_origin_may_only_read_and_what_is_shared(alice: User) -> None:
    instance = await talk(alice, "origin")
    library = address(alice, "library").workspace
    await library.write_file("/book", "words")
    origin = address(alice, "origin")
    await origin.attach_workspace(address(alice, "library"), can_write=False)
    common = await db(create_workspace, None)
    await db(lambda: attach(common.pk, instance.pk, name="common"))
    fork = await forked(instance)
    await library.write_file("/book", "more words")
    assert await fork.workspace.read_file("/book") == "more words"
    assert await errno(fork.workspace.write_file("/book", "mine")) == "EPERM"
    await fork.open_workspace("common").write_file("/f", "x")
    assert await origin.open_workspace("common").read_file("/f") == "x"


async def test_a_fork_of_a_conversation_without_files_has_none(alice: User) -> None:
    fork = await forked(await talk(alice, "origin"))
    assert (await fork.workspace.info()).file_count == 0
    assert not await StoredWorkspace.objects.aexists()


# --- attached workspaces ---------------------------------------------------------------------------------------------


async def test_two_conversations_see_one_workspace(alice: User) -> None:
    one, other = address(alice, "one"), address(alice, "other")
    await one.workspace.write_file("/f", "of one")
    workspace_id = await other.attach_workspace(one)
    assert await other.workspace.read_file("/f") == "of one"
    await other.workspace.write_file("/f", "of other")
    assert await one.workspace.read_file("/f") == "of other"
    assert await address(alice, "third").attach_workspace(workspace_id, name="theirs") == workspace_id
    assert await address(alice, "third").open_workspace("theirs").read_file("/f") == "of other"


async def test_a_workspace_for_reading_refuses_every_write(alice: User) -> None:
    one, other = address(alice, "one"), address(alice, "other")
    await one.workspace.write_file("/f", "x")
    await other.attach_workspace(one.key, can_write=False)
    assert await other.workspace.read_file("/f") == "x"
    for write in (
        other.workspace.write_file("/f", "y"),
        other.workspace.append_file("/f", "y"),
        other.workspace.mkdir("/d"),
        other.workspace.rm("/f"),
        other.workspace.cp("/f", "/g"),
        other.workspace.mv("/f", "/g"),
        other.workspace.symlink("/f", "/l"),
    ):
        assert await errno(write) == "EPERM"
    await other.attach_workspace(one.key)  # again, and it may write
    await other.workspace.write_file("/f", "y")
    assert await one.workspace.read_file("/f") == "y"


async def test_one_that_has_no_files_yet_can_be_attached(alice: User) -> None:
    one, other = address(alice, "one"), address(alice, "other")
    await other.attach_workspace(one)
    await one.workspace.write_file("/f", "x")
    assert await other.workspace.read_file("/f") == "x"


async def test_nobody_elses_workspace_can_be_attached(alice: User, bob: User) -> None:
    hers, his = address(alice, "hers"), address(bob, "his")
    await hers.workspace.write_file("/f", "private")
    row = await StoredWorkspace.objects.aget()
    for other in (hers, hers.key, row.pk, "wsp_none"):
        with pytest.raises(WorkspaceNotFound):
            await his.attach_workspace(other)
    assert await his.workspace.read_file("/f") is None
    assert not await AgentInstance.objects.filter(owner=bob).aexists()


async def test_a_name_that_is_taken_or_impossible_is_refused(alice: User) -> None:
    one, other = address(alice, "one"), address(alice, "other")
    await other.workspace.write_file("/mine", "x")
    with pytest.raises(WorkspaceExists):
        await other.attach_workspace(one)
    with pytest.raises(WorkspaceNameInvalid):
        await other.attach_workspace(one, name="../up")
    with pytest.raises(WorkspaceNameInvalid):
        other.open_workspace("no name")


async def test_detaching_leaves_the_files_to_the_others(alice: User) -> None:
    one, other = address(alice, "one"), address(alice, "other")
    await one.workspace.write_file("/f", "x")
    workspace_id = await other.attach_workspace(one)
    assert await other.detach_workspace(workspace_id)
    assert not await other.detach_workspace(workspace_id)
    assert not await address(alice, "nobody").detach_workspace(workspace_id)
    assert (await other.workspace.read_file("/f"), await one.workspace.read_file("/f")) == (None, "x")


async def test_a_shared_workspace_lives_as_long_as_a_conversation_uses_it(alice: User) -> None:
    one, other = address(alice, "one"), address(alice, "other")
    await one.workspace.write_file("/f", "x")
    await other.attach_workspace(one)
    await db(delete_instance, await db(ensure_instance, one.key))
    assert await other.workspace.read_file("/f") == "x"
    await db(delete_instance, await db(ensure_instance, other.key))
    assert not await StoredWorkspace.objects.aexists()
