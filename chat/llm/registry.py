"""From a model's name to something that answers.

`resolve_model` gives the bare adapter, `guarded` puts the project's retry and stall rules around any model. The name
"default" is what configuration or discovery chose (`chat.llm.discovery`).
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Final, TypeAlias, cast

from chat.core.model.abilities import Ability
from chat.core.model.catalogue import Medium
from chat.core.model.fallbacks import Fallbacks, Unusable, models_of
from chat.core.model.language_model import LanguageModel, ModelRequest, ToolSpec
from chat.core.model.overflow import Limits
from chat.core.model.prices import Price, read_prices
from chat.errors import ModelNotConfigured
from chat.llm.abilities import MEDIA, calls_tools, reads
from chat.llm.catalogue import KnownModel, declared_inputs, known_model
from chat.llm.conf import llm_settings
from chat.llm.discovery import Choice, ChoiceKind, configured_choice, load_choice, no_choice
from chat.llm.endpoint import Endpoint
from chat.llm.health import RestingModels, resting_models
from chat.llm.model_limits import declared_limits, with_output
from chat.llm.model_memory import NOTHING, Learned, ModelMemory, declaration_mark, model_memory
from chat.llm.own_keys import has_own_keys, own_key, takes_own_keys
from chat.llm.providers import Credentials, Route, route, split_name
from chat.llm.server_facts import inquire
from chat.llm.wrappers import POLICY, Retrying, SchemaByTool, StallGuard
from thinkproject.kernel.phrases import Phrase

if TYPE_CHECKING:
    from chat.llm.adapters.adapter import HttpModel

logger = logging.getLogger(__name__)

DEFAULT: Final = "default"
AnyChoice: TypeAlias = str | LanguageModel | Sequence[str | LanguageModel]
"""A name, a model, or a list of these."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelInfo:
    """The default model, as it is reported to people. `kind` is a `ChoiceKind`; `name` is empty when there is none."""

    name: str
    kind: ChoiceKind
    base_url: str
    is_small: bool
    hint: str


def resolve_model(choice: AnyChoice) -> LanguageModel:
    """Return the model that is named `provider/model` or "default"; a model is returned as it is.

    A list, also one that is configured as the default, gives `Fallbacks`. Errors: `ModelNotConfigured`, whose message
    says what to set; of a list, when none of its models can be set up.
    """
    if not isinstance(choice, str):
        return _fallbacks(choice) if isinstance(choice, list | tuple) else cast("LanguageModel", choice)
    if _replacement:
        return _replacement[-1]
    name = choice.strip()
    if name not in ("", DEFAULT):
        return _named(name)
    default = default_choice()
    if not default.name:
        raise ModelNotConfigured(default.hint)
    return _fallbacks([default.name, *default.fallbacks]) if default.fallbacks else _named(default.name)


def _fallbacks(choices: Sequence[str | LanguageModel]) -> LanguageModel:
    """The models of a list. One that cannot be set up keeps its place, and the next one is asked instead of it."""
    models: list[LanguageModel] = []
    for choice in choices:
        try:
            models.extend(models_of(resolve_model(choice)))
        except ModelNotConfigured as error:
            if all(isinstance(model, Unusable) for model in models) and choice is choices[-1]:
                raise
            logger.warning("a model of a list cannot be set up", extra={"action": "model_unusable", "model": choice})
            models.append(Unusable(name_of(choice) or str(choice), error))
    if not models:
        raise ModelNotConfigured("The list of models is empty.")
    if len(models) == 1:
        return models[0]
    # What fails with a key of a person's may answer all others.
    return Fallbacks(models, RestingModels() if has_own_keys() else resting_models)


def _named(
    name: str, memory: ModelMemory = model_memory, observe: Callable[[str], None] = lambda _words: None
) -> "HttpModel":
    """The adapter of a model; `memory` and `observe` as it takes them."""
    choice = default_choice()
    provider, model = split_name(name)
    try:
        found = route(provider, _credentials(choice), llm_settings.providers, own_key=own_key(provider))
    except ModelNotConfigured:
        if takes_own_keys(provider):
            raise ModelNotConfigured(
                Phrase(
                    "This site has no key for {provider}. Store one of your own in the settings, “Models and keys”.",
                    provider=provider,
                )
            ) from None
        raise
    endpoint = _as_seen_by(name, found.endpoint)
    # Importing `openai` is a third of a process' start, and most processes call no model.
    if found.uses_responses:
        from chat.llm.adapters.responses import ResponsesModel  # noqa: PLC0415 - as above

        return ResponsesModel(endpoint, model, memory=memory, observe=observe)
    from chat.llm.adapters.chat_completions import ChatCompletionsModel  # noqa: PLC0415 - as above

    return ChatCompletionsModel(endpoint, model, memory=memory, observe=observe)


def endpoint_of(name: str) -> Endpoint | None:
    """The endpoint of `provider/model` with what is declared and listed of it; `None` for one that is not configured.

    With it a probe asks a model apart from all that is known of it.
    """
    found = _route_of(name)
    return None if found is None else _as_seen_by(name.strip(), found.endpoint)


def endpoint_with_key(provider: str, key: str) -> Endpoint | None:
    """The endpoint of a provider with a key of a person's; `None` for one that is not configured."""
    try:
        return route(provider, _credentials(default_choice()), llm_settings.providers, own_key=key).endpoint
    except ModelNotConfigured:
        return None


def apart(name: str, memory: ModelMemory, observe: Callable[[str], None]) -> "HttpModel":
    """The bare adapter of `provider/model` with a memory of its own. Errors: `ModelNotConfigured`."""
    return _named(name.strip(), memory, observe)


def _as_seen_by(name: str, endpoint: Endpoint) -> Endpoint:
    """The endpoint with the media that the settings declare for the model, or else that the product's list names.

    A provider that is declared to take none of a kind takes none of it for any model.
    """
    declared = declared_inputs(name)
    if declared is None:
        return replace(endpoint, listed_inputs=known_model(name).inputs)
    return replace(
        endpoint,
        accepts_images=endpoint.accepts_images is not False and "image" in declared,
        accepts_documents=endpoint.accepts_documents is not False and "document" in declared,
    )


def name_of(choice: AnyChoice) -> str:
    """The name of the model that would answer, without making an adapter; empty where "default" stands for none.

    Of a list it is the first one's.
    """
    if not isinstance(choice, str):
        if isinstance(choice, list | tuple):
            return name_of(choice[0]) if choice else ""
        return cast("LanguageModel", choice).name
    if _replacement:
        return _replacement[-1].name
    name = choice.strip()
    return default_choice().name if name in ("", DEFAULT) else name


def load_adapters() -> None:
    """Import the modules of a first model call in advance; workers do so before they report ready."""
    for name in ("chat_completions", "responses"):
        import_module(f"chat.llm.adapters.{name}")


_replacement: list[LanguageModel] = []


@contextmanager
def replaced_models(model: LanguageModel) -> Iterator[None]:
    """Let this model answer for every name, in this process. For tests of agents (`chat.testing`)."""
    _replacement.append(model)
    try:
        yield
    finally:
        _replacement.pop()


def guarded(model: LanguageModel, *, gap_seconds: float | None = None) -> LanguageModel:
    """Wrap a model in the stall guard and the retries, configured by the settings (or `gap_seconds`).

    In between stands the way round a refused schema, which may hold an answer back and is not silent for that. Of
    several models each is wrapped.
    """
    if isinstance(model, Fallbacks):
        return model.mapped(lambda one: guarded(one, gap_seconds=gap_seconds))
    guard = StallGuard(
        model,
        gap_seconds=llm_settings.stall_seconds if gap_seconds is None else gap_seconds,
        first_seconds=llm_settings.first_token_seconds,
    )
    return Retrying(
        SchemaByTool(guard, passes_over=_passes_schemas_over),
        policy=replace(POLICY, attempts=llm_settings.retry_attempts),
    )


def _passes_schemas_over(name: str, request: ModelRequest) -> bool:
    """Whether a model refused the schema of such a request, or a probe found it of no use, and that it calls tools."""
    learned = learned_of(name)
    found = learned.abilities
    is_useless = found.get(Ability.SCHEMA) is False and found.get(Ability.TOOLS) is True
    return is_useless or bool(request.tools) in learned.refused_schemas


def default_choice() -> Choice:
    """The current meaning of "default": the settings, else the stored choice, else none with a reason. No network."""
    path = llm_settings.choice_file
    stored = load_choice(Path(path)) if path else None
    settings = {
        "THINK_MODEL": llm_settings.model,
        "OPENAI_API_KEY": llm_settings.openai_api_key,
        "OPENAI_BASE_URL": llm_settings.openai_base_url,
    }
    return configured_choice(settings) or stored or no_choice()


def limits_of(model: LanguageModel) -> Limits:
    """Return the limits of a model by its name; zeros where they are unknown."""
    return with_output(_declared(model.name))


def _declared(name: str) -> Limits:
    """The limits by the settings, else of its server, else by the list; the longest answer as far as it is known."""
    learned = learned_of(name)
    reported = (name, learned.context_tokens)
    if not learned.context_tokens:
        choice = default_choice()
        reported = (choice.name, choice.context_tokens)
    limits = declared_limits(name, reported)
    return limits if limits.output_tokens else replace(limits, output_tokens=learned.output_tokens)


async def inquire_of(models: Iterable[LanguageModel | str]) -> None:
    """Ask the servers of these models what they can do, where that is not known yet. Never raises."""
    names = {model if isinstance(model, str) else model.name for model in models}
    routes = [(found, name.partition("/")[2]) for name in names if (found := _route_of(name)) is not None]
    await asyncio.gather(*(inquire(found.endpoint, model) for found, model in routes))


def cuts_silently(model: LanguageModel) -> bool:
    """Whether the model's server cuts requests that are too large, and answers what is left of them."""
    return learned_of(model.name).cuts_silently


def learned_of(name: str) -> Learned:
    """Give the facts and lessons that this process has from the server of `provider/model`."""
    place = _place_of(name)
    return NOTHING if place is None else model_memory.of(*place)


def facts_of(name: str) -> KnownModel:
    """Give the facts of the model of this name, its server's report included. What settings and list say goes first."""
    learned = learned_of(name)
    known = known_model(name)
    price = known.price or reported_price(name)
    endpoint = endpoint_of(name)
    if endpoint is None:
        return replace(known, limits=_declared(name), price=price)
    return replace(
        known,
        limits=_declared(name),
        price=price,
        inputs=_inputs(known, endpoint, learned),
        calls_tools=calls_tools(endpoint, learned),
        reasons=learned.abilities.get(Ability.REASONING),
    )


def reported_price(name: str) -> Price | None:
    """Give the price that the server of `provider/model` reported."""
    price = learned_of(name).price
    return read_prices({name: price})[name] if price else None


def _inputs(known: KnownModel, endpoint: Endpoint, learned: Learned) -> tuple[Medium, ...] | None:
    """The media that are read, as far as it is known of any. The list says of a model what nothing contradicts."""
    read: dict[Medium, bool | None] = {medium: reads(medium, endpoint, learned) for medium in MEDIA}
    if known.inputs is not None:
        read = {medium: medium in known.inputs if is_read is None else is_read for medium, is_read in read.items()}
    if all(is_read is None for is_read in read.values()):
        return None
    return tuple(medium for medium, is_read in read.items() if is_read)


def refused_tools(name: str, tools: Iterable[ToolSpec]) -> set[str]:
    """Names of the tools that the server of this model refuses as they are declared. Blocks; reads what all know."""
    place = _place_of(name)
    refused = model_memory.read(*place).refused_tools if place is not None else {}
    return {
        tool.name
        for tool in tools
        if refused.get(tool.name) == declaration_mark(tool.name, tool.description, tool.input_schema)
    }


def _place_of(name: str) -> tuple[str, str] | None:
    """The address and the name there of `provider/model`; `None` for one that is not behind an address."""
    found = _route_of(name)
    return None if found is None else (found.endpoint.base_url, name.strip().partition("/")[2])


def _route_of(name: str) -> Route | None:
    try:
        provider, _model = split_name(name)
        return route(provider, _credentials(default_choice()), llm_settings.providers)
    except ModelNotConfigured:
        return None


def describe_default() -> ModelInfo:
    """Describe the "default" model, its source, and how to connect a better one. Never raises."""
    choice = default_choice()
    return ModelInfo(
        name=choice.name,
        kind=choice.kind,
        base_url=choice.base_url,
        is_small=choice.is_small,
        hint=choice.hint,
    )


def _credentials(choice: Choice) -> Credentials:
    is_local = choice.kind is ChoiceKind.LOCAL
    is_server = choice.kind is ChoiceKind.SERVER
    return Credentials(
        openai_api_key=llm_settings.openai_api_key,
        openai_base_url=llm_settings.openai_base_url,
        local_base_url=choice.base_url if is_local else "",
        discovered_base_url=choice.base_url if is_server else "",
        discovered_provider=choice.name.partition("/")[0] if is_server else "",
    )
