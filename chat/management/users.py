"""Finds the user on whose behalf a command runs."""

from django.contrib.auth import get_user_model
from django.contrib.auth.base_user import AbstractBaseUser
from django.core.management.base import CommandError


def find_user(name: str) -> AbstractBaseUser:
    """Find the active user of this name; without a name, the only one. Errors: `CommandError`."""
    model = get_user_model()
    users = model.objects.filter(is_active=True)
    found = list(users.filter(**{model.USERNAME_FIELD: name}) if name else users[:2])
    if len(found) == 1:
        return found[0]
    if name:
        raise CommandError(f"There is no active user {name!r}.")
    if found:
        raise CommandError("Say whose: there is no single user.")
    raise CommandError("There are no users yet. Make one: manage.py create_user NAME")
