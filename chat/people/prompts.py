"""Saved prompts of people: made, changed and removed by their owner alone."""

from typing import Any, Final

from django.db import IntegrityError, transaction

from chat.account_errors import PromptNotFound
from chat.errors import InputInvalid
from chat.models import SavedPrompt
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

MAX_PROMPTS: Final = 200
MAX_PROMPT_CHARS: Final = 8_000


def prompts_of(user_id: Any) -> list[SavedPrompt]:
    """The prompts of a person, by their names."""
    return sorted(SavedPrompt.objects.filter(user_id=user_id), key=lambda row: (row.name.casefold(), row.pk))


@transaction.atomic
def add_prompt(user_id: Any, *, name: str, text: str) -> SavedPrompt:
    """Save a prompt. Errors: `InputInvalid` for a name that is taken, and beyond `MAX_PROMPTS`."""
    lock_owner(user_id)
    if SavedPrompt.objects.filter(user_id=user_id).count() >= MAX_PROMPTS:
        raise InputInvalid(Phrase("You have {limit} prompts already. Remove one of them first.", limit=MAX_PROMPTS))
    return _saved(SavedPrompt(user_id=user_id, name=name, text=text))


@transaction.atomic
def change_prompt(user_id: Any, prompt_id: str, **changes: str) -> SavedPrompt:
    """Change name or text. Errors: `PromptNotFound`, also for another's; `InputInvalid` for a name that is taken."""
    row = SavedPrompt.objects.select_for_update().filter(pk=prompt_id, user_id=user_id).first()
    if row is None:
        raise PromptNotFound
    for name, value in changes.items():
        setattr(row, name, value)
    return _saved(row)


def remove_prompt(user_id: Any, prompt_id: str) -> None:
    """Remove a prompt. Errors: `PromptNotFound`, also for another's."""
    if not SavedPrompt.objects.filter(pk=prompt_id, user_id=user_id).delete()[0]:
        raise PromptNotFound


def _saved(row: SavedPrompt) -> SavedPrompt:
    try:
        with transaction.atomic():
            row.save()
    except IntegrityError as error:
        raise InputInvalid(Phrase("You have a prompt named {name!r} already.", name=row.name)) from error
    return row
