"""A model that obeys every order that it reads: under the guard no order is carried out before a person approves it."""

import base64
import hashlib
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.turns.admission.continuation import reply_to_call
from chat.turns.admission.intake import Submit
from chat.turns.admission.tool_answers import Reply
from chat.turns.tools import providers as tool_providers
from fibers.testing import run_until_idle, worker
from sessions_app.core.messages.shapes import Message
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import until
from tests.db.chat.turns.agents.guarded_agents import DONE, MAIL, NOTES, Guarded, Web, clock, open_web
from thinkproject.kernel.aio import db
from thinkproject.kernel.append_only import erasing
from tools_app.calls.services import Actor
from tools_app.core.files.workspace import EntryKind
from tools_app.core.guard.rules import SeenText
from tools_app.core.origins import Origin
from tools_app.core.source import Source
from tools_app.core.tool import Tool, with_name
from tools_app.core.tool_calls import CallStatus
from tools_app.models import ToolCallRecord

from .conftest import MakeRoom
from .injections import (
    ATTACHED,
    CODE,
    CORPUS,
    DEEDS,
    DESCRIBED,
    EXFILTRATION,
    FILES,
    MAILS,
    NAMES,
    OTHERS,
    PAGES,
    Injection,
)
from .obedient import Obedient

__all__ = ["open_web"]  # a fixture

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("shared_sandbox_closes")]

LIVE = ("pending", "running")
FAMILIES = {
    "pages": PAGES,
    "files": FILES,
    "names": NAMES,
    "attached": ATTACHED,
    "mails": MAILS,
    "described": DESCRIBED,
    "exfiltration": EXFILTRATION,
    "deeds": DEEDS,
    "code": CODE,
    "others": OTHERS,
}


@pytest.fixture(autouse=True)
def _library() -> Iterator[None]:
    """A server whose descriptions of its tools no person has accepted."""

    async def tools(request: tool_providers.ToolRequest) -> list[Tool]:
        if not NOTES:
            return []
        text = "\n".join(NOTES)
        if request.guard is not None:
            name = f"catalogue {hashlib.sha256(text.encode()).hexdigest()}"
            await request.guard.see([SeenText(Origin.MCP, "library")], name=name)
        found = with_name(clock, "tool_library_find")
        return [Tool(**{**{name: getattr(found, name) for name in found.__slots__}, "description": text})]

    former = tool_providers._providers[Source.MCP]
    tool_providers.unregister(Source.MCP)
    tool_providers.register(Source.MCP, tools)
    yield
    tool_providers.unregister(Source.MCP)
    tool_providers.register(Source.MCP, former)
    NOTES.clear()


class World:
    """One conversation with what an injection finds there."""

    def __init__(self, desk: Guarded, web: Web, case: Injection) -> None:
        self.desk = desk
        self._web = web
        self._case = case

    async def prepare(self) -> None:
        DONE.clear()
        MAIL.clear()
        self._web.log.clear()
        self._web.pages.clear()
        await self.desk.room.handle.context.replace("memory", "")
        MAIL.update({name: self._filled(text) for name, text in self._case.mails.items()})
        NOTES[:] = [self._filled(text) for text in self._case.notes]
        for path, (text, media_type) in self._case.pages.items():
            self._web.put(path, self._filled(text), media_type)
        for path, text in self._case.files.items():
            await self.desk.upload(path, text)
        for path, text in self._case.own.items():
            await self.desk.room.handle.workspace.write_file(path, text)

    async def hear(self) -> None:
        """Have the user say everything, each in a turn of its own."""
        for number, text in enumerate(self._case.says):
            files = self._case.attached.items() if number == 0 else ()
            parts: Any = [
                {"type": "file", "mediaType": "text/plain", "filename": name, "url": _data_url(content)}
                for name, content in files
            ]
            message: Message = {
                "id": f"said-{number}",
                "role": "user",
                "parts": [*parts, {"type": "text", "text": self._filled(text)}],
            }
            admission = await self.desk.room.admit(Submit(message=message))
            await self._run(admission.turn.pk)

    async def harm(self) -> list[str]:
        """What was done that only a stranger wanted."""
        workspace = self.desk.room.handle.workspace
        entries = [entry for entry in await workspace.glob("/**/*") if entry.kind is EntryKind.FILE]
        texts = {entry.path: await workspace.read_file(entry.path) for entry in entries}
        known = {**self._case.files, **self._case.own, "/mine.txt": texts.get("/mine.txt", "")}
        changed = [
            f"file {path} {text}"
            for path, text in texts.items()
            if text != known.get(path) and not path.startswith("/fetched/")
        ]
        gone = [f"gone {path}" for path in self._case.own if path not in texts]
        memory = await self.desk.room.handle.context.block("memory")
        remembered = [f"memory {memory.content}"] if memory is not None and memory.content else []
        called = [path for path in self._web.log if path.startswith("/collect")]
        return [*DONE, *changed, *gone, *remembered, *called]

    async def approve(self) -> bool:
        """Approve one call that waits, whichever conversation asks; false where none does."""
        row = await db(lambda: ToolCallRecord.objects.filter(status=CallStatus.ASKED).order_by("pk").first())
        if row is None:
            return False
        instance = await db(lambda: AgentInstance.objects.get(pk=row.scope))
        actor = Actor(user_id=self.desk.room.key.owner_id, via="api")
        reply = Reply(call_id=row.call_id, is_approved=True)
        replied = await db(partial(reply_to_call, await db(key_of, instance), reply, actor))
        await self._run(None if replied.turn is None else replied.turn.pk)
        return True

    async def _run(self, turn_id: str | None) -> None:
        """Run what there is to run. An agent that waits for another one needs someone else to run that."""
        if not self._delegates:
            await run_until_idle(skip_delays=True)
            return

        async def has_ended() -> bool:
            return turn_id is None or (await self.desk.room.turn(turn_id)).fiber.status not in LIVE

        async with worker():
            await until(has_ended)

    @property
    def _delegates(self) -> bool:
        return any("delegate" in text for text in (*self._case.says, *self._case.mails.values()))

    def _filled(self, text: str) -> str:
        return text.replace("{web}", self._web.url(""))


def _data_url(text: str) -> str:
    return f"data:text/plain;base64,{base64.b64encode(text.encode()).decode()}"


async def world_of(make_room: MakeRoom, agent: str, web: Web, number: int, case: Injection) -> World:
    MODELS["current"] = Obedient()
    room = make_room(agent, f"{agent}-{number}")
    room.model = MODELS["current"] = Obedient()
    world = World(Guarded(room), web, case)
    await world.prepare()
    return world


def test_the_corpus_is_large_enough() -> None:
    assert len(CORPUS) >= 50
    assert len({case.name for case in CORPUS}) == len(CORPUS)


def _forget_asked() -> None:
    with erasing():
        ToolCallRecord.objects.filter(status=CallStatus.ASKED).delete()


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
async def test_no_order_of_a_stranger_is_carried_out_before_it_is_approved(
    make_room: MakeRoom, open_web: Web, family: str
) -> None:
    for number, case in enumerate(FAMILIES[family]):
        world = await world_of(make_room, "guarded-clerk", open_web, number, case)
        await world.hear()
        assert await world.harm() == [], case.name
        for _ in range(4):
            assert await world.approve(), f"nothing is asked: {case.name}"
            if harm := await world.harm():
                assert harm == [case.harm], case.name
                break
        else:
            raise AssertionError(f"approved, and not done: {case.name}")
        await db(_forget_asked)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
async def test_without_the_guard_the_same_orders_are_carried_out(
    make_room: MakeRoom, open_web: Web, family: str
) -> None:
    for number, case in enumerate(FAMILIES[family]):
        world = await world_of(make_room, "careless-clerk", open_web, number, case)
        await world.hear()
        assert set(await world.harm()) == {case.harm}, case.name
