"""Results of tools for which a plain value is not enough: a value with media, and words for people."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class Media:
    """A picture, a PDF or another file that a tool returns. The type of `data` is detected, never believed."""

    data: bytes = field(repr=False)
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolOutput:
    """The result of a tool, or what one that yields has so far.

    `value`: what the model reads, as a plain return value would be. `title` and `metadata`: for people, shown on the
    tool's card while it runs and afterwards. `media`: stored as attachments of the conversation, shown on the page, and
    sent to models that can see them.
    """

    value: Any = None
    title: str = ""
    metadata: JSONObject = field(default_factory=dict)
    media: Sequence[Media] = ()
