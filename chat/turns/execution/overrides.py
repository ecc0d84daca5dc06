"""Parses and validates the result of `before_turn`. An invalid one ends the turn with a reason."""

import inspect
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from chat.core.loop.hooks import StepRecord, StopCondition, TurnConfig
from chat.core.model.language_model import ModelSettings
from chat.core.model.output_schema import Output, output_of
from chat.core.model.tool_choice import read_tool_choice
from chat.errors import TurnConfigInvalid
from chat.turns.guarding.handed_down import Denied
from chat.user_code.call_hook import user_code_boundary
from thinkproject.kernel.described import described
from tools_app.core.toolset import Toolset
from tools_app.errors import ToolDeclarationInvalid


@dataclass(frozen=True, slots=True, kw_only=True)
class Overrides:
    """A checked `TurnConfig`: the tools of the turn, and everything that is not a plain override."""

    toolset: Toolset
    system: str
    tool_choice: str
    settings: ModelSettings
    output: Output | None
    stop_when: tuple[StopCondition, ...]


def read_overrides(config: TurnConfig, *, system: str, offered: Toolset, denied: Denied = ()) -> Overrides:
    """Validate the config against the turn. `denied`: from above, whatever the config adds.

    Errors: `TurnConfigInvalid`.
    """
    if config.system is not None and config.instructions is not None:
        raise TurnConfigInvalid("Give before_turn's system prompt as system or as instructions, not as both.")
    _require_positive(config)
    output = output_of(config.output)
    toolset = _tools(config, offered).without(denied)
    names = [tool.name for tool in toolset]
    given = config.instructions if config.system is None else config.system
    return Overrides(
        toolset=toolset,
        system=system if given is None else given,
        tool_choice="auto" if config.tool_choice is None else read_tool_choice(config.tool_choice, names),
        settings=_settings(config, output),
        output=output,
        stop_when=tuple(_guarded(condition) for condition in _conditions(config.stop_when)),
    )


def _require_positive(config: TurnConfig) -> None:
    steps: Any = config.max_steps
    if steps is not None and (not isinstance(steps, int) or steps < 1):
        raise TurnConfigInvalid(f"before_turn: max_steps must be a positive whole number, not {described(steps)}.")
    for name in ("timeout_seconds", "stall_timeout_seconds"):
        seconds: Any = getattr(config, name)
        if seconds is not None and (not isinstance(seconds, int | float) or seconds < 0):
            raise TurnConfigInvalid(f"before_turn: {name} must be a number of seconds, not {described(seconds)}.")


def _tools(config: TurnConfig, offered: Toolset) -> Toolset:
    if isinstance(config.active_tools, str):
        raise TurnConfigInvalid("before_turn: active_tools must be a list of names, not a text.")
    try:
        return Toolset(offered, config.tools).only(config.active_tools)
    except ToolDeclarationInvalid as error:
        raise TurnConfigInvalid(f"The tools of before_turn: {error.message}") from error


def _settings(config: TurnConfig, output: Output | None) -> ModelSettings:
    settings = config.settings or ModelSettings()
    if config.provider_options is not None:
        settings = settings.with_options(config.provider_options)
    if output is not None:
        settings = replace(settings, response_schema=output.json_schema, response_by_tool=output.by_tool)
    return settings


def _conditions(given: StopCondition | Sequence[StopCondition]) -> Iterable[StopCondition]:
    return [given] if callable(given) else given


def _guarded(condition: StopCondition) -> StopCondition:
    """The developer's stop condition; an exception ends the turn with its reason."""

    def guarded(steps: Sequence[StepRecord]) -> bool:
        with user_code_boundary("stop_when"):
            wants_end: Any = condition(steps)
        if inspect.isawaitable(wants_end):
            raise TurnConfigInvalid(f"before_turn: stop_when returned {described(wants_end)}; it is sync.")
        return bool(wants_end)

    return guarded
