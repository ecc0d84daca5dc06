"""Call a developer's provider: its methods may be sync or async, and may be missing."""

import inspect
from collections.abc import Callable
from typing import Any

from sessions_app.core.context.context_blocks import Declaration
from thinkproject.kernel.aio import call_user_code


class Providers:
    """Calls providers; `init(label)` of each comes before its first use."""

    def __init__(self) -> None:
        self._begun: set[str] = set()

    async def call(self, declaration: Declaration, method: str, *args: Any) -> Any:
        """Call a method of a block's provider with the arguments it accepts. Its errors are not wrapped."""
        if declaration.label not in self._begun:
            self._begun.add(declaration.label)
            if callable(getattr(declaration.provider, "init", None)):
                await _call(declaration.provider.init, declaration.label)
        return await _call(getattr(declaration.provider, method), *args)


async def _call(function: Callable[..., Any], *args: Any) -> Any:
    return await call_user_code(function, *args[: _arity(function)])


def _arity(function: Callable[..., Any]) -> int | None:
    """Number of positional arguments a function accepts; `None` for any number."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return None
    return sum(
        parameter.kind in {parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD} for parameter in parameters
    )
