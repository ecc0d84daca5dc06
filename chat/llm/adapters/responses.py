"""Adapter for the Responses API.

Nothing is stored at the provider (`store` is false): the conversation is ours, and reasoning travels back and forth
encrypted, as the data of reasoning parts (`chat.core.model.provider_data`).
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import ClassVar, Final, assert_never

from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelRequest,
    ReasoningContent,
    TextContent,
    ToolCallContent,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from chat.core.model.provider_data import returned, wire_ids
from chat.llm.abilities import sends_tools
from chat.llm.adapters.adapter import HttpModel, known_call_ids
from chat.llm.adapters.content import NO_OUTPUT, data_url, file_note, is_image, is_pdf, output_text
from chat.llm.adapters.demands import demands_of
from chat.llm.adapters.refusals import Sent
from chat.llm.adapters.responses_reader import ResponsesReader
from chat.llm.model_memory import Learned
from thinkproject.kernel.jsonvalue import JSONObject, dump

_REASONING_MODEL: Final = re.compile(r"^(?:o\d|gpt-[5-9]|gpt-\d{2}|codex|computer-use)(?!.*chat-latest)")


class ResponsesModel(HttpModel):
    """A model behind `POST {base_url}/responses`."""

    path: ClassVar = "/responses"
    unsent: ClassVar[Mapping[str, str]] = {
        "top_k": "top_k",
        "presence_penalty": "presence_penalty",
        "frequency_penalty": "frequency_penalty",
        "stop_sequences": "stop_sequences",
        "seed": "seed",
    }
    tried_media: ClassVar[frozenset[str]] = frozenset({"image", "document"})

    def _reader(self, request: ModelRequest) -> ResponsesReader:
        return ResponsesReader(self.name, self._endpoint.secrets, known_call_ids(request.messages))

    def _warnings(self, request: ModelRequest, sent: Sent) -> tuple[str, ...]:
        """As people know it: reasoning without a chosen effort was asked for by us."""
        effort = request.settings.reasoning_effort
        names = [name for name in sent.left_out if name != "reasoning"]
        names += ["reasoning_effort"] if "reasoning" in sent.left_out and effort is not None else []
        return super()._warnings(request, replace(sent, left_out=tuple(names)))

    def _body(self, request: ModelRequest, known: Learned) -> JSONObject:
        settings = request.settings
        body: JSONObject = {
            "model": self._model,
            "input": responses_input(
                request,
                self.name,
                accepts_images=self._sends("image", known),
                accepts_documents=self._sends("document", known),
                demands=demands_of(self._endpoint, known),
            ),
            "stream": True,
            "store": False,
        }
        if request.system:
            body["instructions"] = request.system
        if request.tools and sends_tools(self._endpoint, known):
            body["tools"] = [_tool(tool) for tool in request.tools]
            if request.tool_choice != "auto":
                body["tool_choice"] = _tool_choice(request.tool_choice)
            if settings.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = settings.parallel_tool_calls
        body.update(self._reasoning(settings.reasoning_effort))
        optional = {
            "max_output_tokens": settings.max_output_tokens,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
        }
        body.update({key: value for key, value in optional.items() if value is not None})
        if settings.response_schema is not None:
            body["text"] = {"format": {"type": "json_schema", "name": "answer", "schema": settings.response_schema}}
        body.update(self._own_options(settings))
        return body

    def _reasoning(self, effort: str | None) -> JSONObject:
        reasons = bool(_REASONING_MODEL.match(self._model)) or effort is not None
        if not reasons:
            return {}
        reasoning = {"summary": "auto"} if effort is None else {"summary": "auto", "effort": effort}
        return {"reasoning": reasoning, "include": ["reasoning.encrypted_content"]}


def responses_input(
    request: ModelRequest,
    model: str,
    *,
    accepts_images: bool,
    accepts_documents: bool,
    demands: frozenset[str] = frozenset(),
) -> list[JSONObject]:
    """The request's messages as input items for `provider/model`, in order."""
    ids = wire_ids(request.messages, model, is_strict="ids" in demands)
    items: list[JSONObject] = []
    for message in request.messages:
        match message:
            case UserMessage():
                content = _content(message.content, accepts_images=accepts_images, accepts_documents=accepts_documents)
                items.append({"role": "user", "content": content})
            case AssistantMessage():
                items.extend(_assistant_items(message, model, ids))
            case ToolMessage():
                output = _output(message, accepts_images=accepts_images, accepts_documents=accepts_documents)
                call_id = ids.get(message.call_id, message.call_id)
                items.append({"type": "function_call_output", "call_id": call_id, "output": output})
            case _:
                assert_never(message)
    return items


def _output(message: ToolMessage, *, accepts_images: bool, accepts_documents: bool) -> str | list[JSONObject]:
    """A result: its text, or a list where the tool returned files too, which only some servers know."""
    text = output_text(message.output, is_error=message.is_error)
    if not message.files:
        return text if text.strip() else NO_OUTPUT
    files = _content(message.files, accepts_images=accepts_images, accepts_documents=accepts_documents)
    return [{"type": "input_text", "text": text}, *files] if text else files


def _content(
    content: Iterable[TextContent | FileContent], *, accepts_images: bool, accepts_documents: bool
) -> list[JSONObject]:
    parts: list[JSONObject] = []
    for item in content:
        if isinstance(item, TextContent):
            parts.append({"type": "input_text", "text": item.text})
        elif accepts_images and is_image(item):
            parts.append({"type": "input_image", "image_url": data_url(item)})
        elif accepts_documents and is_pdf(item):
            name = item.filename or "file.pdf"
            parts.append({"type": "input_file", "filename": name, "file_data": data_url(item)})
        else:
            parts.append({"type": "input_text", "text": file_note(item)})
    return parts


def _assistant_items(message: AssistantMessage, model: str, ids: Mapping[str, str]) -> list[JSONObject]:
    items: list[JSONObject] = []
    for item in message.content:
        own = returned(item.provider_metadata, model) or {}
        match item:
            case TextContent():
                if item.text:
                    phase = {"phase": own["phase"]} if "phase" in own else {}
                    items.append({"role": "assistant", "content": item.text, **phase})
            case ToolCallContent():
                call_id = ids.get(item.call_id, item.call_id)
                call = {"type": "function_call", "call_id": call_id, "name": item.tool_name}
                items.append({**call, "arguments": dump(item.input)})
            case ReasoningContent():
                if sealed := own.get("reasoning"):  # text alone is not taken
                    summary = [{"type": "summary_text", "text": item.text}] if item.text else []
                    items.append({"type": "reasoning", **sealed, "summary": sealed.get("summary") or summary})
            case _:
                assert_never(item)
    return items


def _tool(tool: ToolSpec) -> JSONObject:
    return {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.input_schema,
        "strict": False,
    }


def _tool_choice(choice: str) -> str | JSONObject:
    return choice if choice in ("none", "required") else {"type": "function", "name": choice}
