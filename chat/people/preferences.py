"""The preferences of a person: reading, changing and checking them. One row for each person who has chosen anything."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from django.conf import settings

from chat.account_errors import PreferenceInvalid
from chat.agent.registry import is_served
from chat.core.context.person_instructions import NO_INSTRUCTIONS, PersonInstructions
from chat.models import PersonPreferences
from sessions_app.core.compaction.tokens import estimate_text
from thinkproject.kernel.phrases import Phrase
from thinkproject.kernel.zones import is_zone, near_zones

MAX_INSTRUCTION_TOKENS: Final = 1_000
"""Of each of the two texts: they are a part of every request of a model."""


def preferences_of(user_id: Any) -> PersonPreferences:
    """The choices of a person; a row that is not stored where there are none."""
    return PersonPreferences.objects.filter(pk=user_id).first() or PersonPreferences(pk=user_id)


def instructions_of(user_id: Any) -> PersonInstructions:
    """The instructions of a person. One query."""
    rows = PersonPreferences.objects.filter(pk=user_id).values("about_me", "how_to_answer", "read_by")
    found = rows.first()
    return NO_INSTRUCTIONS if found is None else PersonInstructions(**found)


def change_preferences(user_id: Any, changes: Mapping[str, Any]) -> PersonPreferences:
    """Store these fields and leave the others. Errors: `PreferenceInvalid`, and nothing is changed."""
    checked = {name: _CHECKS[name](value) if name in _CHECKS else value for name, value in changes.items()}
    if checked.get("read_by") is not None:
        _check_agents(checked["read_by"], preferences_of(user_id).read_by or ())
    row, _ = PersonPreferences.objects.update_or_create(pk=user_id, defaults=checked)
    return row


def _name(value: str) -> str:
    return " ".join(value.split())


def _language(value: str) -> str:
    if value and value not in dict(settings.LANGUAGES):
        raise PreferenceInvalid(Phrase("The language “{name}” is not offered here.", name=value), field="language")
    return value


def _zone(value: str) -> str:
    if not value or is_zone(value):
        return value
    near = near_zones(value)
    if near:
        text = Phrase("There is no time zone “{name}”. Did you mean {near}?", name=value, near=", ".join(near))
    else:
        text = Phrase("There is no time zone “{name}”. Name a place, for example Europe/Berlin, or UTC.", name=value)
    raise PreferenceInvalid(text, field="zone")


def _instructions(field: str) -> Callable[[str], str]:
    def check(value: str) -> str:
        tokens = estimate_text(value)
        if tokens > MAX_INSTRUCTION_TOKENS:
            raise PreferenceInvalid(
                Phrase(
                    "This text has {tokens} tokens. Up to {most} fit, because models read it with every message.",
                    tokens=tokens,
                    most=MAX_INSTRUCTION_TOKENS,
                ),
                field=field,
            )
        return value.strip()

    return check


def _read_by(value: Sequence[str] | None) -> list[str] | None:
    if value is None:
        return None
    if not value:
        raise PreferenceInvalid("Choose at least one agent, or all of them.", field="read_by")
    return sorted(set(value))


def _check_agents(wanted: Sequence[str], stored: Sequence[str]) -> None:
    """Refuse names that are no agents, but for those that were when they were chosen."""
    unknown = [name for name in wanted if name not in stored and not is_served(name)]
    if unknown:
        raise PreferenceInvalid(Phrase("There is no agent {name!r}.", name=unknown[0]), field="read_by")


_CHECKS: Final[Mapping[str, Callable[[Any], Any]]] = {
    "name": _name,
    "language": _language,
    "zone": _zone,
    "about_me": _instructions("about_me"),
    "how_to_answer": _instructions("how_to_answer"),
    "read_by": _read_by,
}
