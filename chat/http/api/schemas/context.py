"""API schemas of contexts and memory."""

from typing import Annotated

from ninja import Schema
from pydantic import StringConstraints

from chat.http.api.schemas.common import Input
from chat.http.api.schemas.from_values import shows
from chat.instance.context import ContextView
from sessions_app.context.history import Change
from sessions_app.core.context.context_blocks import Block, Entry

Content = Annotated[str, StringConstraints(max_length=500_000)]
Short = Annotated[str, StringConstraints(max_length=500)]


@shows(Block)
class BlockOut(Schema):
    """A context block. `of`: whose its content is: session, user (then in all of your conversations), or agent."""


@shows(ContextView)
class ContextOut(Schema):
    """The context of a session. `loaded`: documents, as `label:key`.

    `system_prompt` is what the next turn gets. `is_outdated`: it is a kept one, and the blocks hold something else now.
    """

    blocks: list[BlockOut]


class BlockIn(Input):
    """The new text of a block."""

    content: Content


class EntryIn(Input):
    """An entry. A title or a description that is left out stays as it is."""

    content: Content
    title: Annotated[str, StringConstraints(max_length=200)] = ""
    description: Short = ""


@shows(Entry)
class EntryOut(Schema):
    """An entry of a block, under its key."""


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


@shows(Change)
class ChangeOut(Schema):
    """A change of context. `via`: model, code, api, admin; `actor_id`: the user, for the last two."""


class ChangePageOut(Schema):
    """Changes, newest first; `next_before` goes on."""

    items: list[ChangeOut]
    next_before: int | None
