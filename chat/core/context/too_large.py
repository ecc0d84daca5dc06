"""The parts of a request by their size, and the sentence that names the one that is too large. Pure.

Units: characters; tokens in sentences are estimates.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, assert_never

from chat.core.model.language_model import ModelMessage, ModelRequest, TextContent, ToolMessage, UserMessage
from chat.core.model.overflow import estimate_request
from sessions_app.core.compaction.tokens import CHARS_PER_TOKEN
from thinkproject.kernel.jsonvalue import JSONValue, dump
from thinkproject.kernel.phrases import Phrase

ATTACHED: Final = re.compile(r'\[The user attached "([^"\n]{1,200})" \([^)\n]*\):\]\n')
"""The line before the text of an attached file."""

WIDEN: Final = " (Ollama: OLLAMA_CONTEXT_LENGTH, or num_ctx in the model's file.)"
"""How a server that cuts silently is given a larger context."""

LEAST_CHARS: Final = 2_000
"""So much is left at least of a message or a result that is cut."""

_GIANT_CHARS: Final = 8_000
_MOSTLY: Final = 0.5


class PartKind(StrEnum):
    """The kind of a part of a request."""

    SYSTEM = "system"
    TOOLS = "tools"
    MESSAGE = "message"
    FILE = "file"
    RESULTS = "results"
    EARLIER = "earlier"  # all else that was said


@dataclass(frozen=True, slots=True)
class RequestPart:
    """A part of a request. `name`: of the file, or of the tool."""

    kind: PartKind
    chars: int
    name: str = ""


def parts_of(request: ModelRequest) -> list[RequestPart]:
    """The parts of a request, the largest first: results by tool, files and messages of the user one by one."""
    tools = sum(len(tool.name) + len(tool.description) + len(dump(tool.input_schema)) for tool in request.tools)
    parts = [RequestPart(PartKind.SYSTEM, len(request.system)), RequestPart(PartKind.TOOLS, tools)]
    results: dict[str, int] = {}
    earlier = 0
    for message in request.messages:
        if isinstance(message, ToolMessage):
            results[message.tool_name] = results.get(message.tool_name, 0) + _size(message.output)
        elif isinstance(message, UserMessage):
            parts.extend(_of_user(message))
        else:
            earlier += _of_assistant(message)
    parts += [RequestPart(PartKind.RESULTS, chars, name) for name, chars in results.items()]
    parts.append(RequestPart(PartKind.EARLIER, earlier))
    return sorted(parts, key=lambda part: -part.chars)


def _of_user(message: UserMessage) -> Iterator[RequestPart]:
    for item in message.content:
        if isinstance(item, TextContent):
            match = ATTACHED.match(item.text)
            kind = PartKind.FILE if match else PartKind.MESSAGE
            yield RequestPart(kind, len(item.text), match[1] if match else "")


def _of_assistant(message: ModelMessage) -> int:
    assert not isinstance(message, ToolMessage | UserMessage)
    texts = (item.text if hasattr(item, "text") else dump(getattr(item, "input", None)) for item in message.content)
    return sum(map(len, texts))


def _size(value: JSONValue) -> int:
    return len(value if isinstance(value, str) else dump(value))


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """The sizes of a request, by whether they can be cut.

    Units: characters. `context_chars`: of the model's window, 0 if unknown. `fixed`: the question and the instructions,
    which stay whole; `earlier`: messages, files and results before the question, one by one; `outputs`: results of the
    answer so far.
    """

    context_chars: int
    fixed: int
    earlier: tuple[int, ...]
    outputs: tuple[int, ...]

    @property
    def total(self) -> int:
        """All of it."""
        return self.fixed + sum(self.earlier) + sum(self.outputs)

    @property
    def max_chars(self) -> int:
        """The most that is left of a single thing where something is too large."""
        return max(LEAST_CHARS, self.context_chars // 8 if self.context_chars else self.total // 40)

    @property
    def has_giants(self) -> bool:
        """Whether single things take so much that cutting them makes room, without a summary of all."""
        giants = (*(size for size in self.earlier if size * 4 >= max(self.total, _GIANT_CHARS * 4)), *self.outputs)
        return sum(max(0, size - self.max_chars) for size in giants) * 4 >= self.total

    def is_hopeless(self, *, was_refused: bool) -> bool:
        """Whether what stays whole is too large by itself: by count, or as most of what was refused."""
        is_most = was_refused and self.fixed > LEAST_CHARS and self.fixed * 10 >= self.total * 7
        return is_most or 0 < self.context_chars < self.fixed


def too_large(request: ModelRequest, model_name: str, context_tokens: int = 0, *, is_cut: bool = False) -> Phrase:
    """Say what of a request is too large for a model, and what to do. `context_tokens`: its limit, 0 if unknown.

    `is_cut`: its server would cut the request without a word, and can be set up with a larger context.
    """
    parts = parts_of(request)
    total = sum(part.chars for part in parts)
    largest = parts[0]
    is_together = largest.chars < total * _MOSTLY and largest.kind is not PartKind.EARLIER
    tokens = estimate_request(request) if is_together else max(1, largest.chars // CHARS_PER_TOKEN)
    values = {
        "model": model_name,
        "tokens": f"{tokens:,}",
        "limit": f" of {context_tokens:,}" if context_tokens else "",
        "name": largest.name,
        "how": WIDEN if is_cut else "",
    }
    return _together(values) if is_together else _sentence(largest.kind, values)


def _together(values: dict[str, str]) -> Phrase:
    return Phrase(
        "Messages, results and instructions together are too large for {model}: about {tokens} tokens{limit}. Begin a "
        "new conversation, or choose a model with a larger context.{how}",
        **values,
    )


def _sentence(kind: PartKind, values: dict[str, str]) -> Phrase:
    match kind:
        case PartKind.SYSTEM:
            return Phrase(
                "The system prompt of this agent is too large for {model}: about {tokens} tokens{limit}. Choose a "
                "model with a larger context, or have the agent's instructions shortened.{how}",
                **values,
            )
        case PartKind.TOOLS:
            return Phrase(
                "The tools of this agent are too large for {model}: about {tokens} tokens{limit}. Switch some of them "
                "off, or choose a model with a larger context.{how}",
                **values,
            )
        case PartKind.MESSAGE:
            return Phrase(
                "The message is too large for {model}: about {tokens} tokens{limit}. Send it in parts, shorten it, or "
                "choose a model with a larger context.{how}",
                **values,
            )
        case PartKind.FILE:
            return Phrase(
                "The file {name} is too large for {model}: about {tokens} tokens{limit}. Attach a shorter one, or "
                "choose a model with a larger context.{how}",
                **values,
            )
        case PartKind.RESULTS:
            return Phrase(
                "The results of the tool {name} are too large for {model}: about {tokens} tokens{limit}. Ask for less "
                "at once, or choose a model with a larger context.{how}",
                **values,
            )
        case PartKind.EARLIER:
            return Phrase(
                "The conversation is too large for {model}: about {tokens} tokens{limit}. Begin a new one, or choose a "
                "model with a larger context.{how}",
                **values,
            )
        case _:
            assert_never(kind)
