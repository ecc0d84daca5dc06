"""The wishes of extensions for a turn, merged before it begins with what the agent itself says.

Scalars of a later extension win over those of an earlier one. A model or tools are not theirs to choose. Limits can be
made tighter and never wider, and the system prompt is for extensions that may read it and that have no network: what
they read elsewhere does not become an instruction. Options of providers and headers are those named here alone, since
any other may search the web, keep the conversation elsewhere, cost a multiple or break the request.
"""

import logging
import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from chat.agent.think import Think
from chat.core.loop.hooks import TurnConfig, TurnContext
from chat.core.model.language_model import ModelSettings
from chat.turns.execution.extensions.hooks import BEFORE_TURN, ExtensionHooks
from chat.turns.execution.turn_facts import TurnFacts
from chat.turns.guarding.turn_guard import TurnGuard
from chat.user_code.call_hook import call_hook
from chat.user_code.extensions import extensions_of
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.core.extensions.manifest import ALL
from tools_app.core.extensions.snapshots import snapshot
from tools_app.extensions.loaded import LoadedExtension

logger = logging.getLogger(__name__)

_NUMBERS: Final = frozenset(
    {
        "temperature",
        "top_p",
        "top_k",
        "min_p",
        "seed",
        "frequency_penalty",
        "presence_penalty",
        "repetition_penalty",
    }
)
_TEXTS: Final = frozenset({"stop", "reasoning_effort", "verbosity", "service_tier", "user"})
"""Options of providers that say how to answer, and nothing else."""

_TIERS: Final = frozenset({"auto", "default", "flex"})
"""Values of `service_tier` that cost no more than the default."""

_HEADER: Final = re.compile(
    r"x-(?!.*(api|auth|key|token|secret|cookie|session|forward|proxy|amz|goog|method|original|real|rewrite|host))"
    r"[a-z0-9-]{1,60}"
)
"""Headers of an extension's own, in lower case: none that signs in, frames or routes a request."""

_MAX_HEADERS: Final = 20
_MAX_HEADER_CHARS: Final = 1_000


class _Wish(BaseModel):
    """The values that `beforeTurn` may return. Anything else in it is left alone, a model and tools among it."""

    model_config = ConfigDict(extra="ignore", strict=True)

    system: str | None = Field(default=None, max_length=100_000)
    max_steps: int | None = Field(default=None, alias="maxSteps", ge=1)
    max_output_tokens: int | None = Field(default=None, alias="maxOutputTokens", ge=1)
    temperature: float | None = Field(default=None, ge=0, le=2)
    top_p: float | None = Field(default=None, alias="topP", ge=0, le=1)
    seed: int | None = None
    send_reasoning: bool | None = Field(default=None, alias="sendReasoning")
    timeout_seconds: float | None = Field(default=None, alias="timeoutSeconds", gt=0)
    headers: dict[str, str] | None = None
    provider_options: dict[str, dict[str, Any]] | None = Field(default=None, alias="providerOptions")


async def with_extensions(
    agent: Think, facts: TurnFacts, config: TurnConfig, context: TurnContext, guard: TurnGuard, *, message_count: int
) -> TurnConfig:
    """Subscribe the extensions to the hooks of the turn, and ask them about it. Without any, nothing is done."""
    listening = [each for each in await extensions_of(agent) if each.surface.hooks]
    if not listening:
        return config
    hooks = ExtensionHooks(agent, listening, facts, guard)
    agent.instance.extension_state.watcher = hooks
    if not any(BEFORE_TURN in each.surface.hooks for each in listening):
        return config
    system = next((text for text in (config.system, config.instructions) if text is not None), context.system)
    event = snapshot(
        {
            "system": system,
            "toolNames": list(context.tools),
            "messageCount": message_count,
            "continuation": context.continuation,
            "body": context.body,
            "modelId": context.model.name,
        }
    )
    assert isinstance(event, dict)
    most_steps = config.max_steps or await call_hook(agent, "get_max_steps")
    for extension, given in await hooks.before_turn(event):
        config = merged(config, extension, given, most_steps=most_steps)
    return config


def merged(config: TurnConfig, extension: LoadedExtension, given: JSONObject, *, most_steps: int) -> TurnConfig:
    """The config with what one extension wants. What cannot be read is logged and ignored."""
    try:
        wish = _Wish.model_validate(given)
    except ValidationError as error:
        extra = {"action": "extension_config_ignored", "extension": extension.name, "reason": str(error)[:500]}
        logger.warning("what an extension says about a turn cannot be read", extra=extra)
        return config
    settings = config.settings or ModelSettings()
    chosen: dict[str, Any] = {"temperature": wish.temperature, "top_p": wish.top_p, "seed": wish.seed}
    if wish.max_output_tokens is not None:
        chosen["max_output_tokens"] = min(wish.max_output_tokens, settings.max_output_tokens or wish.max_output_tokens)
        chosen["lowers_output"] = settings.max_output_tokens is None or settings.lowers_output
    settings = replace(settings, **{name: value for name, value in chosen.items() if value is not None})
    if wish.headers:
        settings = replace(settings, headers={**settings.headers, **_harmless(wish.headers)})
    options = _merged_options(config.provider_options, wish.provider_options)
    if lost := _left_out(wish, settings, options):
        extra = {"action": "extension_config_ignored", "extension": extension.name, "reason": ", ".join(lost)[:500]}
        logger.warning("options that an extension may not set are left out", extra=extra)
    config = replace(config, settings=settings, provider_options=options)
    if wish.max_steps is not None:
        config = replace(config, max_steps=min(wish.max_steps, config.max_steps or most_steps))
    if wish.timeout_seconds is not None:
        config = replace(config, timeout_seconds=min(wish.timeout_seconds, config.timeout_seconds or float("inf")))
    if wish.send_reasoning is False:
        config = replace(config, send_reasoning=False)
    if wish.system is not None and extension.granted.context.read == ALL and not extension.granted.network:
        config = replace(config, system=wish.system, instructions=None)
    return config


def _merged_options(
    held: Mapping[str, JSONObject] | None, given: Mapping[str, JSONObject] | None
) -> Mapping[str, JSONObject] | None:
    """Options by provider, merged one level deep."""
    if not given:
        return held
    before = held or {}
    allowed = {name: {k: v for k, v in options.items() if _is_option(k, v)} for name, options in given.items()}
    return {**before, **{name: {**before.get(name, {}), **options} for name, options in allowed.items()}}


def _is_option(name: str, value: Any) -> bool:
    if name in _NUMBERS:
        return isinstance(value, int | float) and not isinstance(value, bool)
    return name in _TEXTS and isinstance(value, str) and (name != "service_tier" or value in _TIERS)


def _harmless(headers: Mapping[str, str]) -> dict[str, str]:
    kept = [
        (name, value)
        for name, value in headers.items()
        if _HEADER.fullmatch(name.lower()) and value.isprintable() and len(value) <= _MAX_HEADER_CHARS
    ]
    return dict(kept[:_MAX_HEADERS])


def _left_out(wish: _Wish, kept: ModelSettings, options: Mapping[str, JSONObject] | None) -> list[str]:
    """The names of options and headers that the wish has and the turn has not."""
    held = options or {}
    wanted = [(provider, name) for provider, given in (wish.provider_options or {}).items() for name in given]
    lost = [f"{provider}.{name}" for provider, name in wanted if name not in held.get(provider, {})]
    return [*lost, *(name for name in wish.headers or {} if name not in kept.headers)]
