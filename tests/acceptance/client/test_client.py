"""`chat.client` against the real product: processes that are killed, lines that are cut, clients beside each other."""

import asyncio
import json
from collections.abc import Callable

import pytest

from chat.client import ChatClient, NoSuchAgent, NotSignedIn, RequestRefused, Turn
from tests.acceptance.client.people import client
from tests.acceptance.product import Product, wait_for
from thinkproject.kernel.jsonvalue import JSONObject

WORDS = 150
SCRIPT = f"marker: client\nstream {WORDS} words at 50/s"


async def until(turn: Turn, characters: int) -> str:
    """Read the turn until it has said so much; returns what it said."""
    said = ""
    async for text in turn.texts():
        said += text
        if len(said) >= characters:
            break
    return said


class Reading:
    """Reads a turn beside what a test does."""

    def __init__(self, turn: Turn) -> None:
        self._turn = turn
        self._pieces = 0
        self._more = asyncio.Event()
        self._task = asyncio.create_task(self._read())

    async def _read(self) -> str:
        said = ""
        async for text in self._turn.texts():
            said += text
            self._pieces += 1
            self._more.set()
        self._more.set()
        return said

    async def more(self, count: int) -> bool:
        """Wait for so many more pieces; false when the turn ends before."""
        wanted = self._pieces + count
        async with asyncio.timeout(60):
            while self._pieces < wanted and not self._turn.is_over:
                self._more.clear()
                await asyncio.wait(
                    {asyncio.ensure_future(self._more.wait()), self._task}, return_when="FIRST_COMPLETED"
                )
        return self._pieces >= wanted

    async def all(self) -> str:
        return await asyncio.wait_for(asyncio.shield(self._task), 60)


async def at_rest(chat: ChatClient) -> None:
    assert chat.messages == await chat.get_messages()


@pytest.mark.smoke
async def test_a_conversation(shared_product: Product) -> None:
    async with client(shared_product, "py-conversation") as chat:
        assert chat.identity == ("assistant", "py-conversation")
        assert chat.messages == []
        turn = await chat.send("say: Hello from the provider.")
        kinds = [chunk["type"] async for chunk in turn]
        assert kinds[0] == "start"
        assert kinds[-1] == "finish"
        answer = await turn.final()
        assert turn.text == "Hello from the provider."
        assert answer == chat.messages[-1]
        second = await chat.send([{"type": "text", "text": "say: And again."}])
        assert "".join([text async for text in second.texts()]) == "And again."
        assert [m["role"] for m in chat.messages] == ["user", "assistant"] * 2
        await at_rest(chat)


def bodies_asked(product: Product, marker: str) -> list[JSONObject]:
    """What the provider was asked with this marker. Its log is written a few milliseconds after the request."""
    log = [json.loads(line) for line in product.provider_log.read_text(encoding="utf-8").splitlines()]
    return [entry["body"] for entry in log if entry["kind"] == "request" and marker in json.dumps(entry)]


@pytest.mark.smoke
async def test_a_chosen_model_answers_and_every_client_learns_of_it(shared_product: Product) -> None:
    async with client(shared_product, "py-model") as chat, client(shared_product, "py-model") as other:
        await chat.choose_model("openai/another", temperature=0.5)
        assert chat.model == "openai/another"
        async with asyncio.timeout(10):
            while other.model != "openai/another":  # noqa: ASYNC110 - the client says nothing when it learns
                await asyncio.sleep(0.05)
        assert other.model_choice == chat.model_choice
        await (await other.send("marker: py-model\nsay: Hello.")).message()
        asked = await asyncio.to_thread(wait_for, lambda: bodies_asked(shared_product, "py-model"), what="the request")
        assert (asked[0]["model"], asked[0]["temperature"]) == ("another", 0.5)  # a title may be asked for after it
        with pytest.raises(RequestRefused, match="is not offered here"):
            await other.choose_model("openai/stranger")
        await other.choose_model()
        assert (other.model, other.model_choice) == ("openai/scripted", None)


@pytest.mark.smoke
async def test_edit_regenerate_and_clear(shared_product: Product) -> None:
    async with client(shared_product, "py-edit") as chat:
        await (await chat.send("say: one")).message()
        question = chat.messages[0]["id"]
        again = await chat.regenerate()
        await again.message()
        assert again.text == "one"
        edited = await chat.edit(question, "say: two")
        await edited.message()
        assert edited.text == "two"
        assert [m["parts"][-1]["text"] for m in chat.messages] == ["say: two", "two"]
        await at_rest(chat)
        await chat.clear()
        assert chat.messages == await chat.get_messages() == []


@pytest.mark.smoke
async def test_cancel_keeps_the_partial(shared_product: Product) -> None:
    async with client(shared_product, "py-cancel") as chat:
        turn = await chat.send("stream 500 words at 50/s")
        await until(turn, 50)
        await chat.cancel(turn)
        answer = await turn.message()
        assert turn.outcome == "aborted"
        assert answer["parts"][-1]["text"] == turn.text != ""
        await at_rest(chat)


@pytest.mark.smoke
async def test_two_clients_of_one_conversation(shared_product: Product) -> None:
    async with client(shared_product, "py-two") as one, client(shared_product, "py-two") as two:
        seen: list[Turn] = []

        async def watch() -> None:
            async for turn in two.turns():
                seen.append(turn)
                assert "".join([text async for text in turn.texts()]) == turn.text
                if len(seen) == 2:
                    return

        watching = asyncio.create_task(watch())
        first, second = await one.send("stream 40 words at 100/s"), await one.send("say: short")
        answers = [await first.message(), await second.message()]
        await asyncio.wait_for(watching, 30)
        assert [turn.request_id for turn in seen] == [first.request_id, second.request_id]
        assert [turn.answer for turn in seen] == answers
        assert one.messages == two.messages == await one.get_messages()


@pytest.mark.smoke
async def test_refusals_are_errors_and_are_not_tried_again(shared_product: Product) -> None:
    with pytest.raises(NoSuchAgent):
        async with client(shared_product, "py", agent="nobody"):
            pass
    with pytest.raises(NotSignedIn):
        async with ChatClient(shared_product.url(""), agent="assistant", token="wrong"):
            pass
    async with client(shared_product, "py-refused") as chat:
        with pytest.raises(RequestRefused):
            await chat.send([{"type": "file", "mediaType": "text/plain", "url": "data:broken"}])
        await (await chat.send("say: fine")).message()
        assert len(chat.messages) == 2


async def test_killed_web_process(make_product: Callable[..., Product]) -> None:
    product = make_product()
    async with client(product, "killed") as chat, client(product, "calm") as calm:
        turn, other = await chat.send(SCRIPT), await calm.send(SCRIPT)
        reading = Reading(turn)
        assert await reading.more(30)
        await asyncio.to_thread(product.webs[0].restart)
        assert await reading.all() == turn.text
        await turn.message()
        await other.message()
        assert turn.text == other.text
        assert len(turn.text.split()) == WORDS
        await at_rest(chat)


async def test_killed_worker(make_product: Callable[..., Product]) -> None:
    product = make_product()
    async with client(product, "killed") as chat:
        turn = await chat.send(SCRIPT)
        reading = Reading(turn)
        assert await reading.more(30)
        await asyncio.to_thread(product.workers[0].restart)
        assert await reading.all() == turn.text
        assert len(turn.text.split()) == WORDS
        await at_rest(chat)


async def test_a_line_that_is_cut_again_and_again(make_product: Callable[..., Product]) -> None:
    """Two web servers behind the proxy: each connection may go to another one."""
    product = make_product(webs=2, is_proxied=True)
    assert product.proxy is not None
    script = "stream 500 words at 50/s"  # long enough for a busy machine to come back more than five times
    async with client(product, "cut") as chat, client(product, "cut-calm", web=0) as calm:
        turn, other = await chat.send(script), await calm.send(script)
        reading = Reading(turn)
        while await reading.more(20):
            await asyncio.to_thread(product.proxy.cut)
        assert await reading.all() == turn.text
        await other.message()
        assert turn.text == other.text
        assert product.proxy.cuts > 5
        await at_rest(chat)


async def test_an_answer_that_ended_while_offline_is_whole(make_product: Callable[..., Product]) -> None:
    product = make_product(is_proxied=True)
    assert product.proxy is not None
    async with client(product, "offline") as chat:
        first, second = await chat.send("stream 60 words at 60/s"), await chat.send("say: The second.")
        reading = Reading(first)
        assert await reading.more(5)
        await asyncio.to_thread(product.proxy.go_offline)
        async with ChatClient(
            product.url(""), agent="assistant", name="offline", token=product.token("alice")
        ) as other:
            async for turn in other.turns():
                if turn.request_id == second.request_id:
                    await turn.message()
                    break
        await asyncio.to_thread(product.proxy.go_online)
        assert await reading.all() == first.text
        assert len(first.text.split()) == 60
        assert "".join([text async for text in second.texts()]) == "The second."
        await at_rest(chat)
