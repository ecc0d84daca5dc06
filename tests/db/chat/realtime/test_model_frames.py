"""The choice of a model over sockets: set, refused, and sent to the clients that read the product's own frames."""

import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.agents import Assistant
from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.think import ChosenModel
from tests.db.chat.conftest import ApiClient
from tests.db.chat.sockets import connection, cookie_of
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject

pytestmark = pytest.mark.django_db(transaction=True)

KIND = "think_model_choice"
NONE = {"model": None, "reasoning_effort": None, "temperature": None, "top_p": None, "max_output_tokens": None}


@pytest.fixture(autouse=True)
def _two_models(settings: Any) -> None:
    settings.THINK_MODEL = "openai/gpt-5-mini"
    settings.THINK_MODELS = ["openai/gpt-5"]


async def opened(user: User, query: str = "", name: str = "talk") -> Any:
    socket = connection(f"/agents/assistant/{name}", cookie=await sync_to_async(cookie_of)(user), query=query)
    connected, _ = await socket.connect(timeout=15)
    assert connected
    return socket


async def until(socket: Any, kind: str) -> list[JSONObject]:
    found: list[JSONObject] = []
    while not found or found[-1]["type"] != kind:
        found.append(json.loads((await socket.receive_output(timeout=15))["text"]))
    return found


async def handled(socket: Any) -> list[JSONObject]:
    """Everything that comes before the answer to a probe."""
    await socket.send_to(text_data=json.dumps({"type": "cf_agent_stream_resume_request", "probeId": "p"}))
    return await until(socket, "cf_agent_stream_resume_none")


async def send(socket: Any, choice: Any, frame_id: Any = "c1") -> None:
    await socket.send_to(text_data=json.dumps({"type": KIND, "id": frame_id, "model_choice": choice}))


def frame(instance: AgentInstance, answers: str, **choice: Any) -> JSONObject:
    chosen = {**NONE, **choice} if choice else None
    return {"type": KIND, "instanceId": instance.id, "model_choice": chosen, "model": answers, "model_notice": ""}


async def test_everyone_who_asked_receives_a_choice_and_no_one_else(
    alice: User, bob: User, talk: AgentInstance
) -> None:
    page, client, published = await opened(alice, "_list=1"), await opened(alice, "_frames=1"), await opened(alice)
    stranger = await opened(bob, "_frames=1")
    for socket in (page, client):
        assert (await until(socket, KIND))[-1] == frame(talk, "openai/gpt-5-mini")  # on connect
    assert (await until(stranger, KIND))[-1]["instanceId"] is None  # of a conversation of his own
    await send(client, {"model": "openai/gpt-5", "reasoning_effort": "low"})
    wanted = frame(talk, "openai/gpt-5", model="openai/gpt-5", reasoning_effort="low")
    for socket in (page, client):
        assert (await until(socket, KIND))[-1] == wanted
    assert all(each["type"] != KIND for each in [*await handled(client), *await handled(published)])
    assert all(each["type"] != KIND for each in await handled(stranger))
    await send(published, None, "c2")  # one that sends such a frame reads them from then on
    for socket in (page, client, published):
        assert (await until(socket, KIND))[-1] == frame(talk, "openai/gpt-5-mini")
    for socket in (page, client, published, stranger):
        await socket.disconnect()


async def test_a_choice_over_the_api_and_by_code_is_sent(alice: User, talk: AgentInstance) -> None:
    page = await opened(alice, "_list=1")
    await until(page, KIND)
    as_alice = await sync_to_async(ApiClient)(alice)
    body = {"model_choice": {"model": "openai/gpt-5"}}
    await sync_to_async(as_alice.send)("PATCH", f"/instances/{talk.id}", body)
    assert (await until(page, KIND))[-1] == frame(talk, "openai/gpt-5", model="openai/gpt-5")
    await AgentHandle(key_of(talk)).choose_model(ChosenModel(max_output_tokens=50))
    assert (await until(page, KIND))[-1] == frame(talk, "openai/gpt-5-mini", max_output_tokens=50)
    await page.disconnect()


@pytest.mark.parametrize(
    ("choice", "text"),
    [
        ({"model": "openai/o3"}, "openai/o3 is not offered here."),
        ({"model": "openai/gpt-5", "temperature": 1}, "openai/gpt-5 does not take temperature."),
        ({"temperature": "warm"}, "temperature is a number from 0 to 2, or null."),
        ({"voice": "alto"}, "A choice of a model has no field 'voice'."),
        ("openai/gpt-5", "A choice of a model is an object or null."),
    ],
)
async def test_a_refused_choice_ends_with_an_error_frame(
    alice: User, talk: AgentInstance, choice: Any, text: str
) -> None:
    page = await opened(alice, "_list=1")
    await until(page, KIND)
    await send(page, choice)
    [*_, error, _answer] = await handled(page)
    assert error == {"type": "cf_agent_use_chat_response", "id": "c1", "body": text, "done": True, "error": True}
    assert await db(lambda: AgentInstance.objects.get(pk=talk.pk).model_choice) is None
    await page.disconnect()


@pytest.mark.parametrize("frame_id", [None, 7, "", "x" * 129])
async def test_a_choice_without_an_id_changes_nothing(alice: User, talk: AgentInstance, frame_id: Any) -> None:
    page = await opened(alice, "_list=1")
    await until(page, KIND)
    await send(page, {"model": "openai/gpt-5"}, frame_id)
    assert [each["type"] for each in await handled(page)][-1] == "cf_agent_stream_resume_none"
    assert await db(lambda: AgentInstance.objects.get(pk=talk.pk).model_choice) is None
    await page.disconnect()


async def test_a_client_that_may_only_look_does_not_choose(
    alice: User, talk: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "is_read_only", lambda _self, client: client.query.get("mode") == "view")
    page = await opened(alice, "_list=1&mode=view")
    await until(page, KIND)
    await send(page, {"model": "openai/gpt-5"})
    [*_, error, _answer] = await handled(page)
    assert (error["body"], error["id"]) == ("Connection is readonly", "c1")
    assert await db(lambda: AgentInstance.objects.get(pk=talk.pk).model_choice) is None
    await page.disconnect()


async def test_a_first_choice_makes_the_conversation(alice: User) -> None:
    page = await opened(alice, "_frames=1", name="fresh")
    assert (await until(page, KIND))[-1]["instanceId"] is None
    await send(page, {"model": "openai/gpt-5"})
    sent = (await until(page, KIND))[-1]
    row = await db(AgentInstance.objects.get)
    assert (sent["instanceId"], row.name) == (row.pk, "fresh")
    await page.disconnect()


async def test_a_conversation_whose_class_is_gone_is_read_only(alice: User, talk: AgentInstance) -> None:
    await db(AgentInstance.objects.filter(pk=talk.pk).update, agent="retired")
    socket = connection("/agents/retired/talk", cookie=await sync_to_async(cookie_of)(alice), query="_frames=1")
    assert (await socket.connect(timeout=15))[0]
    assert (await until(socket, KIND))[-1]["model"] is None
    await send(socket, {"model": "openai/gpt-5"})
    [*_, error, _answer] = await handled(socket)
    assert (error["body"], error["error"]) == ("There is no agent 'retired'.", True)
    await socket.disconnect()
