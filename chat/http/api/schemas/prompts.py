"""Shapes of saved prompts and of feedback, as the API sends and takes them."""

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import StringConstraints

from chat.people.prompts import MAX_PROMPT_CHARS

PromptName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=60, pattern=r"^[^\x00-\x1f]*$")
]
PromptText = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_PROMPT_CHARS, pattern=r"^[^\x00]*$")
]


class PromptOut(Schema):
    """A saved prompt. `{names}` in its text are asked for when it is used."""

    id: str
    name: str
    text: str
    updated_at: datetime


class PromptIn(Schema):
    """A prompt to save."""

    name: PromptName
    text: PromptText


class PromptPatch(Schema):
    """Changes of a prompt; what is left out stays."""

    name: PromptName | None = None
    text: PromptText | None = None


class FeedbackIn(Schema):
    """A person's word about an answer."""

    is_good: bool
    reason: Annotated[str, StringConstraints(strip_whitespace=True, max_length=1000, pattern=r"^[^\x00]*$")] = ""


class FeedbackOut(FeedbackIn):
    """The same, with the message that it is about."""

    message_id: str
