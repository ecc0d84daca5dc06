"""Every recorded answer of a provider means what its file says, and the next request has what the provider wants."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chat.core.model.language_model import ModelEvent
from chat.errors import ModelError
from chat.llm.adapters.chat_reader import ChatReader
from chat.llm.adapters.endings import ended
from chat.llm.adapters.responses_reader import ResponsesReader
from chat.llm.adapters.sse import SSEDecoder
from chat.llm.probing.answers import stored_answer
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.llm.testing import collect_until_error, make_request
from tests.budget import examples
from tests.providers.corpus import FOLDER, NAMES, in_words, model_for, next_messages, recording

PLAIN = {"role", "content", "tool_calls", "tool_call_id", "type", "call_id", "name", "arguments", "output"}


@pytest.fixture(scope="module")
def playing() -> Iterator[ScriptedServer]:
    with ScriptedServer(ServerOptions(recordings=FOLDER)) as running:
        yield running


def read(name: str, pieces: list[bytes]) -> tuple[list[ModelEvent], ModelError | None]:
    """An answer that comes in these pieces, without a connection."""
    found = recording(name)
    make: Any = ResponsesReader if found.facts.get("wire") == "responses" else ChatReader
    reader, decoder, events = make(found.facts["model"], (), set()), SSEDecoder(), []
    try:
        for piece in pieces:
            for event in decoder.feed(piece):
                events += reader.feed(event.data)
        for event in decoder.flush():
            events += reader.feed(event.data)
        for item in ended(found.facts["model"], reader, make_request("x")):
            events.append(item)
    except ModelError as error:
        return events, error
    return events, None


def without_made_up(said: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: v for key, v in entry.items() if key != "id" or not str(v).startswith("call_0")} for entry in said]


@pytest.mark.usefixtures("closed_clients")
@pytest.mark.parametrize("name", NAMES)
async def test_a_recorded_answer_means_what_its_file_says(playing: ScriptedServer, name: str) -> None:
    found = recording(name)
    events, error = await collect_until_error(model_for(found, playing.base_url), make_request(f"play {name}"))
    said = in_words(events)
    expected = found.facts["events"]
    for entry, wanted in zip(said, expected, strict=False):
        if "call" in entry and "id" not in wanted:
            entry.pop("id")  # the provider gave none, so one was made up
        if "finish" in entry and "usage" not in wanted:
            entry.pop("usage")
    assert said == expected
    assert (error.code if error else None) == found.facts.get("error")


@pytest.mark.parametrize("name", [name for name in NAMES if recording(name).returns])
def test_the_next_request_has_what_the_provider_wants_and_nobody_elses_has(name: str) -> None:
    found = recording(name)
    events, _ = read(name, [found.body])
    answer = stored_answer(events)
    assert found.missing_in(next_messages(model_for(found), answer)) is None
    for message in next_messages(model_for(found, name="other/model"), answer):
        assert set(message) <= PLAIN
        for call in message.get("tool_calls", ()):
            assert set(call) == {"id", "type", "function"}


@settings(max_examples=examples(20), suppress_health_check=list(HealthCheck), deadline=None)
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
def test_packets_do_not_matter(name: str, data: st.DataObject) -> None:
    body = recording(name).body
    cuts = sorted(data.draw(st.sets(st.integers(0, len(body)), max_size=12)) | {0, len(body)})
    pieces = [body[start:end] for start, end in pairwise(cuts)]
    whole, error = read(name, [body])
    parts, other_error = read(name, pieces)
    strip = [{**entry, "id": ""} if "call" in entry else entry for entry in in_words(whole)]
    assert [{**entry, "id": ""} if "call" in entry else entry for entry in in_words(parts)] == strip
    assert (error and error.code) == (other_error and other_error.code)
