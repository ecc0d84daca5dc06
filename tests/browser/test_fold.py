"""The browser's fold is the server's fold: the same chunks give the same message, from any point on."""

import json
import random
from typing import Any

import pytest

from chat.core.wire.accumulator import fold
from chat.core.wire.chunks import Chunk
from tests.browser.chat_page import ChatPage

pytestmark = pytest.mark.smoke

FOLD = """([chunks, seed]) => import(new URL('/static/think/testing.js', location)).then(({ applyChunk }) => {
    const message = seed ?? { id: "a", role: "assistant", parts: [] };
    for (const chunk of chunks) applyChunk(message, chunk);
    return message.parts;
})"""
INTERRUPTED = {"toolMetadata": {"think": {"interrupted": True}}}
OURS = ("startedAt", "endedAt")  # what only the browser notes, for durations


def some_chunks(dice: random.Random) -> list[Chunk]:
    """A plausible and now and then senseless list of chunks."""
    calls = ["c1", "c2", "c3"]
    makers: list[Any] = [
        lambda: {"type": "start-step"},
        lambda: {"type": "finish-step"},
        lambda: {"type": "text-start", "id": "t"},
        lambda: {"type": "text-delta", "id": "t", "delta": dice.choice(["a ", "b\n", "é", ""])},
        lambda: {"type": "text-end", "id": "t"},
        lambda: {"type": "reasoning-start", "id": "r", "providerMetadata": {"p": {"a": 1}}},
        lambda: {"type": "reasoning-delta", "id": "r", "delta": "x"},
        lambda: {"type": "reasoning-end", "id": "r", "providerMetadata": {"q": {"b": 2}}},
        lambda: {"type": "tool-input-start", "toolCallId": dice.choice(calls), "toolName": "weather"},
        lambda: {"type": "tool-input-delta", "toolCallId": dice.choice(calls), "inputTextDelta": '{"a":'},
        lambda: {
            "type": "tool-input-available",
            "toolCallId": dice.choice(calls),
            "toolName": "weather",
            "input": dice.choice([{"a": 1}, '{"b":2}', "", None, [1]]),
        },
        lambda: {
            "type": "tool-input-error",
            "toolCallId": dice.choice(calls),
            "toolName": "weather",
            "input": {"c": 3},
            "errorText": "bad",
        },
        lambda: {"type": "tool-output-available", "toolCallId": dice.choice(calls), "output": {"x": 1}},
        lambda: {
            "type": "tool-output-available",
            "toolCallId": dice.choice(calls),
            "output": "so far",
            "preliminary": True,
            "toolMetadata": {"think": {"title": "Half", "metadata": {"n": dice.randint(0, 9)}}},
        },
        lambda: {"type": "data-think-progress", "data": {"toolCallId": "c1", "title": "Half"}, "transient": True},
        lambda: {"type": "tool-output-error", "toolCallId": dice.choice(calls), "errorText": "broke", **INTERRUPTED},
        lambda: {"type": "tool-output-denied", "toolCallId": dice.choice(calls)},
        lambda: {"type": "tool-approval-request", "approvalId": "ap", "toolCallId": dice.choice(calls)},
        lambda: {
            "type": "tool-approval-request",
            "approvalId": "aq",
            "toolCallId": dice.choice(calls),
            "approvalDescriptor": {"title": "T", "sentence": "S?", "mayEdit": ["a"]},
        },
        lambda: {"type": "data-think-resumed", "id": "p0:3", "data": {"at": "now", "offset": 3}},
        lambda: {
            "type": "reasoning-end",
            "id": "r",
            "providerMetadata": {"p": {"a": 1}, "think": {"durationMs": dice.randint(0, 9)}},
        },
        lambda: {"type": "source-url", "sourceId": "s", "url": "https://example.com/", "title": "T"},
        lambda: {"type": "file", "url": "/f", "mediaType": "image/png"},
        lambda: {"type": "data-note", "id": "n", "data": dice.randint(0, 9)},
        lambda: {"type": "data-note", "data": 1, "transient": True},
        lambda: {"type": "unheard-of", "x": 1},
    ]
    return [dice.choice(makers)() for _ in range(dice.randint(1, 40))]


def clean(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without what only the browser notes."""
    return [{key: value for key, value in part.items() if key not in OURS} for part in parts]


def test_browser_folds_as_the_server_does_from_any_point_on(tab: ChatPage) -> None:
    dice = random.Random(7)
    for _ in range(300):
        chunks = some_chunks(dice)
        cut = dice.randint(0, len(chunks))
        expected = fold([{"type": "start", "messageId": "a"}, *chunks])["parts"]
        seed = fold([{"type": "start", "messageId": "a"}, *chunks[:cut]])
        assert clean(tab.page.evaluate(FOLD, [chunks, None])) == expected, json.dumps(chunks)
        assert clean(tab.page.evaluate(FOLD, [chunks[cut:], seed])) == expected, json.dumps([cut, chunks])
