"""`SessionContext`: the context blocks of one session, read and written by the rules of their kinds.

    context = SessionContext(session_id, ContextSetup().with_context("memory", max_tokens=1000))
    await context.append("memory", "Likes tea.")
    prompt = await context.system_prompt()

Works without an agent. Nothing of a block is held between calls: what another process wrote is seen.
"""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from sessions_app.context import lookup, store
from sessions_app.context.block_providers import Providers
from sessions_app.context.history import CODE, ContextActor, ContextOwner, block_subject, entry_subject, note_change
from sessions_app.context.snapshot import OURS, ContextState, owner_labels, stored_contents
from sessions_app.context.store import Shape
from sessions_app.core.compaction.tokens import TokenCounter, estimate_text
from sessions_app.core.context.block_policy import BlockPolicy
from sessions_app.core.context.context_blocks import (
    Block,
    Declaration,
    Entry,
    Provider,
    SearchableHistory,
    StoredSearch,
    StoredSkills,
    StoredText,
    appended,
    check_content,
    check_key,
    declare,
    entry_key,
    found_text,
    render,
)
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.core.context.loaded_skills import loaded_name
from sessions_app.errors import BlockExists, BlockNotWritable
from sessions_app.messages.services import freeze_prompt
from thinkproject.kernel.aio import db
from thinkproject.kernel.phrases import Phrase

FoundIn: TypeAlias = Callable[[frozenset[str]], object]


async def _nothing() -> str:
    return ""


class SessionContext:
    """The context of one session, declared by `setup`. `base`: the prompt of a setup without blocks.

    Errors of every method: `SessionNotFound`.
    """

    def __init__(
        self,
        session_id: str,
        setup: ContextSetup,
        *,
        counter: TokenCounter = estimate_text,
        base: Callable[[], Awaitable[str]] = _nothing,
    ) -> None:
        self.session_id = session_id
        self.base = base
        self.setup = setup
        self.counter = counter
        self._added: dict[str, Declaration] = {}  # at run time, with a provider of the caller's
        self._providers = Providers()

    # Reading

    async def state(self) -> ContextState:
        """The current blocks: declared and added ones, without removed ones. One query, with the texts of the owner's.

        A hidden session writes nothing to the blocks of its owner, which other sessions read.
        """
        declared = self.setup.blocks | self._added
        stored = await db(store.read_session, self.session_id, owner_labels(declared))
        blocks = {
            label: block
            for label, block in declared.items()
            if label not in stored.texts or not stored.texts[label].is_removed
        }
        for text in stored.texts.values():
            if text.is_runtime and not text.is_removed and text.label not in blocks:
                blocks[text.label] = Declaration(
                    label=text.label,
                    provider=StoredText(),
                    description=text.description,
                    max_tokens=text.max_tokens,
                    is_runtime=True,
                )
        if stored.is_hidden:
            blocks = {
                label: replace(block, is_closed=True) if block.of == "user" else block
                for label, block in blocks.items()
            }
        return ContextState(blocks=blocks, rows=stored)

    async def blocks(self, state: ContextState | None = None) -> list[Block]:
        """Every block with its content, in the order of the prompt. A handful of queries, however many blocks."""
        state = state or await self.state()
        contents = await self._contents(state, list(state.blocks.values()))
        return [state.made(block, contents[block.label], self.counter) for block in state.blocks.values()]

    async def block(self, label: str) -> Block | None:
        """One block with its content, or nothing."""
        state = await self.state()
        declaration = state.blocks.get(label)
        if declaration is None:
            return None
        return state.made(declaration, (await self._contents(state, [declaration]))[label], self.counter)

    async def system_prompt(self, state: ContextState | None = None, *, keeps: bool = True) -> str:
        """The prompt: the kept one, where the setup keeps it, else rendered; without `keeps` nothing is written."""
        state = state or await self.state()
        kept = state.rows.system_prompt
        if self.setup.caches_prompt and not self.setup.refreshes_prompt and kept is not None:
            return kept
        rendered = await self.render(state)
        return await _keep(self, rendered, replace=self.setup.refreshes_prompt) if keeps else rendered

    async def refresh_system_prompt(self) -> str:
        """Ask every provider again, render, and keep that where the setup keeps prompts."""
        return await _keep(self, await self.render(), replace=True)

    async def render(self, state: ContextState | None = None, *, has_counts: bool = True) -> str:
        """The prompt as it would be now, with how full each block is, or without.

        Where the setup declares no block, added ones stand below the base.
        """
        state = state or await self.state()
        rendered = render(await self.blocks(state), has_counts=has_counts)
        if any(not block.is_runtime for block in state.blocks.values()):
            return rendered
        return "\n\n".join(text for text in (await self.base(), rendered) if text)

    # Writing

    async def replace(self, label: str, content: str, *, by: ContextActor = CODE) -> Block:
        """Write a text. Errors: `BlockNotFound`, `BlockNotWritable`, `BlockTooLarge`, `ContextInvalid`."""
        return await self._write(label, lambda _held: content, "set", by)

    async def append(self, label: str, content: str, *, by: ContextActor = CODE) -> Block:
        """Write at the end of a text, on a line of its own. Errors: as `replace`."""
        return await self._write(label, lambda held: appended(held, content), "append", by)

    async def set_entry(
        self,
        label: str,
        content: str,
        *,
        key: str = "",
        title: str = "",
        description: str = "",
        by: ContextActor = CODE,
    ) -> str:
        """Store an entry; returns its key, which comes of the title or the content where none is given.

        Errors: as `replace`; a block without keys is `BlockNotWritable`.
        """
        state = await self.state()
        declaration = BlockPolicy(state.blocks).entries(label)
        entry = Entry(
            key=check_key(key or entry_key(content, title)), content=content, title=title, description=description
        )
        if isinstance(declaration.provider, OURS):
            owner = state.owner(declaration, self.session_id)
            by = by.within(self.session_id)
            await db(partial(store.put_entry, owner, label, entry, shape=self._shape(declaration), by=by))
            return entry.key
        check_content(label, content, declaration.max_tokens, self.counter)
        await self._providers.call(declaration, "set", entry.key, content, description or title)
        await db(_note, self.session_id, entry_subject(label, entry.key), "set", "", content, by)
        return entry.key

    async def add(
        self, label: str, *, description: str = "", max_tokens: int | None = None, provider: Provider = None
    ) -> None:
        """Add a block. A stored text stays with the session; one with a provider lives as long as this object.

        The kept prompt shows it after a refresh. Errors: `BlockExists`, `ContextInvalid`.
        """
        made = declare(label, description=description, max_tokens=max_tokens, provider=provider)
        if label in (await self.state()).blocks:
            raise BlockExists(Phrase("There is a context block {label!r} already.", label=label))
        shape = Shape(description=description, max_tokens=max_tokens)
        if provider is None:
            await db(store.add_block, self.session_id, label, shape)
        else:
            self._added[label] = made

    async def remove(self, label: str) -> bool:
        """Remove a block from this session; false if it is not there. Its content stays stored.

        The kept prompt shows it until a refresh. Documents loaded from it are read no more.
        """
        if label not in (await self.state()).blocks:
            return False
        if self._added.pop(label, None) is None:
            await db(store.remove_block, self.session_id, label)
        return True

    # Entries

    async def load(self, label: str, key: str) -> str | None:
        """Read a document and note that it is loaded; nothing for an unknown key. Errors: `BlockNotFound`."""
        state = await self.state()
        declaration = _block_of(
            state, label, "is_skill", Phrase("Block {label!r} holds no documents to load.", label=label)
        )
        if isinstance(declaration.provider, StoredSkills):
            entry = await db(store.find_entry, state.owner(declaration, self.session_id), label, key)
            document = None if entry is None else entry.content
        else:
            document = await self._providers.call(declaration, "load", key)
        if document is None:
            return None
        await db(store.note_loaded, self.session_id, loaded_name(label, key))
        return str(document)

    async def unload(self, label: str, key: str) -> bool:
        """Unload a document from the context; false if it was not loaded. Stored messages stay."""
        return await db(store.note_unloaded, self.session_id, loaded_name(label, key))

    async def search(self, label: str, query: str, *, limit: int = 10, found_in: FoundIn | None = None) -> str:
        """Search a block and return the results as text. Errors: `BlockNotFound`, `BlockNotWritable`.

        `found_in`: as for `search_sessions`, where the block is the history.
        """
        state = await self.state()
        declaration = _block_of(
            state, label, "is_searchable", Phrase("Block {label!r} cannot be searched.", label=label)
        )
        if isinstance(declaration.provider, StoredSearch):
            owner = state.owner(declaration, self.session_id)
            return found_text(await db(partial(lookup.find_entries, owner, label, query, limit=limit)))
        if isinstance(declaration.provider, SearchableHistory):
            return await self.search_sessions(query, of=declaration.provider, limit=limit, found_in=found_in)
        found = await self._providers.call(declaration, "search", query)
        return found_text(found if isinstance(found, str) or found is None else [_as_entry(each) for each in found])

    async def search_sessions(
        self, query: str, *, of: SearchableHistory, limit: int = 10, found_in: FoundIn | None = None
    ) -> str:
        """Search the messages of the owner's sessions, or of the scope, and return the results as text.

        `found_in`: receives the ids of the sessions that the results are of.
        """
        state = await self.state()
        owner_id = state.rows.owner_id if of.of == "user" else None
        find = partial(lookup.find_messages, query, besides=self.session_id, limit=limit)
        found = await db(partial(find, owner_id=owner_id, scope=state.rows.scope if of.of == "scope" else ""))
        if found_in is not None:
            found_in(found.session_ids)
        return found.text

    # Inside

    async def _contents(self, state: ContextState, wanted: list[Declaration]) -> dict[str, str | None]:
        contents = await db(stored_contents, state, wanted, self.session_id)
        for declaration in wanted:
            if declaration.label not in contents:
                content = await self._providers.call(declaration, "get")
                contents[declaration.label] = None if content is None else str(content)
        return contents

    def _shape(self, declaration: Declaration) -> Shape:
        return Shape(description=declaration.description, max_tokens=declaration.max_tokens, counter=self.counter)

    async def _write(self, label: str, change: Callable[[str], str], action: str, by: ContextActor) -> Block:
        state = await self.state()
        declaration = BlockPolicy(state.blocks).text(label)
        if isinstance(declaration.provider, StoredText):
            shape = self._shape(declaration)
            owner = state.owner(declaration, self.session_id)
            by = by.within(self.session_id)
            written = await db(partial(store.write_text, owner, label, change, action=action, shape=shape, by=by))
            return state.made(declaration, written, self.counter)
        held = (await self._contents(state, [declaration]))[label] or ""
        content = change(held)
        check_content(label, content, declaration.max_tokens, self.counter, held=held)
        await self._providers.call(declaration, "set", content)
        await db(_note, self.session_id, block_subject(label), action, held, content, by)
        return state.made(declaration, content, self.counter)


async def _keep(context: SessionContext, rendered: str, *, replace: bool) -> str:
    """Store a prompt with the session, if its setup asks for it. Returns the effective one."""
    if not context.setup.caches_prompt:
        return rendered
    return await db(partial(freeze_prompt, context.session_id, rendered, replace=replace))


def _note(session_id: str, subject: str, action: str, before: str, after: str, by: ContextActor) -> None:
    """Record a change of the content of a developer's provider."""
    owner = ContextOwner(session_id=session_id)
    note_change(owner, subject, action, before=before, after=after, by=by)
    if by.is_person:
        store.forget_prompt(owner)


def _block_of(state: ContextState, label: str, ability: str, refusal: Phrase) -> Declaration:
    declaration = BlockPolicy(state.blocks).find(label)
    if not getattr(declaration.kind, ability):
        raise BlockNotWritable(refusal)
    return declaration


def _as_entry(found: Any) -> Entry:
    """Normalise a hit of a provider's own search: an entry, a pair of key and content, or a text."""
    if isinstance(found, Entry):
        return found
    if isinstance(found, str):
        return Entry(key="", content=found)
    key, content = found
    return Entry(key=str(key), content=str(content))
