"""The current parts of a context, with the contents stored by the product."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from sessions_app.context.store import SessionRows
from sessions_app.core.compaction.tokens import TokenCounter
from sessions_app.core.context.context_blocks import (
    Block,
    Declaration,
    SearchableHistory,
    StoredSearch,
    StoredSkills,
    StoredText,
    key_list,
    make_block,
)

OURS: Final = (StoredText, StoredSkills, StoredSearch)


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextState:
    """The blocks, and the session's stored data about them; without contents of providers."""

    blocks: dict[str, Declaration]  # in the order of the prompt
    rows: SessionRows

    def owner(self, declaration: Declaration, session_id: str) -> ContextOwner:
        """The owner of a stored block's rows. Without a user, a user's block belongs to the session."""
        owner_id = self.rows.owner_id
        if declaration.of == "user" and owner_id is not None:
            return ContextOwner(owner_id=owner_id)
        return ContextOwner(session_id=session_id)

    def made(self, declaration: Declaration, content: str | None, counter: TokenCounter) -> Block:
        """A block with its content; `of` says whose it is here."""
        of = "session" if declaration.of == "user" and self.rows.owner_id is None else declaration.of
        return make_block(declaration, content, counter, of=of)


def owner_labels(blocks: Mapping[str, Declaration]) -> list[str]:
    """The labels of texts that are the owner's, in all of their conversations."""
    return [label for label, block in blocks.items() if block.of == "user" and isinstance(block.provider, StoredText)]


def stored_contents(state: ContextState, wanted: list[Declaration], session_id: str) -> dict[str, str | None]:
    """Contents of the blocks that we keep; one query for each kind of them, none for texts, which the state has."""
    by_kind: dict[type, dict[str, ContextOwner]] = {kind: {} for kind in OURS}
    contents: dict[str, str | None] = {}
    for block in wanted:
        if isinstance(block.provider, OURS):
            by_kind[type(block.provider)][block.label] = state.owner(block, session_id)
        elif isinstance(block.provider, SearchableHistory):
            contents[block.label] = None
    return (
        contents | _texts(state, by_kind[StoredText]) | _skills(by_kind[StoredSkills]) | _counts(by_kind[StoredSearch])
    )


def _texts(state: ContextState, holders: dict[str, ContextOwner]) -> dict[str, str | None]:
    rows = state.rows
    found = {
        label: (rows.texts if owner.owner_id is None else rows.owner_texts).get(label)
        for label, owner in holders.items()
    }
    return {label: None if text is None else text.content for label, text in found.items()}


def _skills(holders: dict[str, ContextOwner]) -> dict[str, str | None]:
    return {label: key_list(entries) for label, entries in store.entry_heads(holders).items()}


def _counts(holders: dict[str, ContextOwner]) -> dict[str, str | None]:
    counts = store.entry_counts(holders)
    return {label: f"{counts[label]} entries indexed." if label in counts else None for label in holders}
