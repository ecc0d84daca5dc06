"""Adapter for the Chat Completions wire, which nearly every model server speaks.

Servers differ in many small ways; the tolerance is in `chat_reader`, and that for their refusals in `adapter`.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import ClassVar, Final, assert_never

from chat.core.model.language_model import (
    AssistantMessage,
    FileContent,
    ModelMessage,
    ModelRequest,
    ModelSettings,
    Prefilled,
    TextContent,
    ToolMessage,
    ToolSpec,
    UserMessage,
)
from chat.core.model.provider_data import wire_ids
from chat.llm.abilities import sends_tools
from chat.llm.adapters.adapter import HttpModel, known_call_ids
from chat.llm.adapters.chat_reader import ChatReader
from chat.llm.adapters.chat_returns import assistant_message, wants_reasoning
from chat.llm.adapters.content import (
    NO_OUTPUT,
    data_url,
    file_note,
    files_label,
    is_image,
    is_pdf,
    output_text,
    plain_text,
)
from chat.llm.adapters.demands import demands_of
from chat.llm.adapters.prefill import is_prefilled, prefilled, way_of
from chat.llm.model_memory import Learned
from thinkproject.kernel.jsonvalue import JSONObject

NO_ANSWER: Final = "(I gave no answer to this.)"
"""The model's words after results that a user's message follows, for servers that refuse such an order."""


class ChatCompletionsModel(HttpModel):
    """A model behind `POST {base_url}/chat/completions`."""

    path: ClassVar = "/chat/completions"

    def _reader(self, request: ModelRequest) -> ChatReader:
        # An answer that goes on is not looked through: its beginning is text already.
        speaks = not request.continues and request.settings.response_schema is None and request.tool_choice != "none"
        is_offered = self._endpoint.calls_in_text and sends_tools(self._endpoint, self._memory.known)
        tools = {tool.name: tool.input_schema for tool in request.tools} if speaks and is_offered else None
        return ChatReader(self.name, self._endpoint.secrets, known_call_ids(request.messages), tools)

    def _body(self, request: ModelRequest, known: Learned) -> JSONObject:
        settings = request.settings
        body: JSONObject = {
            "model": self._model,
            "messages": chat_messages(
                request,
                self.name,
                accepts_images=self._sends("image", known),
                accepts_documents=self._sends("document", known),
                demands=demands_of(self._endpoint, known),
            ),
            "stream": True,
            "stream_options": {"include_usage": True},
        }
        if request.tools and sends_tools(self._endpoint, known):
            body["tools"] = [_tool(tool) for tool in request.tools]
            if request.tool_choice != "auto":
                body["tool_choice"] = chat_tool_choice(request.tool_choice)
            if settings.parallel_tool_calls is not None:
                body["parallel_tool_calls"] = settings.parallel_tool_calls
        body.update(chat_settings(settings, max_tokens_field=self._endpoint.max_tokens_field))
        body.update(self._own_options(settings))
        return prefilled(body, request, way_of(self._endpoint, self._model, known), known)

    def _begun(self, body: JSONObject, known: Learned) -> list[Prefilled]:
        way = way_of(self._endpoint, self._model, known) if is_prefilled(body) else None
        return [] if way is None else [Prefilled(echoes=way.echoes)]


def chat_settings(settings: ModelSettings, *, max_tokens_field: str = "max_tokens") -> JSONObject:
    """Sampling, limits and the answer's schema on the Chat Completions wire."""
    optional: JSONObject = {
        max_tokens_field: settings.max_output_tokens,
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "top_k": settings.top_k,
        "presence_penalty": settings.presence_penalty,
        "frequency_penalty": settings.frequency_penalty,
        "stop": list(settings.stop_sequences) or None,
        "seed": settings.seed,
        "reasoning_effort": settings.reasoning_effort,
    }
    if settings.response_schema is not None:
        schema = {"name": "answer", "schema": settings.response_schema}
        optional["response_format"] = {"type": "json_schema", "json_schema": schema}
    return {key: value for key, value in optional.items() if value is not None}


def chat_messages(
    request: ModelRequest,
    model: str,
    *,
    accepts_images: bool,
    accepts_documents: bool,
    demands: frozenset[str] = frozenset(),
) -> list[JSONObject]:
    """The request's messages on the Chat Completions wire for `provider/model`, the system prompt first."""
    ids = wire_ids(request.messages, model, is_strict="ids" in demands)
    if wants_reasoning(request.messages, model):
        demands |= {"reasoning"}
    messages: list[JSONObject] = [{"role": "system", "content": request.system}] if request.system else []
    forms, form = request.forms, f"chat {model} {sorted(demands)}"
    for message in _with_files_of_tools(request.messages):
        match message:
            case AssistantMessage() if forms.has(message):  # of text alone
                make = partial(assistant_message, model=model, ids=ids, wants=demands)
                _add_assistant(messages, forms.made(message, form, make))
            case UserMessage() if forms.has(message) and not _needs_answer(messages, demands):
                _add_user(messages, forms.made(message, "chat", _of_texts))
            case UserMessage():
                parts = _user_parts(message, accepts_images=accepts_images, accepts_documents=accepts_documents)
                is_text = all(part["type"] == "text" for part in parts)  # which servers without media take as a string
                if _needs_answer(messages, demands):
                    messages.append({"role": "assistant", "content": NO_ANSWER})
                _add_user(messages, {"role": "user", "content": plain_text(message.content) if is_text else parts})
            case AssistantMessage():
                _add_assistant(messages, assistant_message(message, model, ids=ids, wants=demands))
            case ToolMessage():
                text = output_text(message.output, is_error=message.is_error)
                content = text if text.strip() else NO_OUTPUT
                call_id = ids.get(message.call_id, message.call_id)
                messages.append({"role": "tool", "tool_call_id": call_id, "content": content})
            case _:
                assert_never(message)
    return messages


def _with_files_of_tools(messages: Iterable[ModelMessage]) -> Iterator[ModelMessage]:
    """The messages, with a user's after the results of a step that has the files of those: results are text here."""
    files: list[TextContent | FileContent] = []
    for message in messages:
        if files and not isinstance(message, ToolMessage):
            yield UserMessage(content=tuple(files))
            files = []
        yield message
        if isinstance(message, ToolMessage) and message.files:
            files += [TextContent(text=files_label(message)), *message.files]
    if files:
        yield UserMessage(content=tuple(files))


def _needs_answer(messages: list[JSONObject], demands: frozenset[str]) -> bool:
    """Whether a word of the model's has to stand before what the user says next."""
    return "answer" in demands and bool(messages) and messages[-1]["role"] == "tool"


def _add_assistant(messages: list[JSONObject], message: JSONObject) -> None:
    """Add an answer. One of reasoning alone is empty here, which servers refuse."""
    if message["content"] or "tool_calls" in message:
        messages.append(message)


def _of_texts(message: UserMessage) -> JSONObject:
    return {"role": "user", "content": plain_text(message.content)}


def _add_user(messages: list[JSONObject], message: JSONObject) -> None:
    """Add a user's message, to a preceding one of the user if there is one: many templates want roles to alternate."""
    last, content = messages[-1] if messages else None, message["content"]
    if last is None or last["role"] != "user":
        messages.append(message)
    elif isinstance(last["content"], str) and isinstance(content, str):
        messages[-1] = {**last, "content": f"{last['content']}\n\n{content}"}  # forms are not changed
    else:
        messages[-1] = {**last, "content": [*_parts(last["content"]), *_parts(content)]}


def _parts(content: str | list[JSONObject]) -> list[JSONObject]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _user_parts(message: UserMessage, *, accepts_images: bool, accepts_documents: bool) -> list[JSONObject]:
    parts: list[JSONObject] = []
    for item in message.content:
        if isinstance(item, TextContent):
            parts.append({"type": "text", "text": item.text})
        elif accepts_images and is_image(item):
            parts.append({"type": "image_url", "image_url": {"url": data_url(item)}})
        elif accepts_documents and is_pdf(item):
            file = {"filename": item.filename or "file.pdf", "file_data": data_url(item)}
            parts.append({"type": "file", "file": file})
        else:
            parts.append({"type": "text", "text": file_note(item)})
    return parts


def _tool(tool: ToolSpec) -> JSONObject:
    function = {"name": tool.name, "description": tool.description, "parameters": tool.input_schema}
    return {"type": "function", "function": function}


def chat_tool_choice(choice: str) -> str | JSONObject:
    """The choice on the Chat Completions wire."""
    if choice in ("none", "required"):
        return choice
    return {"type": "function", "function": {"name": choice}}
