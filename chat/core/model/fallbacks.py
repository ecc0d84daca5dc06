"""Several models in the place of one: where one fails, the next answers.

Turns go through the list with `chat.core.loop.failover`, which keeps what was shown and remembers what failed. Single
questions outside of turns use `Fallbacks` as the model that it is.
"""

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from typing import Final, Protocol

from chat.core.model.language_model import LanguageModel, ModelEvent, ModelRequest, RetryNotice, Spent
from chat.errors import ContextOverflow, ModelError, ModelsExhausted
from thinkproject.kernel.jsonvalue import JSONObject
from thinkproject.kernel.phrases import Phrase

MAX_MODELS: Final = 8
"""Models in one list at most; more are left out."""


class ModelHealth(Protocol):
    """Memory of models that failed a moment ago, of this process. Never raises."""

    def is_resting(self, name: str) -> bool:
        """Whether a model is not to be asked first."""

    def failed(self, name: str, error: ModelError) -> None:
        """Note that a model gave up, after its retries."""

    def answered(self, name: str) -> None:
        """Note that a model answered."""


class Unusable:
    """A model of a list that cannot be set up: asking it fails with the reason, and the next one is asked."""

    accepts_images = False
    accepts_documents = False

    def __init__(self, name: str, error: ModelError) -> None:
        self.name = name
        self._error = error

    def describe(self, request: ModelRequest) -> JSONObject:  # noqa: ARG002 - the protocol's
        """Nothing would be sent."""
        return {"messages": []}

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:  # noqa: ARG002 - as above
        """Raise the reason."""
        events: tuple[ModelEvent, ...] = ()
        for event in events:  # none: it only makes this a generator
            yield event
        raise self._error


class Fallbacks:
    """Models in the order in which they are asked; names are unique, and the first of a name counts.

    It goes by the name of the first. It takes whatever one of them takes: adapters name files that theirs does not.
    """

    def __init__(self, models: Sequence[LanguageModel], health: ModelHealth) -> None:
        """Errors: `ValueError` for no model."""
        by_name: dict[str, LanguageModel] = {}
        for model in models:
            by_name.setdefault(model.name, model)
        self.models = tuple(by_name.values())[:MAX_MODELS]
        self.health = health
        if not self.models:
            raise ValueError("a list of models has at least one")

    @property
    def name(self) -> str:
        """The first model's name."""
        return self.models[0].name

    @property
    def accepts_images(self) -> bool:
        """Whether any of them takes pictures."""
        return any(model.accepts_images for model in self.models)

    @property
    def accepts_documents(self) -> bool:
        """Whether any of them takes PDF documents."""
        return any(model.accepts_documents for model in self.models)

    def mapped(self, change: Callable[[LanguageModel], LanguageModel]) -> "Fallbacks":
        """The same list with each model wrapped."""
        return Fallbacks([change(model) for model in self.models], self.health)

    def in_order(self) -> list[LanguageModel]:
        """The models as they are asked now: those that failed a moment ago come last."""
        return sorted(self.models, key=lambda model: self.health.is_resting(model.name))

    def describe(self, request: ModelRequest) -> JSONObject:
        """The body for the model that is asked first."""
        return self.in_order()[0].describe(request)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Stream the first model that answers; one that breaks off after an event is not replaced.

        Errors: that model's, `ContextOverflow`, and `ModelsExhausted` when none of several answered.
        """
        failed: dict[str, str] = {}
        for model in self.in_order():
            has_begun = False
            try:
                async with aclosing(model.stream(request)) as events:
                    async for event in events:
                        has_begun = has_begun or not isinstance(event, RetryNotice | Spent)
                        yield event
            except ContextOverflow:
                raise  # callers shorten the request
            except ModelError as error:
                self.health.failed(model.name, error)
                if has_begun or len(self.models) == 1:
                    raise
                failed[model.name] = error.code
                for spent in Spent.on(error):
                    yield spent
            else:
                self.health.answered(model.name)
                return
        raise exhausted(failed)


def models_of(model: LanguageModel) -> tuple[LanguageModel, ...]:
    """The models that may answer in its place, itself included, in order of preference."""
    return model.models if isinstance(model, Fallbacks) else (model,)


def exhausted(failed: dict[str, str]) -> ModelsExhausted:
    """The error of a list of which none answers. `failed`: error codes by the models' names, in the order asked."""
    tried = ", ".join(f"{name} ({code})" for name, code in failed.items())
    return ModelsExhausted(Phrase("None of the models could answer: {tried}.", tried=tried), failed=failed)
