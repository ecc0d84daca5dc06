"""A person's view of a conversation's context: blocks, loaded documents, the prompt, entries.

The blocks are those that the agent's class declares, so its `configure_session` and its providers run here, in a web
process. An instance whose class is gone shows what was added to it, and nothing of what its class declared.
"""

from dataclasses import dataclass
from functools import partial

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.agent.think import Think
from chat.conf import chat_settings
from chat.instance.instance import started_agent
from chat.user_code.call_hook import user_code_boundary
from chat.user_code.session_setup import configured_session
from sessions_app.context import store
from sessions_app.context.history import ContextActor, ContextOwner
from sessions_app.context.kept_head import prompt_head
from sessions_app.context.session_context import SessionContext
from sessions_app.context.snapshot import OURS
from sessions_app.core.compaction.tokens import count_tokens, counter_named
from sessions_app.core.context.block_policy import BlockPolicy
from sessions_app.core.context.context_blocks import Block, Declaration, Entry, StoredText
from sessions_app.core.context.context_setup import ContextSetup
from sessions_app.errors import BlockNotFound, BlockNotWritable
from thinkproject.kernel.aio import db
from thinkproject.kernel.phrases import Phrase


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextView:
    """The context of a session. `is_outdated`: the kept prompt differs from the current blocks."""

    blocks: list[Block]
    loaded: list[str]
    system_prompt: str
    prompt_tokens: int
    is_kept: bool
    is_outdated: bool


async def open_session_context(key: InstanceKey, session_id: str) -> SessionContext:
    """Open the context of one of an instance's sessions for people. Errors: `AgentCodeFailed`."""
    if not is_served(key.agent):
        return SessionContext(session_id, ContextSetup())
    return await (await started_agent(key)).instance.open_context(session_id)


async def block_policy(key: InstanceKey) -> BlockPolicy:
    """The write policy for the blocks declared by an instance's class. Errors: `AgentCodeFailed`."""
    if not is_served(key.agent) or not issubclass(get_agent_class(key.agent), Think):
        return BlockPolicy({})
    agent = await started_agent(key)
    assert isinstance(agent, Think)
    setup = await configured_session(agent)
    return BlockPolicy(setup.blocks, setup.token_counter or counter_named(chat_settings.token_counter))


async def context_view(context: SessionContext) -> ContextView:
    """Look at a context; nothing is kept by looking. Errors: `AgentCodeFailed` for a provider that fails."""
    state = await context.state()
    with user_code_boundary("configure_session"):
        blocks = await context.blocks(state)
        head = await prompt_head(context, state, keeps=False)
        rendered = await context.render(state) if context.setup.caches_prompt else head.text
    kept = state.rows.system_prompt if context.setup.caches_prompt else None
    prompt = rendered if kept is None else kept
    return ContextView(
        blocks=blocks,
        loaded=sorted(state.rows.loaded),
        system_prompt=prompt,
        prompt_tokens=count_tokens(prompt, context.counter),
        is_kept=kept is not None,
        is_outdated=prompt != rendered,
    )


async def refresh(context: SessionContext) -> None:
    """Render the prompt anew and keep it, where the setup keeps prompts. Errors: `AgentCodeFailed`."""
    with user_code_boundary("configure_session"):
        await context.refresh_system_prompt()


async def write_block(context: SessionContext, label: str, content: str, by: ContextActor) -> Block:
    """Write a block's text as a person. Errors: as `SessionContext.replace`; `AgentCodeFailed`."""
    with user_code_boundary("configure_session"):
        return await context.replace(label, content, by=by)


async def write_entry(context: SessionContext, label: str, entry: Entry, by: ContextActor) -> None:
    """Write an entry as a person. Errors: as `SessionContext.set_entry`; `AgentCodeFailed`."""
    with user_code_boundary("configure_session"):
        await context.set_entry(
            label, entry.content, key=entry.key, title=entry.title, description=entry.description, by=by
        )


async def forget_block(context: SessionContext, label: str, by: ContextActor, *, erases_history: bool) -> None:
    """Clear a block on behalf of a person. Errors: `BlockNotFound`, `BlockNotWritable`, `AgentCodeFailed`."""
    declaration, owner = await _find(context, label)
    if isinstance(declaration.provider, OURS):
        await db(partial(store.forget, owner, label, erases_history=erases_history, by=by.within(context.session_id)))
    elif declaration.kind.is_keyed:
        raise BlockNotWritable(
            Phrase("What block {label!r} holds is kept elsewhere and cannot be deleted here.", label=label)
        )
    else:
        await write_block(context, label, "", by)


async def entries_of(context: SessionContext, label: str, *, after: str, limit: int) -> list[Entry]:
    """Entries of a block that we keep, by their keys. Errors: `BlockNotFound`, `BlockNotWritable`."""
    owner = await _keyed(context, label)
    return await db(partial(store.list_entries, owner, label, after_key=after, limit=limit))


async def delete_entry(context: SessionContext, label: str, key: str, by: ContextActor) -> None:
    """Forget an entry that we keep. Errors: `BlockNotFound`, `BlockNotWritable`, `EntryNotFound`."""
    owner = await _keyed(context, label)
    await db(partial(store.delete_entry, owner, label, key, by=by.within(context.session_id)))


async def _keyed(context: SessionContext, label: str) -> ContextOwner:
    declaration, owner = await _find(context, label)
    if not isinstance(declaration.provider, OURS) or isinstance(declaration.provider, StoredText):
        raise BlockNotWritable(Phrase("Block {label!r} has no entries here.", label=label))
    return owner


async def _find(context: SessionContext, label: str) -> tuple[Declaration, ContextOwner]:
    state = await context.state()
    if label not in state.blocks:
        raise BlockNotFound(Phrase("There is no context block {label!r}.", label=label))
    declaration = state.blocks[label]
    return declaration, state.owner(declaration, context.session_id)
