"""Odd forms of events, answers and calls, from a real server: nothing is lost, nothing comes twice, one request.

Manners that belong to one provider are recordings (`tests/providers`); these are of many, or of proxies between.
"""

import gzip
import json
from typing import Any

import pytest

from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.endpoint import Endpoint
from chat.llm.testing import collect_until_error, make_request
from tests.odd_provider import Reply, odd_provider
from tests.providers.corpus import in_words

pytestmark = pytest.mark.usefixtures("closed_clients")

STOP = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def text(words: Any, **more: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": words}, **more}]}


def last(words: str) -> dict[str, Any]:
    return text(words, finish_reason="stop")


def piece(arguments: Any = None, name: str | None = None, **more: Any) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"function": {key: value for key, value in function.items() if value is not None}, **more}


def call(arguments: Any = '{"q": "a"}', name: str | None = "look", **more: Any) -> dict[str, Any]:
    return piece(arguments, name, **{"index": 0, "id": "c1", **more})


def calls(*pieces: Any) -> list[Any]:
    return [{"choices": [{"index": 0, "delta": {"tool_calls": [each]}}]} for each in pieces] + [STOP]


def events(*chunks: Any) -> str:
    return "".join(
        f"data: {chunk if isinstance(chunk, str) else json.dumps(chunk)}\n\n" for chunk in (*chunks, "[DONE]")
    )


async def said(body: str | bytes, **headers: str) -> list[tuple[str, Any]]:
    """What an answer of Chat Completions says: kinds with their text or input, without its end."""
    return await said_by(ChatCompletionsModel, body, **headers)


async def said_by(adapter: Any, body: str | bytes, **headers: str) -> list[tuple[str, Any]]:
    with odd_provider(lambda _body: Reply(body=body, headers=headers)) as running:
        model = adapter(Endpoint(provider="odd", base_url=running.base_url), "m")
        found, error = await collect_until_error(model, make_request("x"))
        assert (error, len(running.bodies)) == (None, 1)
    entries = [entry for entry in in_words(found) if "finish" not in entry]
    return [(entry["call"], entry["input"]) if "call" in entry else next(iter(entry.items())) for entry in entries]


BOOM = {"error": {"message": "boom", "code": 500}}
TEXTS = {
    "an error beside the end": events(text("a"), {**last("b"), **BOOM}),
    "an error in the choice of the end": events(
        text("a"), {"choices": [{"index": 0, "delta": {"content": "b"}, "finish_reason": "stop", **BOOM}]}
    ),
    "several chunks in one event": f"data: {json.dumps(text('a'))}\ndata: {json.dumps(last('b'))}\n\ndata: [DONE]\n\n",
    "several chunks in one line": events(json.dumps(text("a")) + json.dumps(last("b"))),
    "single line ends": f"data: {json.dumps(text('a'))}\ndata: {json.dumps(last('b'))}\ndata: [DONE]\n",
    "lines of JSON": f"{json.dumps(text('a'))}\n{json.dumps(last('b'))}\n",
    "the mark in the event of the last chunk": f"data: {json.dumps(last('ab'))}\ndata: [DONE]\n\n",
    "signs of life in events": events("", "ping", text("a"), "null", "keep-alive", {}, last("b")),
    "a mark of the byte order": "\ufeff" + json.dumps(last("ab")),
    "a list of one chunk": json.dumps([last("ab")]),
    "choices as an object": events({"choices": text("a")["choices"][0]}, last("b")),
    "a choice that is null": events({"choices": [None]}, last("ab")),
    "another alternative first": events(
        {"choices": [{"index": 1, "delta": {"content": "x"}}, last("ab")["choices"][0]]}
    ),
    "content as a part": events(text({"type": "text", "text": "ab"}), STOP),
    "content as a list of texts": events(text(["a", "b"]), STOP),
    "the message so far in each chunk": events(
        {"choices": [{"index": 0, "message": {"content": "a"}}]},
        {"choices": [{"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}]},
    ),
    "the whole message at the end": events(
        text("a"), text("b"), {"choices": [{"index": 0, "message": {"content": "ab"}, "finish_reason": "stop"}]}
    ),
}


@pytest.mark.parametrize("name", TEXTS)
async def test_the_text_is_the_same_in_each_form(name: str) -> None:
    assert await said(TEXTS[name]) == [("text", "ab")]


async def test_a_last_piece_that_says_all_again_is_no_text_but_a_repeated_word_is() -> None:
    assert await said(events(text("Graz is a "), text("city in Styria."), last("Graz is a city in Styria."))) == [
        ("text", "Graz is a city in Styria.")
    ]
    assert await said(events(text("Hello"), text(" there."), last("Hello there."))) == [("text", "Hello there.")]
    assert await said(events(text("ha"), text("ha"), last("haha"))) == [("text", "hahahaha")]
    assert await said(events(text("no, "), text("no, "), last("no, no, "))) == [("text", "no, no, no, no, ")]


async def test_a_number_is_text() -> None:
    assert await said(events(text(42), STOP)) == [("text", "42")]


async def test_a_body_may_be_compressed_all_the_same() -> None:
    body = gzip.compress(events(text("a"), last("b")).encode())
    assert await said(body, **{"content-encoding": "gzip"}) == [("text", "ab")]


@pytest.mark.parametrize(
    "chunks",
    [
        [
            text("", reasoning="x"),
            {"choices": [{"delta": {"reasoning_details": [{"type": "t", "text": "hm"}]}}]},
            last("42"),
        ],
        [text("◁thi"), text("nk▷hm◁/th"), text("ink▷"), last("42")],
        [{"choices": [{"delta": {"reasoning_content": "hm"}}]}, text("</think>\n\n42"), STOP],
    ],
)
async def test_reasoning_is_none_of_the_text(chunks: list[Any]) -> None:
    assert await said(events(*chunks)) == [("reasoning", "hm"), ("text", "42")]


ONE_CALL = {
    "a new id in each piece": [call('{"q": ', id="x1"), call('"a"}', None, id="x2")],
    "a new id and the name in each piece": [call('{"q": ', id="x1"), call('"a"}', id="x2")],
    "the name in each piece, no id, no index": [piece('{"q": ', "look"), piece('"a"}', "look")],
    "the name in pieces": [call("", "lo"), piece(None, "ok", index=0), piece('{"q": "a"}', index=0)],
    "the name again, longer": [call("", "lo"), piece(None, "look", index=0), piece('{"q": "a"}', index=0)],
    "name and arguments beside the index": [{"index": 0, "id": "c1", "name": "look", "arguments": '{"q": "a"}'}],
    "the whole again, written otherwise": [call('{"q": '), piece('"a"}', index=0), call('{"q":"a"}')],
    "its end again": [call('{"q": '), piece('"a"}', index=0), piece('"a"}', index=0)],
    "its end again, with id and name": [call('{"q": '), piece('"a"}', index=0), call('"a"}')],
    "the whole again, in pieces": [call('{"q": '), piece('"a"}', index=0), piece('{"q": '), piece('"a"}', index=0)],
    "words behind": [call('{"q": "a"}\n\nI look it up now.')],
    "a tag behind": [call('{"q": "a"}</tool_call>')],
    "a brace too many": [call('{"q": "a"}}')],
    "words before": [call('Arguments: {"q": "a"}')],
    "a fence around, in pieces": [call("```json\n"), piece('{"q": "a"}', index=0), piece("\n```", index=0)],
    "a list of one": [call('[{"q": "a"}]')],
    "a text in a text in a text": [call(json.dumps(json.dumps('{"q": "a"}')))],
}


@pytest.mark.parametrize("name", ONE_CALL)
async def test_one_call_is_one_call_in_each_form(name: str) -> None:
    assert await said(events(*calls(*ONE_CALL[name]))) == [("look", {"q": "a"})]


TWO_CALLS = {
    "one place, no ids": [call(id=None), call('{"q": "b"}', id=None)],
    "one place, one id": [call(), call('{"q": "b"}')],
    "one place, in pieces": [call('{"q": '), piece('"a"}', index=0), call('{"q": ', id="c2"), piece('"b"}', index=0)],
    "no place, one id": [piece('{"q": "a"}', "look", id="look"), piece('{"q": "b"}', "look", id="look")],
}


@pytest.mark.parametrize("name", TWO_CALLS)
async def test_two_calls_are_two_calls_in_each_form(name: str) -> None:
    assert await said(events(*calls(*TWO_CALLS[name]))) == [("look", {"q": "a"}), ("look", {"q": "b"})]


async def test_calls_without_arguments_are_each_one() -> None:
    assert await said(events(*calls(*(call("", "now", id=f"c{n}") for n in range(3))))) == [("now", {})] * 3
    assert await said(events(*calls(*(call("{}", "now", id=f"c{n}") for n in range(3))))) == [("now", {})] * 3


async def test_a_call_of_the_earlier_kind_is_one() -> None:
    pieces = [{"name": "look", "arguments": ""}, {"arguments": '{"q": '}, {"arguments": '"a"}'}]
    chunks = [{"choices": [{"index": 0, "delta": {"content": None, "function_call": each}}]} for each in pieces]
    assert await said(events(*chunks, STOP)) == [("look", {"q": "a"})]


def half(escape: str) -> str:
    return f'{{"type": "response.output_text.delta", "delta": "{escape}"}}'


def done(item: Any) -> dict[str, Any]:
    return {"type": "response.output_item.done", "output_index": 0, "item": item}


TEXT_DONE = {"type": "response.output_text.done", "text": "ab"}


def response(*output: Any, status: str = "completed") -> dict[str, Any]:
    return {"id": "r1", "object": "response", "status": status, "output": list(output)}


def ending(*output: Any) -> dict[str, Any]:
    return {"type": "response.completed", "response": response(*output)}


MESSAGE = {"type": "message", "id": "m1", "content": [{"type": "output_text", "text": "ab"}]}
LOOKS = [
    {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": "look", "arguments": json.dumps({"q": q})}
    for n, q in enumerate("ab")
]
DELTA = {"type": "response.output_text.delta", "output_index": 0, "delta": "ab"}
RESPONSES = {
    "deltas, and all of it again": (events(DELTA, TEXT_DONE, ending(MESSAGE)), [("text", "ab")]),
    "the text at its end alone": (events(TEXT_DONE, ending()), [("text", "ab")]),
    "the item alone": (events(done(MESSAGE), ending(MESSAGE)), [("text", "ab")]),
    "the end alone": (events(ending(MESSAGE)), [("text", "ab")]),
    "no stream": (json.dumps(response(MESSAGE)), [("text", "ab")]),
    "no stream, calls": (json.dumps(response(*LOOKS)), [("look", {"q": "a"}), ("look", {"q": "b"})]),
    "calls at the end alone": (events(ending(*LOOKS)), [("look", {"q": "a"}), ("look", {"q": "b"})]),
    "calls at one place": (
        events(*map(done, LOOKS), ending(*LOOKS)),
        [("look", {"q": "a"}), ("look", {"q": "b"})],
    ),
    "arguments as an object": (
        events(done({**LOOKS[0], "arguments": {"q": "a"}}), ending()),
        [("look", {"q": "a"})],
    ),
    "half a character": (
        events(half("\\ud83d"), half("\\udc4b"), ending()),
        [("text", "👋")],
    ),
    "numbers as texts and ids as numbers": (
        events({"type": "response.created", "response": {"id": 7}}, {**DELTA, "output_index": "0"}, ending()),
        [("text", "ab")],
    ),
}


@pytest.mark.parametrize("name", RESPONSES)
async def test_the_responses_api_means_the_same_in_each_form(name: str) -> None:
    body, expected = RESPONSES[name]
    assert await said_by(ResponsesModel, body) == expected


@pytest.mark.parametrize(
    ("reports", "expected"),
    [
        ([{"prompt_tokens": 9, "completion_tokens": 3}, {"prompt_tokens": 0, "completion_tokens": 0}], (9, 3)),
        ([{"prompt_tokens": 9, "completion_tokens": 0}, {"completion_tokens": 3}], (9, 3)),
        ([{"prompt_tokens": "9", "completion_tokens": "3"}], (9, 3)),
        ([{"prompt_tokens": -9, "completion_tokens": 3}], (0, 3)),
    ],
)
async def test_usage_is_put_together(reports: list[Any], expected: tuple[int, int]) -> None:
    body = events(text("a"), STOP, *({"choices": [], "usage": usage} for usage in reports))
    with odd_provider(lambda _body: Reply(body=body)) as running:
        model = ChatCompletionsModel(Endpoint(provider="odd", base_url=running.base_url), "m")
        found, _ = await collect_until_error(model, make_request("x"))
    finish: Any = found[-1]
    assert (finish.usage.input_tokens, finish.usage.output_tokens) == expected
