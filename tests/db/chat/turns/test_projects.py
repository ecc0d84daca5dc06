"""Conversations in projects: the model reads what the owner wrote for the project, and the project's files."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.instances.rows import ensure_instance
from chat.llm.scripted import ScriptedModel
from chat.members.services import add_member
from chat.models import Project, Role
from chat.people.preferences import change_preferences
from chat.people.project_files import writable_files
from chat.people.projects import add_project, change_project, move_to_project, remove_project
from chat.think import Think
from tests.db.chat.turns.agents.delegating import call, nothing_delegated
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.conftest import Room
from tests.db.statements import statements
from thinkproject.kernel.aio import db
from tools_app.core.guard.reach import written_as
from tools_app.core.origins import Origin
from tools_app.models.guard import GuardEvent, GuardEventKind

__all__ = ["nothing_delegated"]  # a fixture

pytestmark = pytest.mark.django_db(transaction=True)
TOOLS = {"find_project_files", "grep_project_files", "read_project_file"}


class Aloof(Think):
    """Reads nothing of projects."""

    reads_projects = False

    def get_model(self) -> Any:
        return MODELS["current"]


async def in_project(room: Room, **values: str) -> Project:
    """Put the room's conversation into a new project."""

    def make() -> Project:
        instance = ensure_instance(room.key)
        project = add_project(room.key.owner_id, **{"name": "Garden", **values})
        move_to_project(room.key.owner_id, [instance.pk], project.pk)
        return project

    return await db(make)


def sent(model: ScriptedModel) -> str:
    """The last request as a text."""
    return json.dumps(model.requests[-1], ensure_ascii=False)


def tools_of(model: ScriptedModel) -> set[str]:
    return {tool["name"] for tool in model.requests[-1].get("tools", ())} & TOOLS


async def test_the_model_reads_the_instructions_of_the_project(make_room: Callable[..., Room]) -> None:
    room = make_room()
    await room.say("say: before")
    assert "<project>" not in sent(room.model)
    project = await in_project(room, instructions="Metric units.")
    await db(change_preferences, room.key.owner_id, {"about_me": "I bake bread."})
    await room.say("say: in it")
    system = room.model.requests[-1]["messages"][0]["content"]
    assert "“Garden”" in system
    assert system.index("I bake bread.") < system.index("Metric units.")  # what changes more often comes later
    assert tools_of(room.model) == set()
    await db(change_project, room.key.owner_id, project.pk, instructions="Imperial units.")
    await room.say("say: changed")
    assert ("Imperial units." in sent(room.model), "Metric" in sent(room.model)) == (True, False)
    await db(remove_project, room.key.owner_id, project.pk)
    await room.say("say: after")
    assert "<project>" not in sent(room.model)


async def test_the_model_reads_the_files_of_the_project(make_room: Callable[..., Room]) -> None:
    room = make_room()
    project = await in_project(room)
    files = await db(writable_files, room.key.owner_id, project.pk)
    await files.write_file("/plan.md", "Roses by the wall.")
    await room.say('call tool read_project_file {"path": "/plan.md"}\nsay: It says {result}.')
    assert tools_of(room.model) == TOOLS
    assert "Roses by the wall." in sent(room.model)
    assert "find_project_files" in room.model.requests[-1]["messages"][0]["content"]
    await room.say('call tool find_project_files {"pattern": "**"}\nsay: {result}')
    assert "/plan.md" in sent(room.model)
    await room.say('call tool grep_project_files {"query": "wall"}\nsay: {result}')
    assert "Roses" in sent(room.model)


async def test_what_others_wrote_in_a_file_is_known_to_the_guard(make_room: Callable[..., Room]) -> None:
    room = make_room()
    project = await in_project(room)
    files = await db(writable_files, room.key.owner_id, project.pk)
    with written_as(Origin.FILE):
        await files.write_file("/letter.txt", "Dear reader")
    await room.say('call tool read_project_file {"path": "/letter.txt"}\nsay: {result}')
    instance = await db(ensure_instance, room.key)
    texts = GuardEvent.objects.filter(guard=instance.session_id, kind=GuardEventKind.SEEN)
    assert await db(lambda: [each.source for each in texts]) == ["project: /letter.txt"]  # no file of the conversation


async def test_a_turn_costs_no_further_statement(make_room: Callable[..., Room]) -> None:
    async def cost(room: Room) -> list[str]:
        await room.say("say: first")  # what is made once is there
        with statements() as found:
            await room.say("say: next")
        return found

    outside = await cost(make_room(name="outside"))
    inside = make_room(name="inside")
    project = await in_project(inside, instructions="Metric units.")
    files = await db(writable_files, inside.key.owner_id, project.pk)
    await files.write_file("/plan.md", "Roses by the wall.")
    assert len(await cost(inside)) == len(outside)
    assert "Metric units." in sent(inside.model)


async def test_a_members_turn_reads_nothing_of_it(make_room: Callable[..., Room]) -> None:
    room = make_room()
    project = await in_project(room, instructions="The door's code is 4711.")
    files = await db(writable_files, room.key.owner_id, project.pk)
    await files.write_file("/plan.md", "Roses by the wall.")

    def share() -> Any:
        bob = User.objects.create_user("bob")
        add_member(ensure_instance(room.key), "bob", Role.WRITER, by=room.key.owner_id)
        return bob.pk

    bob_id = await db(share)
    await room.say("say: hers")
    assert ("4711" in sent(room.model), tools_of(room.model)) == (True, TOOLS)
    await room.say("say: his", actor_id=bob_id, via="socket")
    assert ("4711" in sent(room.model), tools_of(room.model)) == (False, set())


async def test_a_class_may_read_none(make_room: Callable[..., Room]) -> None:
    room = make_room("aloof")
    project = await in_project(room, instructions="Metric units.")
    files = await db(writable_files, room.key.owner_id, project.pk)
    await files.write_file("/plan.md", "Roses by the wall.")
    await room.say("say: hi")
    assert ("<project>" in sent(room.model), tools_of(room.model)) == (False, set())


async def test_an_agent_that_is_asked_by_another_reads_none(make_room: Callable[..., Room]) -> None:
    room = make_room("chief")
    await in_project(room, instructions="Metric units.")
    await room.say(f"{call('errand', 'say: All is well.')}\nsay: It says {{result}}.")
    assert "Metric units." in sent(room.model)
    assert "Metric units." not in sent(MODELS["errand"])
