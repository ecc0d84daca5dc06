"""The model that people chose for a conversation: what may be chosen, what is in effect, and its row.

A choice belongs to the instance. A site may stop to offer a model: then the agent's own answers, and the conversation
says why (`ChoiceEffect.notice`). The stored choice stays, and is in effect again once the model is back.
"""

from dataclasses import dataclass
from typing import Final

from django.db import transaction

from chat.agent.base import Agent, InstanceKey
from chat.agent.think import Think
from chat.core.model.chosen_model import NOTHING, ChosenModel, refused_fields, stored_choice
from chat.instances.notifications import ModelChosen, group_of, notify_on_commit
from chat.instances.rows import ensure_instance, find_instance, lookup_of
from chat.llm.conf import llm_settings
from chat.llm.registry import DEFAULT, facts_of, name_of
from chat.models import AgentInstance
from thinkproject.kernel.jsonvalue import JSONObject

CLOSED: Final = "Models can no longer be chosen here, so the agent's own model answers."


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceEffect:
    """The part of a stored choice that counts. `notice`: what does not and why, for people; empty for none."""

    choice: ChosenModel
    notice: str = ""


def allowed_models(agent: type[Agent]) -> tuple[str, ...]:
    """The models that people may choose for conversations with an agent, by name, in the order of their list."""
    if not issubclass(agent, Think):
        return ()
    listed = llm_settings.models if agent.models is None else agent.models
    names = [name_of(name) if name == DEFAULT else name for name in listed]
    return tuple(dict.fromkeys(name for name in names if name))


def effect_of(agent: type[Agent], choice: ChosenModel) -> ChoiceEffect:
    """The part of a choice that counts at present, by what the site and the class offer.

    A choice whose model is gone does not count at all: its parameters were chosen for that model.
    """
    if choice == NOTHING:
        return ChoiceEffect(choice=NOTHING)
    allowed = allowed_models(agent)
    if not allowed:
        return ChoiceEffect(choice=NOTHING, notice=CLOSED)
    if choice.model is not None and choice.model not in allowed:
        notice = f"{choice.model} is no longer offered here, so the agent's own model answers."
        return ChoiceEffect(choice=NOTHING, notice=notice)
    return ChoiceEffect(choice=choice)


def fit(effect: ChoiceEffect, model: str) -> ChoiceEffect:
    """The same without parameters that the model of this name does not take."""
    refused = refused_fields(effect.choice, facts_of(model).takes)
    if not refused:
        return effect
    notice = f"{model} does not take the chosen {', '.join(refused)}, which is not sent."
    return ChoiceEffect(choice=effect.choice.without(refused), notice=notice)


def load_choice(key: InstanceKey) -> ChosenModel:
    """Read the stored choice of an address; nothing before the first write. One query."""
    return stored_choice(AgentInstance.objects.filter(**lookup_of(key)).values_list("model_choice", flat=True).first())


def find_stored(key: InstanceKey) -> tuple[str, JSONObject | None] | None:
    """The id of an address's row and its stored choice; `None` before the first write. One query."""
    return AgentInstance.objects.filter(**lookup_of(key)).values_list("pk", "model_choice").first()


@transaction.atomic
def store_choice(key: InstanceKey, choice: ChosenModel, *, origin: str = "") -> str | None:
    """Store a choice that was checked, and notify the conversation's clients but for `origin`; returns the row's id.

    The row is made where there is none, but not to store nothing. Errors: `QuotaExceeded`.
    """
    if choice == NOTHING and find_instance(key) is None:
        return None
    instance = ensure_instance(key)
    AgentInstance.objects.filter(pk=instance.pk).update(model_choice=choice.to_json())
    chosen: ModelChosen = {"type": "model.chosen", "origin": origin}
    notify_on_commit(group_of(key), chosen)
    return instance.pk
