"""The write policy of a session's context blocks: the same for code, people, models and imports. Pure.

A block is declared by the agent's class, or was added while its agent ran. Its kind says what can be written to it.
Every way in asks this policy; what a person imports has to pass `imported_text` and `imported_entry` as well.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from sessions_app.core.compaction.tokens import TokenCounter, estimate_text
from sessions_app.core.context.context_blocks import (
    Declaration,
    Entry,
    StoredSearch,
    StoredSkills,
    StoredText,
    check_content,
    check_key,
    check_text,
)
from sessions_app.errors import BlockNotFound, BlockNotWritable
from thinkproject.kernel.phrases import Phrase


@dataclass(frozen=True, slots=True)
class BlockPolicy:
    """The rules for the blocks of one context. `blocks`: by label, in the order of the prompt."""

    blocks: Mapping[str, Declaration]
    counter: TokenCounter = estimate_text

    def find(self, label: str) -> Declaration:
        """A block. Errors: `BlockNotFound`."""
        if label not in self.blocks:
            known = ", ".join(repr(known) for known in self.blocks) or "none"
            raise BlockNotFound(
                Phrase("There is no context block {label!r}. Blocks: {known}.", label=label, known=known)
            )
        return self.blocks[label]

    def text(self, label: str) -> Declaration:
        """A block whose text may be written. Errors: `BlockNotFound`, `BlockNotWritable`."""
        declaration = self._writable(label)
        if declaration.kind.is_keyed:
            raise BlockNotWritable(Phrase("Block {label!r} holds entries under keys, not one text.", label=label))
        return declaration

    def entries(self, label: str) -> Declaration:
        """A block that takes entries. Errors: `BlockNotFound`, `BlockNotWritable`."""
        declaration = self._writable(label)
        if not declaration.kind.is_keyed:
            raise BlockNotWritable(Phrase("Block {label!r} holds one text, not entries under keys.", label=label))
        return declaration

    def imported_text(self, label: str, content: object) -> Declaration:
        """A block that an import may set. Errors: those of `text`; `BlockTooLarge`, `ContextInvalid`."""
        declaration = self.text(label)
        if not isinstance(declaration.provider, StoredText) or declaration.is_runtime:
            raise BlockNotWritable(Phrase("Block {label!r} is not stored with the session.", label=label))
        self._check_imported(declaration, content)
        return declaration

    def imported_entry(self, label: str, entry: Entry) -> Declaration:
        """A block to which imports may add entries. Errors: those of `entries`; `BlockTooLarge`, `ContextInvalid`."""
        declaration = self.entries(label)
        if not isinstance(declaration.provider, StoredSkills | StoredSearch):
            raise BlockNotWritable(
                Phrase("The entries of block {label!r} are not stored with the session.", label=label)
            )
        check_key(entry.key)
        check_text("A title", entry.title)
        check_text("A description", entry.description)
        self._check_imported(declaration, entry.content)
        return declaration

    def _check_imported(self, declaration: Declaration, content: object) -> None:
        if declaration.of != "session":
            raise BlockNotWritable(
                Phrase("Block {label!r} belongs to its user, not to one conversation.", label=declaration.label)
            )
        text = check_text(f"The content of {declaration.label!r}", content)
        check_content(declaration.label, text, declaration.max_tokens, self.counter)

    def _writable(self, label: str) -> Declaration:
        declaration = self.find(label)
        if not declaration.kind.writable:
            raise BlockNotWritable(Phrase("Block {label!r} is read-only.", label=label))
        return declaration
