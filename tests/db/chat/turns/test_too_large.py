"""Single things that are larger than the model: few calls, a sentence that names them, and the next message works."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.test import override_settings

from chat.llm.model_memory import model_memory
from chat.think import Tool, tool
from chat.turns.admission.intake import Submit
from fibers.testing import run_until_idle
from sessions_app.core.messages import shapes
from sessions_app.core.messages.truncation import FORMER
from tests.db.chat.turns.agents.everyday import Plain
from tests.odd_provider import JSON, OddProvider, Reply, odd_provider, refused
from thinkproject.kernel.jsonvalue import dump

from .conftest import MakeRoom, Room, status_of

LARGE = "The beginning. " + "word " * 12_000 + "The end."
LIMIT_CHARS = 24_000


@tool
def tool_page(number: int) -> str:
    """Read a page."""
    return f"page {number} " + "word " * 8_000 + "FAILED at the end"


class Confined(Plain):
    """Asks a provider that takes little."""

    def get_model(self) -> str:  # type: ignore[override]  # a name is a model as well
        return "odd/m"

    def get_tools(self) -> list[Tool]:
        return [tool_page]


class Verbose(Confined):
    """Its instructions alone are too large."""

    def get_system_prompt(self) -> str:
        return LARGE


def narrow(body: JSON) -> Reply:
    """A server that takes bodies of 24,000 characters, and whose model reads three pages where it is asked to."""
    if len(dump(body)) > LIMIT_CHARS:
        return refused("the request exceeds the available context size, try increasing it")
    last = body["messages"][-1]
    if last["role"] == "user" and "three pages" in last["content"]:
        return Reply(calls=tuple(("tool_page", {"number": number}) for number in range(3)))
    return Reply(text="fits")


@contextmanager
def provider_of(
    answer: Callable[[JSON], Reply], pages: dict[str, Any] | None = None, **settings: Any
) -> Iterator[OddProvider]:
    model_memory.clear()
    with (
        odd_provider(answer, pages) as provider,
        override_settings(THINK_PROVIDERS={"odd": {"base_url": provider.base_url}}, **settings),
    ):
        yield provider


KNOWN = {"THINK_MODEL_LIMITS": {"odd/": {"context": 8_000}}}


async def next_works(room: Room, provider: OddProvider, calls: int) -> None:
    """Three short messages are answered, each with so many calls at most."""
    for _ in range(3):
        before = len(provider.bodies)
        assert status_of(await room.say("and now?")) == "completed"
        assert (await room.texts())[-1] == ("assistant", "fits")
        assert len(provider.bodies) - before <= calls


@pytest.mark.parametrize(("known", "calls"), [({}, 2), (KNOWN, 1)])
async def test_one_message_larger_than_the_window(make_room: MakeRoom, known: Any, calls: int) -> None:
    """Real world 8."""
    with provider_of(narrow, **known) as provider:
        room = make_room("confined")
        turn = await room.say(LARGE)
        assert (status_of(turn), turn.error_code) == ("error", "context_overflow")
        assert "The message is too large for odd/m: about 15," in turn.error_text
        assert "Send it in parts" in turn.error_text
        assert ("of 8,000" in turn.error_text) is bool(known)
        assert len(provider.bodies) == 1
        await next_works(room, provider, calls)
        sent = dump(provider.bodies[-1])
        assert "The beginning." in sent
        assert "The end." in sent
        assert len(FORMER.findall(provider.bodies[-1]["messages"][1]["content"])) == 1
        assert (await room.transcript())[0]["parts"][0]["text"] == LARGE  # what is stored stays whole


@pytest.mark.parametrize(("known", "calls"), [({}, 2), (KNOWN, 1)])
async def test_three_results_larger_than_the_window(make_room: MakeRoom, known: Any, calls: int) -> None:
    with provider_of(narrow, **known) as provider:
        room = make_room("confined")
        assert status_of(await room.say("Read three pages.")) == "completed"
        assert len(provider.bodies) <= 1 + calls
        assert dump(provider.bodies[-1]).count("FAILED at the end") == 3
        await next_works(room, provider, calls)


@pytest.mark.parametrize("known", [{}, KNOWN])
async def test_one_file_larger_than_the_window(make_room: MakeRoom, known: Any) -> None:
    with provider_of(narrow, **known) as provider:
        room = make_room("confined")
        url = "data:text/plain,ABC%20" + "word%20" * 12_000 + "XYZ"
        file: shapes.Part = {"type": "file", "mediaType": "text/plain", "filename": "notes.txt", "url": url}
        text: shapes.Part = {"type": "text", "text": "What does it say?"}
        turn = await room.say(Submit(message={"role": "user", "parts": [text, file]}))
        assert turn.error_code == "context_overflow"
        assert "The file notes.txt is too large for odd/m" in turn.error_text
        assert len(provider.bodies) == 1
        await next_works(room, provider, 2)
        assert "ABC" in dump(provider.bodies[-1])
        assert "XYZ" in dump(provider.bodies[-1])


@pytest.mark.parametrize("known", [{}, KNOWN])
async def test_a_system_prompt_larger_than_the_window(make_room: MakeRoom, known: Any) -> None:
    with provider_of(narrow, **known) as provider:
        room = make_room("verbose")
        turn = await room.say("hello")
        assert turn.error_code == "context_overflow"
        assert "The system prompt of this agent is too large for odd/m" in turn.error_text
        assert len(provider.bodies) == 1


async def test_a_message_that_is_too_large_in_a_long_conversation(make_room: MakeRoom) -> None:
    with provider_of(narrow, **KNOWN) as provider:
        room = make_room("confined")
        for _ in range(4):
            await room.say("word " * 600)
        before = len(provider.bodies)
        turn = await room.say(LARGE)
        assert "The message is too large" in turn.error_text
        assert len(provider.bodies) - before <= 2
        await next_works(room, provider, 3)


async def test_a_summary_reads_the_ends_of_what_is_too_large_for_it(make_room: MakeRoom) -> None:
    with provider_of(narrow, **KNOWN) as provider:
        room = make_room("confined")
        for text in ("hello", "and?", LARGE, *["and now?"] * 5):
            await room.say(text)
        before = len(provider.bodies)
        await room.handle.compact()
        await run_until_idle(skip_delays=True)
        [summary] = provider.bodies[before:]
        assert "The beginning." in dump(summary)
        assert "The end." in dump(summary)


OLLAMA = {
    "/v1/models": {"object": "list", "data": [{"id": "m", "owned_by": "library"}]},
    "/api/show": {"model_info": {"llama.context_length": 131_072}, "parameters": "num_ctx 4096"},
}


async def test_a_server_that_cuts_silently_is_not_sent_what_it_would_cut(make_room: MakeRoom) -> None:
    """Real world 9."""
    with provider_of(lambda _body: Reply(text="fits"), OLLAMA) as provider:
        room = make_room("confined")
        turn = await room.say(LARGE)
        assert turn.error_code == "context_overflow"
        assert "about 15,005 tokens of 4,096" in turn.error_text
        assert "OLLAMA_CONTEXT_LENGTH" in turn.error_text
        assert provider.bodies == []
        await next_works(room, provider, 1)
        assert len(dump(provider.bodies[-1])) < 4_096 * 4
        assert provider.asked.count("GET /v1/models") == 1


async def test_a_window_that_was_noticed_by_usage_is_kept_to(make_room: MakeRoom) -> None:
    with provider_of(
        lambda body: Reply(text="fits", usage={"prompt_tokens": min(2_050, len(dump(body)) // 4)})
    ) as provider:
        room = make_room("confined")
        await room.say("word " * 6_000)
        assert len(dump(provider.bodies[-1])) > 30_000
        await next_works(room, provider, 2)
        assert len(dump(provider.bodies[-1])) < 2_050 * 4


async def test_a_question_that_was_cut_away_is_an_overflow(make_room: MakeRoom) -> None:
    def answer(body: JSON) -> Reply:
        if len(dump(body)) <= LIMIT_CHARS:
            return narrow(body)
        return refused("no user query found in messages", status=500)

    with provider_of(answer) as provider:
        room = make_room("confined")
        assert status_of(await room.say("Read three pages.")) == "completed"
        assert len(provider.bodies) == 3
