"""API schemas of contexts and memory."""

from datetime import datetime
from typing import Annotated

from ninja import Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input

Content = Annotated[str, StringConstraints(max_length=500_000)]
Short = Annotated[str, StringConstraints(max_length=500)]


class BlockOut(Schema):
    """A context block. `of`: whose its content is: session, user (then in all of your conversations), or agent."""

    label: str
    description: str
    content: str
    tokens: int
    max_tokens: int | None
    writable: bool
    is_skill: bool
    is_searchable: bool
    of: str
    is_runtime: bool


class ContextOut(Schema):
    """The context of a session. `loaded`: documents, as `label:key`.

    `system_prompt` is what the next turn gets. `is_outdated`: it is a kept one, and the blocks hold something else now.
    """

    blocks: list[BlockOut]
    loaded: list[str]
    system_prompt: str
    prompt_tokens: int
    is_kept: bool
    is_outdated: bool


class BlockIn(Input):
    """The new text of a block."""

    content: Content


class EntryIn(Input):
    """An entry. A title or a description that is left out stays as it is."""

    content: Content
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    description: Short = ""


class EntryOut(Schema):
    """An entry of a block, under its key."""

    key: str
    title: str
    description: str
    content: str


class EntryPageOut(Schema):
    """Entries by their keys; `next_after` goes on."""

    items: list[EntryOut]
    next_after: str | None


class MemoryOut(Schema):
    """Your memory under one label, shared by all conversations: a text, entries, or both."""

    label: str
    description: str
    content: str
    tokens: int
    max_tokens: int | None
    entry_count: int


class ChangeOut(Schema):
    """A change of context. `via`: model, code, api, admin; `actor_id`: the user, for the last two."""

    id: int
    subject: str
    action: str
    before: str
    after: str
    via: str
    actor_id: int | None
    created_at: datetime


class ChangePageOut(Schema):
    """Changes, newest first; `next_before` goes on."""

    items: list[ChangeOut]
    next_before: int | None
