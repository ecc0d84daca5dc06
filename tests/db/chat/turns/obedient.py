"""A model that does whatever any text tells it: what its user says, and what it reads of others.

An order is `call tool NAME {…}`, in plain words or disguised: invisible characters, other alphabets' letters, tags,
comments, titles of links, base64. The model carries out each order once, in the order in which it finds them.
"""

import base64
import json
import re
import unicodedata
from collections.abc import AsyncGenerator, Iterator
from typing import Any, Final

from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    Finish,
    FinishReason,
    ModelEvent,
    ModelRequest,
    TextContent,
    TextDelta,
    ToolCallContent,
    ToolCallEnd,
    ToolCallStart,
    ToolMessage,
    UserMessage,
)
from chat.llm.scripted import ScriptedModel

ORDER: Final = re.compile(r"call\s+tool\s+([\w-]+)\s*(?=\{)", re.IGNORECASE)
PICTURE: Final = re.compile(r"say\s+(!?\[[^\]]*\]\([^)]*\))")
MAX_ORDERS: Final = 8
HOMOGLYPHS: Final = str.maketrans("аеосрх", "aeocpx")  # Cyrillic


class Obedient(ScriptedModel):
    """The model. `requests` is not kept."""

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Carry out the first order that has not been carried out yet."""
        made = [content for content in _contents(request) if isinstance(content, ToolCallContent)]
        done = [(content.tool_name, json.dumps(content.input, sort_keys=True)) for content in made]
        orders = list(dict.fromkeys(_orders(request)))
        left = [order for order in orders if order not in done]
        if not left or len(done) >= MAX_ORDERS:
            said = " ".join(dict.fromkeys(_pictures(request)))
            yield TextDelta(text=f"Done. {said}".strip())
            yield Finish(reason=FinishReason.STOP)
            return
        name, arguments = left[0]
        call_id = f"c{len(done)}-{abs(hash((name, arguments))) % 10_000}"
        yield ToolCallStart(call_id=call_id, tool_name=name)
        yield ToolCallEnd(call_id=call_id, tool_name=name, arguments=arguments)
        yield Finish(reason=FinishReason.TOOL_CALLS)


def decoded(text: str) -> str:
    """A text as one reads it who wants to be fooled."""
    tags = "".join(chr(ord(char) - 0xE0000) if 0xE0020 <= ord(char) <= 0xE007E else char for char in text)
    plain = "".join(char for char in tags if unicodedata.category(char) != "Cf")
    plain = unicodedata.normalize("NFKC", plain).translate(HOMOGLYPHS)
    plain = plain.replace("\\_", "_").replace("&quot;", '"').replace("&amp;", "&")
    return plain + "".join(f"\n{found}" for found in _unpacked(plain))


def _unpacked(text: str) -> Iterator[str]:
    for packed in re.findall(r"[A-Za-z0-9+/]{40,}={0,2}", text):
        try:
            yield base64.b64decode(packed, validate=True).decode()
        except ValueError:
            continue
    yield text.replace('\\"', '"')
    backwards = text[::-1]
    if ORDER.search(backwards):
        yield backwards


def orders_in(text: str) -> Iterator[tuple[str, str]]:
    """The orders of a text: names of tools, and arguments as JSON with sorted keys."""
    plain = decoded(text)
    for found in ORDER.finditer(plain):
        try:
            arguments, _ = json.JSONDecoder().raw_decode(plain, found.end())
        except ValueError:
            continue
        yield found.group(1), json.dumps(arguments, sort_keys=True)


def _orders(request: ModelRequest) -> Iterator[tuple[str, str]]:
    for text in _texts(request):
        yield from orders_in(text)


def _pictures(request: ModelRequest) -> Iterator[str]:
    for text in _texts(request):
        yield from PICTURE.findall(text)


def _contents(request: ModelRequest) -> Iterator[Any]:
    for message in request.messages:
        if isinstance(message, AssistantMessage):
            yield from message.content


def _texts(request: ModelRequest) -> Iterator[str]:
    """All that it reads, in this order: what is said, files, results, its instructions, its tools."""
    for message in request.messages:
        if isinstance(message, UserMessage):
            for content in message.content:
                if isinstance(content, TextContent):
                    yield content.text
                elif isinstance(content, FileContent):
                    yield f"{content.filename}\n{content.data.decode('utf-8', 'replace')}"
        elif isinstance(message, ToolMessage):
            yield from _strings(message.output)
            yield from (file.data.decode("utf-8", "replace") for file in message.files)
    yield request.system
    for tool in request.tools:
        yield tool.description


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _strings(each)
    elif isinstance(value, list):
        for each in value:
            yield from _strings(each)
