"""API schemas of a person's preferences."""

from typing import Annotated, Literal

from ninja import Schema
from pydantic import Field, StringConstraints

from chat.http.api.schemas.common import Input

Words = Annotated[str, StringConstraints(max_length=80, pattern=r"^[^\x00]*$")]
Code = Annotated[str, StringConstraints(max_length=64, pattern=r"^[^\x00]*$")]
Language = Annotated[str, StringConstraints(max_length=16, pattern=r"^[^\x00]*$")]
LongText = Annotated[str, StringConstraints(max_length=20_000, pattern=r"^[^\x00]*$")]
AgentNames = Annotated[list[Annotated[str, StringConstraints(max_length=128)]], Field(max_length=200)]


class LanguageOut(Schema):
    """A language that the product speaks, by its own name."""

    code: str
    name: str


class PreferencesOut(Schema):
    """Your choices; an empty field is none.

    `read_by`: the agents that read the two texts, null: all. `languages`: what can be chosen. `max_tokens`: of each of
    the two texts.
    """

    name: str
    language: str
    zone: str
    theme: str
    text_size: str
    about_me: str
    about_me_tokens: int
    how_to_answer: str
    how_to_answer_tokens: int
    max_tokens: int
    read_by: list[str] | None
    languages: list[LanguageOut]


class PreferencesIn(Input):
    """Fields to change; what is left out stays. An empty text takes a choice back."""

    name: Words = ""
    language: Language = ""
    zone: Code = ""
    theme: Literal["", "light", "dark"] = ""
    text_size: Literal["", "small", "large", "larger"] = ""
    about_me: LongText = ""
    how_to_answer: LongText = ""
    read_by: AgentNames | None = None
