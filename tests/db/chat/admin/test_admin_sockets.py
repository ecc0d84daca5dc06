"""What staff change in the admin reaches the pages that are open, by the notifications of any other change."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from chat.llm.scripted import ScriptedModel
from chat.models import AgentInstance, Turn
from chat.realtime import monitor
from chat.testing import worker
from sessions_app.messages import services
from tests.db.chat.conftest import say, text_message
from tests.db.chat.sockets import frames_until, opening_sockets
from tests.db.chat.turns.agents.everyday import MODELS
from tests.db.chat.turns.agents.gated import gate, reached

pytestmark = pytest.mark.django_db(transaction=True)

Post = Callable[..., Awaitable[None]]


@pytest.fixture(autouse=True)
def _yes_unwatched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 1_000.0)  # what is not sent by its notification is not sent at all
    MODELS["current"] = ScriptedModel("say: yes")


@pytest.fixture
async def several(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    def make() -> AgentInstance:
        instance = make_instance(alice, "one", agent="several")
        say(instance, "q1", "a1")
        return instance

    return await sync_to_async(make)()


@pytest.fixture
async def several_socket(alice: User, several: AgentInstance) -> AsyncIterator[Any]:
    async with opening_sockets() as open_socket:
        yield await open_socket(alice, "several/one")


@pytest.fixture
async def post(several: AgentInstance) -> Post:
    client = Client()
    root = await sync_to_async(User.objects.create_superuser)("root")
    await sync_to_async(client.force_login)(root)

    def send(name: str, query: str, data: dict[str, Any]) -> None:
        url = reverse(f"admin:think_chat_agentinstance_{name}", args=[several.pk])
        assert client.post(url + query, {**data, "session": several.session_id}).status_code == 302

    return sync_to_async(send)


async def next_texts(socket: Any) -> list[str]:
    messages = (await frames_until(socket, "cf_agent_chat_messages"))[-1]["messages"]
    return [part["text"] for message in messages for part in message["parts"] if part["type"] == "text"]


async def test_an_open_page_gets_what_staff_wrote(several_socket: Any, post: Post) -> None:
    await post("edit_message", "?message=a1", {"text_0": "The right answer.", "shows": "on"})
    assert await next_texts(several_socket) == ["text of q1", "The right answer."]
    await post("add_message", "", {"role": "assistant", "text": "By the way.", "after": ""})
    assert await next_texts(several_socket) == ["text of q1", "The right answer.", "By the way."]


async def test_an_open_page_gets_the_branch_that_staff_chose(
    several: AgentInstance, several_socket: Any, post: Post
) -> None:
    await sync_to_async(services.put_assistant)(str(several.session_id), text_message("other", "assistant"), after="q1")
    await post("branch", "", {"message": "a1"})
    assert await next_texts(several_socket) == ["text of q1", "text of a1"]


async def test_an_open_page_streams_the_answer_that_staff_asked_for(several_socket: Any, post: Post) -> None:
    async with worker():
        await post("ask_again", "", {"message": "a1"})
        frames = await frames_until(several_socket, "done")
    assert any("yes" in str(frame.get("body")) for frame in frames)


async def test_an_open_page_sees_a_turn_that_staff_stopped(
    several: AgentInstance, several_socket: Any, post: Post
) -> None:
    root = await User.objects.aget(username="root")
    client = Client()
    await sync_to_async(client.force_login)(root)
    async with worker(), gate():
        await post("ask_again", "", {"message": "a1"})
        await reached()
        turn = await Turn.objects.aget(trigger="regenerate-message")
        await sync_to_async(client.post)(reverse("admin:think_chat_turn_act", args=[turn.pk]), {"do": "stop"})
        frames = await frames_until(several_socket, "done")
    assert frames[-1]["id"] == turn.request_id
    await turn.arefresh_from_db()
    assert turn.finished_at is not None
