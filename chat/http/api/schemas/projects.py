"""Shapes of projects, as the API sends and takes them."""

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input, Text
from chat.http.api.schemas.workspace import WorkspaceEntryOut
from chat.models import ProjectColour
from chat.people.projects import MAX_NAME

ProjectName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=MAX_NAME, pattern=r"^[^\x00-\x1f]*$")
]
Instructions = Annotated[str, StringConstraints(strip_whitespace=True, max_length=40_000, pattern=r"^[^\x00]*$")]


class ProjectOut(Schema):
    """A group of your conversations. `agent`: of those that are begun in it, empty for the usual one.

    `instructions`: read by the models of all of them; at most `max_tokens` of them. `conversation_count`: those that
    are not archived or deleted.
    """

    id: str
    name: str
    colour: ProjectColour
    instructions: str
    agent: str
    conversation_count: int
    max_tokens: int
    created_at: datetime
    updated_at: datetime


class ProjectIn(Input):
    """A new project."""

    name: ProjectName
    colour: ProjectColour = ProjectColour.GREY
    instructions: Instructions = ""
    agent: Text = ""


class ProjectPatch(Input):
    """Changes of a project; what is left out stays."""

    name: ProjectName | None = None
    colour: ProjectColour | None = None
    instructions: Instructions | None = None
    agent: Text | None = None


class ProjectFilesOut(Schema):
    """The files of a project by path, at most 1,000 of them. `file_limit`: bytes of the largest file."""

    items: list[WorkspaceEntryOut]
    has_more: bool
    file_limit: int
