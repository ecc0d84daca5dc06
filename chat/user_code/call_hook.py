"""Call a developer's method, sync or async, and know whether it is theirs."""

import logging
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from typing import Any

from chat.agent.base import Agent
from chat.agent.contracts import answer_problem
from chat.agent.plugin import Plugin
from chat.agent.think import Think
from chat.agent.values.extensions import HookWatcher
from chat.core.loop.hooks import ChatErrorContext
from chat.core.wire.chunks import Chunk, validate
from chat.errors import ChatError, TurnConfigInvalid
from chat.user_code import plugins
from thinkproject.kernel.aio import call_user_code
from thinkproject.kernel.described import described
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.languages import translate

logger = logging.getLogger(__name__)


class AgentCodeFailed(ChatError):
    """The agent's own code failed.

    Its message goes to clients, so it has nothing of what was raised: that may be a path, a query, a secret. It is in
    the log, and `on_chat_error` gets it (`original`). To report something to a client, code raises a `ThinkError`.
    """

    def __init__(self, original: Exception, method: str) -> None:
        super().__init__()
        self.original = original
        self.method = method

    @property
    def reason(self) -> str:
        """The text of an exception, for models and logs."""
        return str(self.original) or type(self.original).__name__


def is_overridden(agent: Agent, name: str) -> bool:
    """Whether the developer wrote this method, or a plugin of the site has it; the defaults are not worth a call."""
    return _is_written(agent, name) or bool(plugins.with_hook(name))


def _is_written(agent: Agent, name: str) -> bool:
    return getattr(type(agent), name) is not getattr(Think, name)


async def call_hook(agent: Agent, name: str, *args: Any) -> Any:
    """Call a getter or a hook: first the plugins of the site that have it, then the agent. One that fails is the last.

    Errors: `ThinkError` as it is; anything else that is raised as `AgentCodeFailed`; `TurnConfigInvalid` for an answer
    that is none (`chat.agent.contracts`).
    """
    found: Any = None
    for plugin in plugins.with_hook(name):
        found = plugins.both(found, answer := await _call(plugin, name, agent, *args))
        if plugins.is_last(answer):
            return found
        args = (plugins.seen_after(args[0], answer), *args[1:])
    if _is_written(agent, name):
        return plugins.both(found, await _call(agent, name, *args))
    if found is not None:
        return found
    with user_code_boundary(name, type(agent)):
        return getattr(agent, name)(*args)


async def _call(owner: Agent | Plugin, name: str, *args: Any) -> Any:
    method = getattr(owner, name)
    if not callable(method):
        raise logged(TurnConfigInvalid(f"{type(owner).__name__}.{name} is {described(method)}; it must be a method."))
    with user_code_boundary(name, type(owner)):
        answer = await call_user_code(method, *args)
    problem = answer_problem(type(owner), name, answer)
    if problem:
        raise logged(TurnConfigInvalid(problem))
    return answer


async def ask_hook(agent: Agent, name: str, *args: Any) -> Any:
    """Call a deciding hook if it is overridden, and have those who watch it hear of it; `None`: no decision.

    Errors: those of `call_hook`.
    """
    answer = await call_hook(agent, name, *args) if is_overridden(agent, name) else None
    await _tell_watcher(agent, name, *args)
    return answer


def logged(error: TurnConfigInvalid, agent_class: type[Agent] | None = None) -> TurnConfigInvalid:
    """The error, once it stands in the log for the developer."""
    if not error.is_logged:
        error.is_logged = True
        named = "" if agent_class is None or agent_class.__name__ in error.reason else f"{agent_class.__name__}: "
        logger.error(
            "the agent's code gave what cannot be used: %s", named + error.reason, extra={"action": error.code}
        )
    return error


async def user_facing_error(agent: Agent | None, error: ThinkError, context: ChatErrorContext) -> str:
    """The client's text of an error, after `on_chat_error`, in the active language. Never raises: the error is seen."""
    if isinstance(error, TurnConfigInvalid):
        logged(error, None if agent is None else type(agent))
    if agent is None or not isinstance(agent, Think) or not is_overridden(agent, "on_chat_error"):
        return translate(error.phrase)
    original = error.original if isinstance(error, AgentCodeFailed) else error
    try:
        replaced = await call_hook(agent, "on_chat_error", original, context)
    except ThinkError:
        return translate(error.phrase)  # a failing error hook does not hide the error
    return translate(error.phrase) if replaced is None else str(replaced)


@contextmanager
def user_code_boundary(method: str, agent_class: type[Agent | Plugin] | None = None) -> Iterator[None]:
    """Run a developer's code. Errors: `ThinkError` unchanged; any other as `AgentCodeFailed`."""
    try:
        yield
    except ThinkError:
        raise
    except Exception as error:  # a developer's method may raise anything
        of = {} if agent_class is None else {"agent_class": agent_class.__name__}
        logger.exception("agent code failed", extra={"action": "agent_code_failed", "method": method, **of})
        raise AgentCodeFailed(error, method) from error


async def iterate(stream: Any) -> AsyncGenerator[Chunk, None]:
    """Chunks of the developer's own answer: an async iterable, or an object with `to_ui_message_stream()`.

    Errors: `ThinkError` as it is, for instance for a chunk that is none; anything else as `AgentCodeFailed`.
    """
    if stream is None:
        return
    source = stream.to_ui_message_stream() if hasattr(stream, "to_ui_message_stream") else stream
    with user_code_boundary("on_chat_message"):
        async for chunk in source:
            yield validate(chunk)


async def notify_hook(agent: Agent, name: str, *args: Any) -> None:
    """Call a notification hook, of each plugin and of the agent; their exceptions are logged only."""
    for plugin in plugins.with_hook(name):
        await _notify(plugin, name, agent, *args)
    if _is_written(agent, name):
        await _notify(agent, name, *args)
    await _tell_watcher(agent, name, *args)


async def _notify(owner: Agent | Plugin, name: str, *args: Any) -> None:
    try:
        await _call(owner, name, *args)
    except ThinkError as error:
        logger.warning("hook failed", extra={"action": "hook_failed", "hook": name, "code": error.code})


def watcher_of(agent: Agent) -> HookWatcher | None:
    """The subscriber to the agent's hooks besides the agent: its extensions, if any have hooks."""
    return agent.instance.extension_state.watcher


def is_heard(agent: Agent, name: str) -> bool:
    """Whether anybody hears of this hook: the developer, or an extension."""
    watcher = watcher_of(agent)
    return is_overridden(agent, name) or (watcher is not None and watcher.watches(name))


async def _tell_watcher(agent: Agent, name: str, *args: Any) -> None:
    watcher = watcher_of(agent)
    if watcher is not None and len(args) == 1 and watcher.watches(name):
        await watcher.notify(name, args[0])
