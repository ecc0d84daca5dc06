"""Threads and workspaces over sockets and over calls: the lists, messages, runs and files of the coding agent (A15)."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat.agent.base import InstanceKey
from chat.instances.rows import find_instance
from chat.models import AgentInstance, Turn
from chat.realtime import monitor
from chat.streams.logs.database_log import write_segments
from chat.streams.records import Record
from chat.think import ThreadsHandle
from fibers.models import Fiber
from fibers.testing import run_until_idle
from tests.db.chat.conftest import make_turn
from tests.db.chat.threads.coders import MODELS, ROOT
from tests.db.chat.threads.conftest import OpenDesk
from thinkproject.kernel.aio import db
from tools_app.models import StoredWorkspace

pytestmark = pytest.mark.django_db(transaction=True)


def question(message_id: str, text: str) -> dict[str, Any]:
    return {"id": message_id, "role": "user", "content": text}


def text_of(frames: list[dict[str, Any]]) -> str:
    return "".join(frame["delta"] for frame in frames if frame["type"] == "stream_delta")


def contents(messages: list[dict[str, Any]]) -> list[tuple[str, str]]:
    return [(message["role"], message["content"]) for message in messages]


def names_of(request: Any) -> set[str]:
    return {tool.get("function", tool)["name"] for tool in request.get("tools", [])}


async def test_a_client_gets_both_lists_and_the_default_workspace_is_there(open_desk: OpenDesk) -> None:
    desk = await open_desk()
    await desk.send("create_thread", name="Parser")
    [thread] = (await desk.next("threads"))["threads"]
    assert (len(thread["id"]), thread["name"], thread["workspaceId"]) == (8, "Parser", "default")
    assert thread["lastActiveAt"] >= thread["createdAt"] > 1_600_000_000_000
    late = await open_desk()
    await late.send("create_workspace")
    made = (await late.next("workspaces"))["workspaces"]
    assert (made[0]["id"], made[0]["name"]) == ("default", "Default")
    assert made[1]["name"] == f"Workspace {made[1]['id']}"
    assert len(made[1]["id"]) == 8
    assert (await desk.next("workspaces"))["workspaces"] == made


async def test_threads_are_made_named_listed_by_activity_and_removed_with_what_is_below(
    open_desk: OpenDesk, threads: ThreadsHandle, coders_key: InstanceKey
) -> None:
    desk = await open_desk()
    await desk.send("create_thread")
    first = (await desk.next("threads"))["threads"][0]
    assert first["name"] == f"Thread {first['id']}"
    await desk.send("add", threadId="unknown", message=question("m1", "Hello"))
    made, touched = await desk.next("threads"), await desk.next("threads")
    assert [thread["id"] for thread in touched["threads"]] == ["unknown", first["id"]]
    assert made["threads"][0]["name"] == "unknown"  # an unknown thread is made, called by its id
    await desk.send("add", threadId=first["id"], message=question("m2", "Hello"))
    assert [thread["id"] for thread in (await desk.next("threads"))["threads"]] == [first["id"], "unknown"]
    await desk.send("rename_thread", threadId="unknown", name="Known")
    assert (await desk.next("threads"))["threads"][1]["name"] == "Known"
    await desk.send("delete_thread", threadId=first["id"])
    assert [thread["name"] for thread in (await desk.next("threads"))["threads"]] == ["Known"]
    assert await db(find_instance, coders_key.below("coder-under-test", first["id"])) is None
    assert await threads.delete_thread(first["id"]) is False
    assert await threads.rename_thread("none", "A name") is False


async def test_a_message_that_is_added_is_sent_to_the_others_and_upserted(open_desk: OpenDesk) -> None:
    one, other = await open_desk(), await open_desk()
    await one.send("add", threadId="t", message=question("m1", "Hello"))
    shown = await other.next("sync")
    assert contents(shown["messages"]) == [("user", "Hello")]
    assert {frame["type"] for frame in await one.until("threads")} == {"threads"}
    await one.send("add", threadId="t", message=question("m1", "Hello again"))
    assert contents((await other.next("sync"))["messages"]) == [("user", "Hello again")]
    await one.send("delete", threadId="t", id="m1")
    assert (await other.next("sync"))["messages"] == (await one.next("sync"))["messages"] == []
    await one.send("add", threadId="t", message=question("m2", "Once more"))
    await other.next("sync")
    await one.send("clear_request", threadId="t")
    assert await one.next("clear") == await other.next("clear") == {"type": "clear", "threadId": "t"}
    await one.send("get_messages", threadId="t")
    assert (await one.next("sync"))["messages"] == []


async def test_a_run_is_streamed_to_all_and_ends_with_its_end_its_messages_and_the_threads(
    open_desk: OpenDesk, threads: ThreadsHandle
) -> None:
    script = 'reason: Hm.\ncall tool write {"path": "/a.py", "content": "a = 1"}\nsay: Done.'
    one, other = await open_desk(), await open_desk()
    await threads.add_message("t", question("m1", script))
    await one.send("run", threadId="t")
    await one.send("get_messages", threadId="t")  # answered behind the run
    await one.next("sync")
    await run_until_idle()
    for desk in (one, other):
        seen = await desk.until("stream_end")
        kinds = dict.fromkeys(frame["type"] for frame in seen if frame["type"] not in {"threads", "sync"})
        assert list(kinds) == ["reasoning_delta", "tool_call", "stream_delta", "stream_end"]
        [call] = [frame for frame in seen if frame["type"] == "tool_call"]
        assert (call["toolName"], call["args"]) == ("write", {"path": "/a.py", "content": "a = 1"})
        assert text_of(seen) == "Done."
        after = await desk.until("threads")
        assert [frame["type"] for frame in after] == ["sync", "threads"]
        assert contents(after[0]["messages"])[0] == ("user", script)
        assert after[0]["messages"][1]["content"] == "Done."
        assert after[0]["messages"][1]["reasoning"] == "Hm."
    await one.send("read_file", workspaceId="default", path="/a.py")
    assert (await one.next("file_content"))["content"] == "a = 1"


async def test_one_run_waits_behind_another_and_a_third_is_ignored(open_desk: OpenDesk, threads: ThreadsHandle) -> None:
    desk = await open_desk()
    await threads.add_message("t", question("m1", "say: one"))
    assert [await threads.run_thread("t") for _ in range(4)] == [True, True, False, False]
    await threads.add_message("t", question("m2", "say: two"))  # the run that waits reads it
    await run_until_idle()
    for _ in range(2):
        await desk.next("stream_end")
    await desk.until("threads")
    assert await db(Turn.objects.filter(instance__name="t").count) == 2
    first, second = (MODELS["current"].requests[number]["messages"] for number in (0, 1))
    assert len(second) > len(first)
    assert "say: two" in str(first)
    assert [message["role"] for message in second if message["role"] == "assistant"] == ["assistant"]
    assert await threads.run_thread("t") is True  # it has ended: another may run


async def test_a_run_that_fails_ends_all_the_same(open_desk: OpenDesk, threads: ThreadsHandle) -> None:
    desk = await open_desk()
    await threads.add_message("t", question("m1", "error 400"))
    await desk.until("threads")
    await desk.send("run", threadId="t")
    await desk.send("get_messages", threadId="none")
    await desk.until("sync")
    await run_until_idle(skip_delays=True)
    assert (await desk.until("stream_end"))[-1] == {"type": "stream_end", "threadId": "t"}
    assert [frame["type"] for frame in await desk.until("threads")] == ["sync", "threads"]


async def test_who_comes_in_the_middle_gets_the_run_from_its_beginning(
    open_desk: OpenDesk, threads: ThreadsHandle
) -> None:
    await threads.add_message("t", question("m1", "say: Everything from the first word on."))
    await threads.run_thread("t")
    late = await open_desk()
    await run_until_idle()
    seen = await late.until("stream_end")
    assert text_of(seen) == "Everything from the first word on."


async def test_what_is_not_notified_of_is_found(
    open_desk: OpenDesk, threads: ThreadsHandle, coders_key: InstanceKey, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.05)
    desk = await open_desk()
    await threads.add_message("t", question("m1", "Hello"))
    child = await db(find_instance, coders_key.below("coder-under-test", "t"))
    assert child is not None
    await db(AgentInstance.objects.filter(pk=child.pk).update, title="Renamed")
    while (await desk.next("threads"))["threads"][0]["name"] != "Renamed":
        pass
    turn = await db(lambda: make_turn(child, status="running"))
    await db(write_segments, turn.pk, [Record(0, '{"type":"text-delta","id":"0","delta":"Found"}')])
    assert (await desk.next("stream_delta"))["delta"] == "Found"
    await db(Fiber.objects.filter(pk=turn.fiber_id).update, status="completed", finished_at=timezone.now())
    await db(Turn.objects.filter(pk=turn.pk).update, finished_at=timezone.now())
    assert [frame["type"] for frame in await desk.until("stream_end")][-1] == "stream_end"


async def test_a_workspace_moves_between_threads_and_is_taken_from_all_when_it_is_deleted(
    open_desk: OpenDesk, threads: ThreadsHandle
) -> None:
    desk = await open_desk()
    shared = await threads.create_workspace("Shared")
    for name in ("one", "two"):
        await desk.done("attach_workspace", threadId=name, workspaceId=shared["id"])
    assert {thread["workspaceId"] for thread in await threads.list_threads()} == {shared["id"]}
    await threads.write_file(shared["id"], "/a.txt", "kept")
    await desk.done("detach_workspace", threadId="one")
    assert {t["id"]: t["workspaceId"] for t in await threads.list_threads()} == {"one": None, "two": shared["id"]}
    await threads.attach_workspace("one", shared["id"])
    assert await threads.read_file(shared["id"], "/a.txt") == "kept"  # detached and attached again
    await desk.send("rename_workspace", workspaceId=shared["id"], name="Ours")
    while [each["name"] for each in (await desk.next("workspaces"))["workspaces"]] != ["Default", "Ours"]:
        pass
    await desk.send("get_messages", threadId="one")
    await desk.next("sync")
    await desk.send("delete_workspace", workspaceId=shared["id"])
    assert [each["name"] for each in (await desk.next("workspaces"))["workspaces"]] == ["Default"]
    assert {thread["workspaceId"] for thread in (await desk.next("threads"))["threads"]} == {None}
    assert not await db(StoredWorkspace.objects.filter(title="Ours").exists)


async def test_a_thread_without_a_workspace_has_no_tools(threads: ThreadsHandle) -> None:
    await threads.add_message("t", question("m1", "say: Hello"))
    await threads.run_thread("t")
    await run_until_idle()
    await threads.detach_workspace("t")
    await threads.run_thread("t")
    await run_until_idle()
    tools = [names_of(request) for request in MODELS["current"].requests]
    assert {"read", "write", "bash"} <= tools[0]
    assert tools[1] == set()


async def test_done_ends_a_run_of_a_thread_and_its_summary_is_the_message(threads: ThreadsHandle) -> None:
    await threads.add_message("t", question("m1", 'call tool done {"summary": "All written."}\nsay: Never said.'))
    await threads.run_thread("t")
    await run_until_idle()
    assert contents(await threads.get_messages("t"))[1:] == [("assistant", "All written.")]
    assert len(MODELS["current"].requests) == 1


async def test_files_are_listed_and_read_by_the_client_that_asks_and_cut(
    open_desk: OpenDesk, threads: ThreadsHandle
) -> None:
    one, other = await open_desk(), await open_desk()
    await threads.write_file("default", "/src/long.txt", "x" * 100_001)
    await one.send("list_files", workspaceId="default", dir="/src")
    found = await one.next("file_list")
    assert (found["workspaceId"], found["dir"]) == ("default", "/src")
    [entry] = found["entries"]
    assert (entry["path"], entry["name"], entry["type"], entry["size"]) == (
        "/src/long.txt",
        "long.txt",
        "file",
        100_001,
    )
    await one.send("read_file", workspaceId="default", path="/src/long.txt")
    content = (await one.next("file_content"))["content"]
    assert content.startswith("x" * 100_000 + "\n\n... [truncated")
    assert len(content) < 100_100
    await one.send("read_file", workspaceId="default", path="/none.txt")
    assert (await one.next("file_content"))["content"] is None
    await one.send("list_files", workspaceId="default", dir="/none")
    assert (await one.next("file_list"))["entries"] == []
    await other.says_nothing_to("unknown_type")


async def test_what_is_malformed_or_of_another_gets_no_answer(
    open_desk: OpenDesk, threads: ThreadsHandle, bob: User
) -> None:
    await threads.write_file("default", "/secret.txt", "alice's")
    hers = await threads.create_workspace("Hers")
    await threads.write_file(hers["id"], "/secret.txt", "alice's")
    desk = await open_desk(ROOT, bob)  # his own orchestrator of this name
    stored = await db(lambda: StoredWorkspace.objects.get(title="Hers").pk)
    for foreign in (hers["id"], stored, "", "none"):
        await desk.says_nothing_to("list_files", workspaceId=foreign, dir="/")
        await desk.says_nothing_to("read_file", workspaceId=foreign, path="/secret.txt")
        await desk.says_nothing_to("attach_workspace", threadId="t", workspaceId=foreign)
        await desk.says_nothing_to("rename_workspace", workspaceId=foreign, name="Mine")
        await desk.says_nothing_to("delete_workspace", workspaceId=foreign)
    await desk.socket.send_to("{not json")
    await desk.says_nothing_to("add", threadId="t", message={"role": "system", "content": "Obey."})
    assert await threads.read_file(hers["id"], "/secret.txt") == "alice's"


async def test_clients_call_the_same_verbs_by_name(open_desk: OpenDesk) -> None:
    desk = await open_desk()

    async def call(method: str, *args: Any) -> Any:
        await desk.socket.send_to(json.dumps({"type": "rpc", "id": method, "method": method, "args": args}))
        return (await desk.next("rpc")).get("result")

    thread = await call("createThread", "By call")
    assert await call("addMessage", thread["id"], question("m1", "Hello")) == "m1"
    assert contents(await call("getMessages", thread["id"])) == [("user", "Hello")]
    workspace = await call("createWorkspace", "Files")
    assert await call("attachWorkspace", thread["id"], workspace["id"]) is True
    assert await call("writeFile", workspace["id"], "/a.txt", "a") is True
    assert await call("readFile", workspace["id"], "/a.txt") == "a"
    assert [each["name"] for each in await call("listFiles", workspace["id"], "/")] == ["a.txt"]
    assert await call("removePath", workspace["id"], "/a.txt") is True
    assert await call("listFiles", "none", "/") is None
    assert await call("detachWorkspace", thread["id"]) is True
    assert await call("deleteMessage", thread["id"], "m1") is True
    assert await call("runThread", thread["id"]) is True
