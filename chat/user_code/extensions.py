"""The extensions of an agent object: those of its class, and what is stored for its conversation."""

from chat.agent.base import InstanceKey
from chat.agent.think import Think
from chat.core.context.session_setup import SessionSetup
from chat.instances.rows import find_instance
from chat.user_code.call_hook import call_hook, is_overridden
from sessions_app.core.context.context_blocks import Declaration, StoredText
from thinkproject.kernel.aio import db
from tools_app.extensions.loaded import LoadedExtension, banned, distinct, load_stored
from tools_app.extensions.static import static_extensions


async def class_extensions(agent: Think) -> list[LoadedExtension]:
    """The extensions that the class brings, without those that are disabled everywhere. Errors: `AgentCodeFailed`."""
    if not is_overridden(agent, "get_extensions"):
        return []
    found = await static_extensions(list(await call_hook(agent, "get_extensions") or ()))
    refused = await db(banned, [each.sha256 for each in found])
    return [each for each in found if each.sha256 not in refused]


async def extensions_of(agent: Think, *, has_stored: bool = True) -> tuple[LoadedExtension, ...]:
    """The extensions in load order. `has_stored`: whether any is stored that may concern this conversation.

    The agent object keeps them: a turn has those that there were when it began.
    """
    state = agent.instance.extension_state
    if state.loaded is None:
        found = await class_extensions(agent)
        if has_stored:
            found += await db(_stored, agent.key)
        state.loaded = distinct(found)
    return state.loaded


async def declare_blocks(agent: Think, setup: SessionSetup) -> None:
    """Add the context blocks of the extensions, below those of the agent, whose labels no extension gets."""
    labels: dict[str, str] = {}
    for extension in await extensions_of(agent):
        for label, block in extension.manifest.blocks.items():
            if label not in setup.blocks:
                labels[label] = extension.prefix
                setup.blocks[label] = Declaration(
                    label=label,
                    provider=StoredText(),
                    description=block.description,
                    max_tokens=block.max_tokens,
                    is_runtime=True,
                )
    agent.instance.extension_state.labels = labels


def _stored(key: InstanceKey) -> list[LoadedExtension]:
    scope = key.instance_id
    if not scope:
        instance = find_instance(key)
        scope = "" if instance is None else instance.pk
    return load_stored(key.owner_id, scope)
