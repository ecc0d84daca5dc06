"""Whether a model takes tools, pictures and documents: the one place that weighs what is declared and what was found.

From the strongest: a declaration of the settings, the finding of a probe, the product's list, the server's report.
`None` is unknown. Pure.
"""

from typing import Final

from chat.core.model.abilities import Ability
from chat.core.model.catalogue import Medium
from chat.llm.endpoint import Endpoint
from chat.llm.model_memory import Learned

MEDIA: Final[dict[Medium, Ability]] = {"image": Ability.IMAGES, "document": Ability.PDF}


def declared_of(ability: Ability, endpoint: Endpoint) -> bool | None:
    """The declaration of an operator; `None` where there is none."""
    match ability:
        case Ability.TOOLS | Ability.PARALLEL:
            return endpoint.can_call_tools
        case Ability.IMAGES:
            return endpoint.accepts_images
        case Ability.PDF:
            return endpoint.accepts_documents
        case _:
            return None


def reads(medium: Medium, endpoint: Endpoint, known: Learned) -> bool | None:
    """Whether a model reads files of this kind. A request that was refused for one is stronger than all else.

    The list can only say no: what a model reads at its maker's address another server may not pass on.
    """
    if medium in known.refused_inputs:
        return False
    ability = MEDIA[medium]
    declared = declared_of(ability, endpoint)
    found = known.abilities.get(ability) if declared is None else declared
    if found is not None:
        return found
    if endpoint.listed_inputs is not None and medium not in endpoint.listed_inputs:
        return False
    return None if known.inputs is None else medium in known.inputs


def calls_tools(endpoint: Endpoint, known: Learned) -> bool | None:
    """Whether a model calls tools."""
    found = _tools(endpoint, known)
    return known.calls_tools if found is None else found


def sends_tools(endpoint: Endpoint, known: Learned) -> bool:
    """Whether tools are sent to a model: where it is not declared, and was not found, that it calls none.

    The report of its server is shown only: it may be of the model and not of what runs it.
    """
    return _tools(endpoint, known) is not False


def _tools(endpoint: Endpoint, known: Learned) -> bool | None:
    declared = declared_of(Ability.TOOLS, endpoint)
    return known.abilities.get(Ability.TOOLS) if declared is None else declared
