"""The recordings beside this module, and what the product makes of an answer, in the words of their files."""

import contextlib
from pathlib import Path
from typing import Any, Final

from chat.core.context.prompt import to_model_messages
from chat.core.model.language_model import (
    Finish,
    ModelEvent,
    ModelRequest,
    ReasoningDelta,
    TextDelta,
    TextWasReasoning,
    ToolCallEnd,
)
from chat.errors import ModelError
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.chat_reader import ChatReader
from chat.llm.adapters.endings import ended
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.adapters.responses_reader import ResponsesReader
from chat.llm.adapters.sse import SSEDecoder
from chat.llm.endpoint import Endpoint
from chat.llm.scripted.recordings import Recording, read_recording
from sessions_app.core.messages.shapes import Message
from thinkproject.kernel.jsonvalue import JSONObject, load

FOLDER: Final = Path(__file__).parent
NAMES: Final = sorted(f"{path.parent.name}/{path.stem}" for path in FOLDER.glob("*/*.sse"))
QUESTION: Final[Message] = {"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Look it up."}]}
NEXT_QUESTION: Final[Message] = {"id": "m3", "role": "user", "parts": [{"type": "text", "text": "Thanks."}]}

Adapter = ChatCompletionsModel | ResponsesModel


def recording(name: str) -> Recording:
    """One of the corpus."""
    return read_recording(FOLDER, name)


def model_for(found: Recording, base_url: str = "http://127.0.0.1:9/v1", name: str = "") -> Adapter:
    """The adapter that the recording's provider is asked through; `name`: another model instead."""
    provider, _, model = (name or str(found.facts["model"])).partition("/")
    endpoint = Endpoint(provider=provider, base_url=base_url)
    return (ResponsesModel if found.facts.get("wire") == "responses" else ChatCompletionsModel)(endpoint, model)


def in_words(events: list[ModelEvent]) -> list[JSONObject]:
    """Events as the files write them: what was said, in order, pieces joined."""
    said: list[JSONObject] = []
    for event in events:
        match event:
            case TextDelta(text=text) if text:
                _join(said, "text", text)
            case ReasoningDelta(text=text) if text:
                _join(said, "reasoning", text)
            case TextWasReasoning():
                said = [{"reasoning": "".join(entry.get("text", "") for entry in said)}]
            case ToolCallEnd():
                said.append({"call": event.tool_name, "id": event.call_id, "input": load(event.arguments)})
            case Finish():
                usage = event.usage
                counts = {"input": usage.input_tokens, "output": usage.output_tokens}
                more = {"reasoning": usage.reasoning_tokens, "cached": usage.cached_tokens}
                said.append({"finish": event.reason.value, "usage": counts | {key: n for key, n in more.items() if n}})
            case _:
                pass
    return said


def _join(said: list[JSONObject], kind: str, text: str) -> None:
    if said and kind in said[-1]:
        said[-1][kind] += text
    else:
        said.append({kind: text})


def events_of(found: Recording) -> list[ModelEvent]:
    """The events of a recording, without a connection; those before its error where it ends with one."""
    make: Any = ResponsesReader if found.facts.get("wire") == "responses" else ChatReader
    reader, decoder, events = make(found.facts["model"], (), set()), SSEDecoder(), list[ModelEvent]()
    request = ModelRequest(system="", messages=())
    with contextlib.suppress(ModelError):
        for event in (*decoder.feed(found.body), *decoder.flush()):
            events += reader.feed(event.data)
        events += ended(found.facts["model"], reader, request)
    return events


def next_messages(model: Adapter, answer: Message) -> list[JSONObject]:
    """The messages of the request after an answer, for a model."""
    request = ModelRequest(system="", messages=to_model_messages([QUESTION, answer, NEXT_QUESTION]))
    body = model.describe(request)
    return list(body.get("messages") or body["input"])
