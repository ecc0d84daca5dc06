"""Keeps the system prompt of a session as it was first sent, with a note about what its blocks hold by now."""

from functools import partial

from sessions_app.context.session_context import SessionContext
from sessions_app.context.snapshot import ContextState
from sessions_app.core.context.prompt_head import PromptHead, changes_between
from sessions_app.messages.services import freeze_prompt
from thinkproject.kernel.aio import db


async def prompt_head(context: SessionContext, state: ContextState, *, keeps: bool = True) -> PromptHead:
    """The system prompt of a turn, and the note that stands behind the conversation.

    A setup with a cached prompt sends that one and no note. Where every block is read-only it is rendered in each turn.
    Without `keeps` nothing is written. No query beyond those for rendering, except where a prompt is kept anew.
    """
    if context.setup.caches_prompt or all(block.kind.word == "readonly" for block in state.blocks.values()):
        return PromptHead(system=await context.system_prompt(state, keeps=keeps))
    kept, current = state.rows.system_prompt, await context.render(state, has_counts=False)
    note = None if kept is None else changes_between(kept, current)
    if kept is not None and note is not None:
        return PromptHead(system=kept, note=note)
    if keeps:
        await db(partial(freeze_prompt, context.session_id, current, replace=True))
    return PromptHead(system=current)
