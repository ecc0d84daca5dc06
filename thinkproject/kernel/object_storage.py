"""Large bytes outside of the database: which storage, and how objects and rows stay in step.

The object is saved before its row and deleted after the commit that removes the row. What a crash leaves in between is
an object without a row, which `sweep_objects` removes. Storage is Django's: the alias `think` when `STORAGES` has one,
else the default; it must not be served by the web server, as access is decided by the apps.
"""

from collections.abc import Callable, Sequence

from django.core.files.storage import Storage, default_storage, storages
from django.db import transaction
from django.db.models import Model

_BATCH = 500


def object_storage() -> Storage:
    """The storage of large bytes."""
    return storages["think"] if "think" in storages.backends else default_storage


def delete_after_commit(names: Sequence[str]) -> None:
    """Delete objects once the transaction is committed; at once outside of one. A failure is left to the sweep."""

    def remove() -> None:
        for name in names:
            object_storage().delete(name)

    if names:
        transaction.on_commit(remove, robust=True)


def referenced_by(rows: type[Model]) -> Callable[[Sequence[str]], set[str]]:
    """A function that says which of some names rows of a table refer to, by their `storage_name`."""

    def referenced(names: Sequence[str]) -> set[str]:
        return set(rows._default_manager.filter(storage_name__in=names).values_list("storage_name", flat=True))

    return referenced


def sweep_objects(
    folder: str,
    referenced: Callable[[Sequence[str]], set[str]],
    *,
    before: float,
    dry_run: bool = False,
    limit: int = 1_000,
) -> int:
    """Delete objects directly in a folder that no row refers to. Returns how many (or would be).

    `referenced`: which of some names rows refer to. `before`: seconds since the epoch; younger objects are left alone,
    as their row may be about to be written.
    """
    store = object_storage()
    try:
        names = [f"{folder}/{name}" for name in store.listdir(folder)[1]]
    except FileNotFoundError:
        return 0
    count = 0
    for start in range(0, len(names), _BATCH):
        batch = names[start : start + _BATCH]
        present = referenced(batch)
        for name in batch:
            if name not in present and count < limit and store.get_modified_time(name).timestamp() < before:
                count += 1
                if not dry_run:
                    store.delete(name)
    return count
