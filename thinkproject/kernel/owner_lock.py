"""A lock for what is counted per user: rows that are counted and then inserted belong together."""

from functools import lru_cache

from django.contrib.auth import get_user_model
from django.db import connection

from thinkproject.kernel.statements import Statement


def lock_owner(owner_id: int) -> None:
    """Lock the user's row until the transaction ends, for a count and an insert that belong together.

    One statement on PostgreSQL, none on SQLite, whose transactions have one writer. Inserting rows that refer to the
    user is not kept waiting. Order of locks: fiber, instance, workspace, owner; a holder of the owner's row takes no
    fiber, instance or workspace that it does not hold, and only sessions of instances that it holds.
    """
    if not connection.features.has_select_for_update:
        return
    user = get_user_model()._meta
    assert user.pk is not None
    _lock_statement(user.db_table, user.pk.column).one(user.pk.get_db_prep_save(owner_id, connection))


@lru_cache(maxsize=1)
def _lock_statement(table: str, key: str) -> Statement:
    return Statement(f'SELECT 1 FROM "{table}" WHERE "{key}" = %s :lock:')  # noqa: S608 - names of the user model
