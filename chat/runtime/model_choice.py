"""Choosing a model for a conversation: the one way, for the API, sockets and code.

Which models there are is decided in `chat/instances/model_choice.py`. The agent's own model is known only to its code,
which is asked through `OwnModel`; where that fails nothing is known of it.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class, is_served
from chat.core.model.chosen_model import NOTHING, ChosenModel, check_parameters, read_choice, stored_choice
from chat.errors import ModelChoiceInvalid
from chat.instances.model_choice import allowed_models, effect_of, find_stored, fit, load_choice, store_choice
from chat.llm.catalogue import KnownModel
from chat.llm.registry import facts_of, inquire_of
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.phrases import Phrase

OwnModel: TypeAlias = Callable[[], Awaitable[str | None]]
"""Asks an agent for the name of its own model for a conversation; `None` where its code cannot say."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceView:
    """A conversation's choice as clients get it.

    `model`: the name of the model that answers the next turn, `None` where it is not known. `notice`: what of the
    choice does not count, and why; empty when all of it does.
    """

    model_choice: JSONObject | None
    model: str | None
    notice: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OfferedModel:
    """A model that people may choose."""

    known: KnownModel
    is_default: bool


@dataclass(frozen=True, slots=True)
class ModelChoices:
    """The choice of one conversation: read, checked, set."""

    key: InstanceKey
    own_model: OwnModel

    async def view(self, stored: JSONValue) -> ChoiceView:
        """Describe the choice that is stored with the instance. No query of ours."""
        choice = stored_choice(stored)
        if not is_served(self.key.agent):
            return ChoiceView(model_choice=choice.to_json(), model=None, notice="")
        effect = effect_of(get_agent_class(self.key.agent), choice)
        model = effect.choice.model or await self.own_model()
        if model is not None:
            effect = fit(effect, model)
        return ChoiceView(model_choice=choice.to_json(), model=model, notice=effect.notice)

    async def view_current(self) -> tuple[str | None, ChoiceView]:
        """The id of the row and its choice as it is stored now; no id before the first write. One query."""
        instance_id, stored = await db(find_stored, self.key) or (None, None)
        return instance_id, await self.view(stored)

    async def offered(self) -> list[OfferedModel]:
        """The models that people may choose, the agent's own first unless it has its place in the list.

        None where nothing may be chosen. Errors: `AgentNotFound`.
        """
        allowed = allowed_models(get_agent_class(self.key.agent))
        own = await self.own_model() if allowed else None
        names = allowed if own is None or own in allowed else (own, *allowed)
        await inquire_of(names)
        return [OfferedModel(known=facts_of(name), is_default=name == own) for name in names]

    async def check(self, value: JSONValue) -> ChosenModel:
        """Read a choice and decide whether it may be made here. Errors: `ModelChoiceInvalid`, `AgentNotFound`.

        The agent's own model may always be named where there is a choice; it is then no choice of a model.
        """
        agent = get_agent_class(self.key.agent)
        choice = read_choice(value)
        if choice == NOTHING:
            return choice
        allowed = allowed_models(agent)
        if not allowed:
            raise ModelChoiceInvalid(
                Phrase("Agent {agent!r} lets no model be chosen.", agent=self.key.agent), field="model", allowed=[]
            )
        own = None
        if choice.model not in allowed:
            own = await self.own_model()
            if choice.model not in (None, own):
                raise ModelChoiceInvalid(
                    Phrase("{model} is not offered here.", model=choice.model), field="model", allowed=list(allowed)
                )
            choice = choice.without(["model"])
        if choice.has_parameters:
            name = choice.model or own or ""
            check_parameters(choice, name or "The agent's own model", facts_of(name).takes)
        return choice

    async def load(self) -> ChosenModel:
        """Read the stored choice."""
        return await db(load_choice, self.key)

    async def save(self, choice: ChosenModel) -> None:
        """Check and store a choice, as `choose` does."""
        await self.choose(choice.to_json())

    async def choose(self, value: JSONValue, *, origin: str = "") -> tuple[str | None, ChoiceView]:
        """Check a choice, store it and notify clients; returns the row's id and the choice as clients get it.

        Takes effect with the next turn that begins. Durability: stored when this returns. Errors: as `check`,
        `QuotaExceeded`; then nothing has changed.
        """
        choice = await self.check(value)
        instance_id = await db(partial(store_choice, self.key, choice, origin=origin))
        return instance_id, await self.view(choice.to_json())
