"""A conversation that changes its model: the server of each provider takes the history of each other one."""

from collections.abc import Iterator
from typing import Any, Final, cast

import pytest

from chat.core.context.prompt import to_model_messages
from chat.core.model.language_model import FileContent, ModelRequest
from chat.llm.adapters.overflow_words import ROWS
from chat.llm.model_memory import model_memory
from chat.llm.probing.answers import stored_answer
from chat.llm.scripted import ScriptedServer, ServerOptions
from chat.llm.scripted.manners import Manners, read_manners
from chat.llm.scripted.recordings import Recording
from chat.llm.testing import collect, text_of
from sessions_app.core.messages.shapes import Message, Part
from tests.providers.corpus import FOLDER, NAMES, Adapter, events_of, model_for, recording
from thinkproject.kernel.jsonvalue import JSONObject, dump

PICTURE: Final = FileContent(media_type="image/png", data=b"\x89PNG", filename="a.png")
OWN: Final = {"role", "content", "tool_calls", "tool_call_id", "type", "call_id", "name", "arguments", "output"}
MOST: Final = 5
"""Requests until a server has said all that it wants otherwise."""


ASKED: Final = {"role": "user", "content": "Look."}
CALLED: Final = {
    "role": "assistant",
    "content": "",
    "reasoning_content": "",
    "reasoning": "",
    "tool_calls": [{"id": "call.1" + "x" * 80, "type": "function", "function": {"name": "lookup", "arguments": "{}"}}],
}
RESULT: Final = {"role": "tool", "tool_call_id": "call.1" + "x" * 80, "content": ""}
_PARTS: Final = [{"type": "image_url", "image_url": {"url": "data:,"}}]
BROKEN: Final[dict[str, JSONObject]] = {
    "ids": {"messages": [ASKED, CALLED, RESULT]},
    "not empty": {"messages": [ASKED, {"role": "assistant", "content": ""}, ASKED]},
    "answer after results": {"messages": [ASKED, CALLED, RESULT, ASKED]},
    "user first": {"messages": [CALLED, RESULT]},
    "roles alternate": {"messages": [ASKED, ASKED]},
    "signature": {"messages": [ASKED, CALLED, RESULT]},
    "reasoning": {"messages": [ASKED, CALLED, RESULT]},
    "no fields": {"messages": [ASKED, CALLED, RESULT]},
    "parts": {"messages": [{"role": "user", "content": _PARTS}]},
    "no options": {"messages": [ASKED], "tools": []},
    "no schema": {"messages": [ASKED], "response_format": {"type": "json_schema"}},
}


def _told_most(names: list[str]) -> str:
    """The recording that has most in it that may go wrong: data to return, calls, reasoning."""

    def weight(name: str) -> tuple[int, ...]:
        found = recording(name)
        events = [set(event) for event in found.facts["events"]]
        kinds = ("call", "reasoning", "text")
        return (-bool(found.facts.get("error")), bool(found.returns), *(any(k in e for e in events) for k in kinds))

    return max(names, key=weight)


PROVIDERS: Final = sorted({name.partition("/")[0] for name in NAMES})
BEST: Final = {
    provider: recording(_told_most([name for name in NAMES if name.startswith(f"{provider}/")]))
    for provider in PROVIDERS
}


pytestmark = pytest.mark.usefixtures("closed_clients")


@pytest.fixture
def checking() -> Iterator[ScriptedServer]:
    with ScriptedServer(ServerOptions(recordings=FOLDER)) as running:
        yield running


def model_at(server: ScriptedServer, found: Recording) -> Adapter:
    return model_for(found, server.base_url.replace("/v1", f"/{found.name.partition('/')[0]}/v1"))


def user(text: str, *parts: Part) -> Message:
    return {"id": "u", "role": "user", "parts": [*parts, {"type": "text", "text": text}]}


def call(call_id: str, **more: Any) -> Part:
    made: JSONObject = {
        "type": "tool-lookup",
        "toolCallId": call_id,
        "state": "output-available",
        "input": {"q": "a"},
        **more,
    }
    return cast("Part", made)


def history_of(answer: Message) -> list[Message]:
    """A greeting, a picture, an answer, a picture of a tool's, an empty result, and a turn that was stopped in it."""
    picture: Part = {"type": "file", "mediaType": "image/png", "url": "/files/a.png", "filename": "a.png"}
    steps: list[Part] = [
        {"type": "step-start"},
        call("functions.lookup:0", output=""),
        call("x" * 80, output={"files": [picture]}),
        {"type": "step-start"},
        call("toolu_a.b", state="input-available"),
    ]
    greeting: Message = {"id": "g", "role": "assistant", "parts": [{"type": "text", "text": "Hello."}]}
    stopped: Message = {"id": "s", "role": "assistant", "parts": steps}
    return [greeting, user("See.", picture), answer, user("And this?"), stopped]


def request_to(model: Adapter, messages: list[Message]) -> ModelRequest:
    made = to_model_messages(
        messages,
        accepts_images=model.accepts_images,
        accepts_documents=model.accepts_documents,
        load_file=lambda _url: PICTURE,
    )
    return ModelRequest(system="Be brief.", messages=made)


def sent_since(server: ScriptedServer, count: int) -> list[JSONObject]:
    return server.requests()[count:]


def strange_fields(body: JSONObject) -> set[str]:
    """Fields of messages and calls that only another provider can have given."""
    messages = body.get("messages") or body["input"]
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    return {key for item in (*messages, *calls) for key in item} - OWN - {"id", "function", "extra_content"}


@pytest.mark.parametrize("before", PROVIDERS)
async def test_every_other_provider_takes_the_history_of_one(checking: ScriptedServer, before: str) -> None:
    first = BEST[before]
    answer = stored_answer(events_of(first))
    for provider, found in BEST.items():
        model_memory.clear()
        model = model_at(checking, found)
        count = len(checking.requests())
        events = await collect(model, request_to(model, [*history_of(answer), user("say: Fine.")]))
        assert text_of(events) == "Fine.", provider
        *refused, last = sent_since(checking, count)
        assert len(refused) < MOST, provider
        if refused:
            await collect(model, request_to(model, [*history_of(answer), user("say: Fine.")]))
            assert len(sent_since(checking, count)) == len(refused) + 2, f"{provider} had to be asked again"
        if first.facts["model"] != found.facts["model"]:
            assert strange_fields(last) <= {"reasoning_content"}
            assert not any(item in dump(last) for item in secrets_of(first))


def secrets_of(found: Recording) -> list[str]:
    """The values that a provider wants back and that are no words."""
    values: list[str] = []
    for message in found.returns:
        for item in (message, *message.get("tool_calls", ())):
            extras = {key: value for key, value in item.items() if key not in {*OWN, "id", "function", "phase"}}
            values += [dump(value) for value in extras.values()]
    return [value for value in values if value not in ('""', "{}", "[]")]


@pytest.mark.parametrize("before", PROVIDERS)
async def test_back_at_the_first_provider_it_has_its_own_again(checking: ScriptedServer, before: str) -> None:
    first = BEST[before]
    answer, model = stored_answer(events_of(first)), model_at(checking, first)
    for provider, found in BEST.items():
        model_memory.clear()
        messages = [*history_of(answer), user("And you?"), stored_answer(events_of(found)), user("say: Back.")]
        assert text_of(await collect(model, request_to(model, messages))) == "Back.", provider
        body = checking.requests()[-1]
        if "ids" not in model_memory.of(model._endpoint.base_url, model._model).demands:
            assert first.missing_in(body.get("messages") or body["input"]) is None, provider


@pytest.mark.parametrize("before", PROVIDERS)
async def test_every_other_provider_goes_on_in_the_middle_of_an_answer(checking: ScriptedServer, before: str) -> None:
    answer = stored_answer(events_of(BEST[before]))
    half: Part = {"type": "text", "text": "The answer is 4", "state": "streaming"}
    has_calls = any("toolCallId" in part for part in answer["parts"])
    told = [part for part in answer["parts"] if has_calls or part["type"] == "reasoning"]
    cut: Message = {**answer, "parts": [*told, {"type": "step-start"}, half]}
    script = 'call tool lookup {"q": "a"}\nsay: The answer is 42.' if has_calls else "say: The answer is 42."
    for provider, found in BEST.items():
        model_memory.clear()
        model = model_at(checking, found)
        asked = user(script)
        events = await collect(model, request_to(model, [*history_of(answer), asked, cut]))
        assert text_of(events) == "2.", provider


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_provider_has_a_name_and_sources_for_what_is_said_of_it(provider: str) -> None:
    manners = read_manners(FOLDER, provider)
    assert manners is not None
    assert manners.facts.keys() <= {"name", "overflow", "facts", "checks"}
    assert set(manners.facts.get("overflow", ())) <= {row.server for row in ROWS}
    declared = [*(manners.facts.get("facts") or {}).values(), *manners.checks]
    assert all(each["source"].startswith("https://") and each.get("says", each.get("words")) for each in declared)


@pytest.mark.parametrize("provider", PROVIDERS)
def test_every_check_refuses_something(provider: str) -> None:
    """A double that takes everything would show nothing: each rule refuses a body that breaks it, and that alone."""
    manners = read_manners(FOLDER, provider)
    assert manners is not None
    for check in manners.checks:
        only = Manners(facts={"checks": [check]})
        refused = only.refusal_of(BROKEN[check["rule"]])
        assert refused is not None
        assert (refused.message, refused.status) == (check["words"], check.get("status", 400))
        assert only.refusal_of({"messages": [{"role": "user", "content": "Hello."}]}) is None
