"""Pages that show the list of conversations are sent what one of them is called now; no one else is sent anything."""

import asyncio
import json
from functools import partial
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.conversations.changes import rename_instance
from chat.conversations.list import list_line
from chat.instances.notifications import send_conversation
from chat.instances.rows import key_of
from chat.members.services import add_member, remove_member
from chat.models import AgentInstance, Role
from chat.operations.removal import delete_instance
from chat.people.projects import add_project, change_project, move_to_project, remove_project
from chat.testing import worker
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Submit
from tests.db.chat.sockets import connection, cookie_of
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

pytestmark = pytest.mark.django_db(transaction=True)


async def opened(user: User, query: str) -> Any:
    socket = connection("/agents/assistant/elsewhere", cookie=await sync_to_async(cookie_of)(user), query=query)
    connected, _ = await socket.connect(timeout=15)
    assert connected
    await frames_until(socket, "cf_agent_identity")  # it is accepted before it is in the groups
    return socket


async def frames_until(socket: Any, kind: str) -> list[JSONObject]:
    found: list[JSONObject] = []
    while not found or found[-1]["type"] != kind:
        found.append(json.loads((await socket.receive_output(timeout=30))["text"]))
    return found


async def test_open_lists_learn_of_projects(alice: User, bob: User) -> None:
    page, stranger = await opened(alice, "_list=1"), await opened(bob, "_list=1")
    project = await db(partial(add_project, alice.pk, name="Garden"))
    await frames_until(page, "think_projects")
    await db(partial(change_project, alice.pk, project.pk, name="Balcony"))
    await frames_until(page, "think_projects")
    await db(remove_project, alice.pk, project.pk)
    await frames_until(page, "think_projects")
    await db(partial(add_project, bob.pk, name="Kitchen"))
    assert [frame["type"] for frame in await frames_until(stranger, "think_projects")].count("think_projects") == 1
    for socket in (page, stranger):
        await socket.disconnect()


async def test_open_lists_receive_a_title(alice: User, bob: User, talk: AgentInstance) -> None:
    assert await db(list_line, talk.id, bob.pk) is None
    page, client, stranger = await opened(alice, "_list=1"), await opened(alice, ""), await opened(bob, "_list=1")
    await db(rename_instance, talk, "Balcony tomatoes")
    sent = (await frames_until(page, "think_conversation"))[-1]
    line = {
        "title": "Balcony tomatoes",
        "isRunning": False,
        "waitingCount": 0,
        "retryAt": None,
        "hasFailed": False,
        "guard": "",
        "plans": False,
        "projectId": None,
    }
    assert sent == {"type": "think_conversation", "id": talk.id, **line}
    for other in (client, stranger):
        received: set[str] = set()
        for probe in ("p", "q"):  # what was published before has been received when the second is answered
            await other.send_to(text_data=json.dumps({"type": "cf_agent_stream_resume_request", "probeId": probe}))
            received |= {frame["type"] for frame in await frames_until(other, "cf_agent_stream_resume_none")}
        assert "think_conversation" not in received
    for socket in (page, client, stranger):
        await socket.disconnect()


def request(text: str) -> TurnRequest:
    return TurnRequest(intake=Submit(message={"role": "user", "parts": [{"type": "text", "text": text}]}))


async def lines_until(socket: Any, instance: AgentInstance, **wanted: Any) -> list[JSONObject]:
    """The lines of a conversation, up to the first one that says this."""
    found: list[JSONObject] = []
    while not found or not wanted.items() <= found[-1].items():
        frame = (await frames_until(socket, "think_conversation"))[-1]
        found += [frame] if frame["id"] == instance.id else []
    return found


async def test_open_lists_learn_that_a_conversation_runs_fails_and_is_over(alice: User, talk: AgentInstance) -> None:
    page = await opened(alice, "_list=1")
    key = key_of(talk)
    for text in ("error 400", "and again"):  # there is no model here
        await db(admit, key, request(text))
        begun = await lines_until(page, talk, isRunning=True, hasFailed=False)
        async with worker(), asyncio.timeout(30):
            ended = await lines_until(page, talk, isRunning=False, hasFailed=True)
        assert len([*begun, *ended]) == 2  # none for each chunk
        assert all(line["waitingCount"] == 0 for line in [*begun, *ended])
    await page.disconnect()


async def test_lists_of_members_have_the_lines_of_what_is_shared(
    alice: User, bob: User, talk: AgentInstance, make_instance: Any
) -> None:
    """Also of what is not open, from the moment at which it is shared, and of nothing else."""
    other = await db(make_instance, alice, "other")
    page = await opened(bob, "_list=1")
    member = await db(add_member, talk, bob.username, Role.READER, by=alice.pk)
    await lines_until(page, talk)  # that it is there
    await db(rename_instance, other, "Alone")
    await db(rename_instance, talk, "Together")
    found = await frames_until(page, "think_conversation")
    while found[-1]["title"] != "Together":
        found += await frames_until(page, "think_conversation")
    assert {frame["id"] for frame in found if frame["type"] == "think_conversation"} == {talk.id}
    again = await opened(bob, "_list=1")
    await db(rename_instance, talk, "Once more")
    await lines_until(again, talk, title="Once more")
    await db(remove_member, talk, member.pk)
    await db(rename_instance, talk, "Not theirs")
    for _ in range(2):  # what was published before has been received when the second is answered
        await again.send_to(text_data=json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "p"}))
        shown = await frames_until(again, "cf_agent_stream_resume_none")
        assert all(frame.get("title") != "Not theirs" for frame in shown)
    for socket in (page, again):
        await socket.disconnect()


async def test_changes_at_once_share_one_read_for_all_tabs(alice: User, talk: AgentInstance) -> None:
    tabs = [await opened(alice, "_list=1") for _ in range(3)]
    with statements() as found:
        for _ in range(5):
            await sync_to_async(send_conversation)(alice.pk, talk.id)
        for tab in tabs:
            await frames_until(tab, "think_conversation")
    assert len([sql for sql in found if "think_tools_toolcallrecord" in sql]) == 1
    for tab in tabs:
        await tab.disconnect()


async def test_a_deleted_conversation_has_no_line(alice: User, talk: AgentInstance) -> None:
    page = await opened(alice, "_list=1")
    await db(delete_instance, talk)
    assert await db(list_line, talk.id, alice.pk) is None
    await page.disconnect()


async def test_open_lists_learn_of_a_move_and_those_of_members_of_no_project(
    alice: User, bob: User, talk: AgentInstance
) -> None:
    project = await db(partial(add_project, alice.pk, name="Garden"))
    await db(add_member, talk, bob.username, Role.READER, by=alice.pk)
    page, members = await opened(alice, "_list=1"), await opened(bob, "_list=1")
    await db(move_to_project, alice.pk, [talk.id], project.pk)
    await lines_until(page, talk, projectId=project.pk)
    await db(rename_instance, talk, "Roses")
    assert all(line["projectId"] is None for line in await lines_until(members, talk, title="Roses"))
    await db(remove_project, alice.pk, project.pk)
    await lines_until(page, talk, projectId=None, title="Roses")
    for socket in (page, members):
        await socket.disconnect()
