"""Choosing a model with the Python client, against a scripted peer."""

import pytest

from chat.client import RequestRefused
from chat.core.wire import extension_frames, frames
from chat.core.wire.extension_frames import ModelChosen
from tests.unit.chat.client.peer import Connection, talking

NONE = {"reasoning_effort": None, "temperature": None, "top_p": None, "max_output_tokens": None}


def chosen(model: str | None, answers: str, notice: str = "") -> str:
    choice = None if model is None else {"model": model, **NONE}
    frame = ModelChosen(instance_id="ins_1", model_choice=choice, model=answers, model_notice=notice)
    return extension_frames.model_chosen(frame)


async def test_a_choice_is_sent_and_known_when_it_returns() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.send(chosen(None, "acme/own", "acme/old is gone."))
        frame = await connection.expect("think_model_choice")
        assert frame["model_choice"] == {"model": "acme/m", **NONE, "temperature": 0.5}
        await connection.send(chosen("acme/m", "acme/m"))
        await connection.handled()
        frame = await connection.expect("think_model_choice")
        assert set(frame["model_choice"].values()) == {None}
        await connection.send(chosen(None, "acme/own"))
        await connection.handled()

    async with talking(script) as (chat, peer):
        await chat.choose_model("acme/m", temperature=0.5)
        assert (chat.model, chat.model_choice, chat.model_notice) == ("acme/m", {"model": "acme/m", **NONE}, "")
        await chat.choose_model()
        assert (chat.model, chat.model_choice) == ("acme/own", None)
        assert "_frames=1" in peer.connections[0].socket.request.path  # type: ignore[union-attr]  # it has one by now


async def test_a_refused_choice_raises_and_is_no_turn() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.send(chosen(None, "acme/own"))
        frame = await connection.expect("think_model_choice")
        await connection.send(frames.error(frame["id"], "acme/m is not offered here."))
        await connection.handled()

    async with talking(script) as (chat, _peer):
        with pytest.raises(RequestRefused, match=r"acme/m is not offered here\."):
            await chat.choose_model("acme/m")
        assert (chat.model, chat.model_choice) == ("acme/own", None)
        assert chat._conversation.registry.running == {}


async def test_a_choice_is_sent_again_over_a_new_connection() -> None:
    async def script(connection: Connection) -> None:
        await connection.introduce()
        await connection.expect("think_model_choice")
        if connection.number == 0:
            connection.cut()
            return
        await connection.send(chosen("acme/m", "acme/m"))
        await connection.handled()

    async with talking(script) as (chat, peer):
        await chat.choose_model("acme/m")
        assert (chat.model, len(peer.connections)) == ("acme/m", 2)
