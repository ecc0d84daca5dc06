"""Data that a provider sends beside the words and wants back with the next request: signatures, sealed reasoning.

It is stored with the part that it came with, in the part's provider metadata, under one key and labelled with the
model that sent it. Two functions decide what goes back: `returned`, which gives it to that model only, and `wire_ids`.
Nothing here is for people: it is no text, so that titles, searches and summaries never read it.
"""

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from chat.core.model.language_model import AssistantMessage, ModelMessage, ToolCallContent
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

KEY: Final = "thinkProvider"
"""The key in a part's provider metadata."""

_ACCEPTED_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,40}")  # more is refused by Chat Completions of OpenAI
_STRICT_ID: Final = re.compile(r"[A-Za-z0-9]{9}")
_LETTERS: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderData:
    """Data of one part. `model`: `provider/model` that sent it. `fields`: as its adapter reads them again."""

    model: str
    fields: JSONObject = field(default_factory=dict)

    def metadata(self) -> JSONObject:
        """The data as a part's provider metadata."""
        return {KEY: {"model": self.model, **({"fields": self.fields} if self.fields else {})}}


def returned(metadata: JSONValue, model: str) -> JSONObject | None:
    """The fields that a part has for this model; `None` where nothing of the part's came from it."""
    data = metadata.get(KEY) if isinstance(metadata, dict) else None
    if not isinstance(data, dict) or data.get("model") != model:
        return None
    fields = data.get("fields")
    return fields if isinstance(fields, dict) else {}


def is_odd(call_id: str) -> bool:
    """Whether some providers refuse an id: then its call has to say whose it is."""
    return _ACCEPTED_ID.fullmatch(call_id) is None


def wire_ids(messages: Iterable[ModelMessage], model: str, *, is_strict: bool) -> dict[str, str]:
    """The ids of calls that are sent to a model as others, by the stored ones: the same in each request.

    Its own ids go back as they came, and so does what every provider takes. Nine letters and digits are taken by all,
    and with `is_strict` everything else becomes that.
    """
    calls = (
        item
        for message in messages
        if isinstance(message, AssistantMessage)
        for item in message.content
        if isinstance(item, ToolCallContent)
    )
    return {call.call_id: _nine_letters(call.call_id) for call in calls if _is_mapped(call, model, is_strict)}


def _is_mapped(call: ToolCallContent, model: str, is_strict: bool) -> bool:
    if is_strict:
        return _STRICT_ID.fullmatch(call.call_id) is None
    return is_odd(call.call_id) and returned(call.provider_metadata, model) is None


def _nine_letters(call_id: str) -> str:
    number = int.from_bytes(hashlib.blake2b(call_id.encode(errors="replace"), digest_size=8).digest())
    letters = []
    for _ in range(9):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(letters)
