"""Data that servers of Chat Completions want back with the next request: read off an answer, written into messages.

Three kinds. Fields of a call, as Gemini's signature (`extra_content`). Fields of the message, as the
`reasoning_details` of OpenRouter: lists grow piece by piece and keep their order. And the text of reasoning, under the
name it came by.
"""

import re
from collections.abc import Mapping
from typing import Final

from chat.core.model.language_model import AssistantMessage, ReasoningContent, TextContent, ToolCallContent
from chat.core.model.provider_data import returned
from chat.llm.adapters.chat_wire import WireDelta
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump

_RETURNED: Final = re.compile(r"^extra_content$|^provider_|signature|thought|encrypted|opaque|reasoning")
_GROWING: Final = ("text", "summary", "thinking")
NO_SIGNATURE: Final[JSONObject] = {"google": {"thought_signature": "skip_thought_signature_validator"}}
"""What Google documents for calls that another model made."""

NO_REASONING: Final = " "
"""For calls of others, where each call must have its reasoning: not empty, which some servers take for missing."""


def call_extras(piece: JSONObject, function: JSONObject) -> JSONObject:
    """The fields of a piece of a call that are for the next request."""
    if len(piece) <= 4 and len(function) <= 2 and "extra_content" not in piece:
        return {}
    extras: JSONObject = {key: value for key, value in piece.items() if value and _RETURNED.search(key)}
    inner = {key: value for key, value in function.items() if value and _RETURNED.search(key)}
    return {**extras, "function": inner} if inner else extras


def thought_mark(extra: JSONValue) -> bool:
    """Whether text is marked as reasoning, which is how Gemini sends its thoughts."""
    google = extra.get("google") if isinstance(extra, dict) else None
    return isinstance(google, dict) and google.get("thought") is True


def detailed(details: JSONValue) -> str:
    """The words in a piece of the details, for servers that give them nowhere else."""
    entries = details if isinstance(details, list) else []
    found = (entry.get("text") or entry.get("summary") for entry in entries if isinstance(entry, dict))
    return "".join(text for text in found if isinstance(text, str))


class ReasoningDetails:
    """Fields of the message that have come and were not taken yet."""

    def __init__(self) -> None:
        self._fields: JSONObject = {}
        self.has_lists = False

    def __bool__(self) -> bool:
        return bool(self._fields)

    def keep(self, delta: WireDelta) -> None:
        """Take what a piece of the answer has of them."""
        self.add("reasoning_details", delta.reasoning_details)
        self.add("thinking_blocks", delta.thinking_blocks)
        self.put("reasoning_opaque", delta.reasoning_opaque)
        if not thought_mark(delta.extra_content):
            self.put("extra_content", delta.extra_content)

    def add(self, name: str, pieces: JSONValue) -> None:
        """Add to a list; a piece that continues the last entry is joined with it."""
        for piece in pieces if isinstance(pieces, list) else []:
            if isinstance(piece, dict):
                self.has_lists = True
                _join(self._fields.setdefault(name, []), piece)

    def put(self, name: str, value: JSONValue) -> None:
        """Add a field that comes whole."""
        if value:
            known = self._fields.get(name)
            self._fields[name] = {**known, **value} if isinstance(known, dict) and isinstance(value, dict) else value

    def take(self) -> JSONObject:
        """The fields, each given once."""
        fields, self._fields, self.has_lists = self._fields, {}, False
        return fields


def _join(entries: list[JSONObject], piece: JSONObject) -> None:
    """Add a piece of a list: to the entry of its type and index, without an index to the last one, or as a new one."""
    index = piece.get("index")
    beside = entries[-1:] if index is None else [entry for entry in entries if entry.get("index") == index]
    known = next((entry for entry in beside if entry.get("type") == piece.get("type")), None)
    if known is None or _differ(known, piece, "id") or known.get("data") or (index is None and known.get("signature")):
        entries.append(dict(piece))
        return
    for key, value in piece.items():
        grown = known.get(key)
        grows = key in _GROWING and isinstance(grown, str) and isinstance(value, str)
        known[key] = grown + value if grows else grown if value is None else value


def _differ(one: Mapping[str, object], other: Mapping[str, object], key: str) -> bool:
    return bool(one.get(key)) and bool(other.get(key)) and one[key] != other[key]


def assistant_message(
    message: AssistantMessage, model: str, *, ids: Mapping[str, str], wants: frozenset[str]
) -> JSONObject:
    """An answer of the history as a message for this model. `wants`: see `chat.llm.adapters.demands`."""
    text, reasoning = "", dict[str, str]()
    calls, fields = list[JSONObject](), JSONObject()
    for item in message.content:
        own = returned(item.provider_metadata, model) or {}
        _merge(fields, own.get("message") or {})
        match item:
            case TextContent():
                text += item.text
            case ReasoningContent():
                if name := own.get("text_in"):
                    reasoning[name] = reasoning.get(name, "") + item.text
            case ToolCallContent():
                calls.append(_call(item, own.get("call") or {}, ids))
    made: JSONObject = {"role": "assistant", "content": text}
    if calls:
        # Reasoning in text goes back with calls only: elsewhere servers pass it over, or refuse it.
        made |= {"content": text or None, **reasoning, "tool_calls": calls}
        if "reasoning" in wants and not (reasoning or fields):
            made["reasoning_content"] = NO_REASONING
        if "signature" in wants and not any("extra_content" in call for call in calls):
            calls[0]["extra_content"] = NO_SIGNATURE
    if "no reasoning" in wants:
        return {key: value for key, value in made.items() if not key.startswith("reasoning")}
    return made | fields


def wants_reasoning(messages: "tuple[object, ...]", model: str) -> bool:
    """Whether this model gave reasoning in `reasoning_content`: then all calls have to have some."""
    return any(
        (returned(item.provider_metadata, model) or {}).get("text_in") == "reasoning_content"
        for message in messages
        if isinstance(message, AssistantMessage)
        for item in message.content
        if isinstance(item, ReasoningContent)
    )


def _merge(fields: JSONObject, added: JSONObject) -> None:
    for key, value in added.items():
        known = fields.get(key)
        fields[key] = [*known, *value] if isinstance(known, list) and isinstance(value, list) else value


def _call(item: ToolCallContent, extras: JSONObject, ids: Mapping[str, str]) -> JSONObject:
    function = {"name": item.tool_name, "arguments": dump(item.input), **extras.get("function", {})}
    rest = {key: value for key, value in extras.items() if key != "function"}
    return {"id": ids.get(item.call_id, item.call_id), "type": "function", "function": function, **rest}
