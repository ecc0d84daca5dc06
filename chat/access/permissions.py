"""Django's permissions of the person for whom an agent works."""

from collections.abc import Sequence
from typing import Any

from django.contrib.auth import get_user_model


def missing_permissions(user_id: Any, names: Sequence[str]) -> tuple[str, ...]:
    """The missing ones of these permissions, read anew. `None` for a user and an inactive one have none at all."""
    if not names:
        return ()
    user = None if user_id is None else get_user_model()._default_manager.filter(pk=user_id).first()
    return tuple(name for name in names if user is None or not user.has_perm(name))
