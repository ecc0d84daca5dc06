"""The refusal to migrate a database that an older checkout left half-way.

The first migration of each app names those that it replaces. Django takes it as applied where all of them are.
Where only some are, Django drops the app from its plan without a word, and the tables would stay as they are.
"""

from typing import Any

from django.apps import AppConfig
from django.core.management.base import CommandError
from django.db import connections
from django.db.migrations.loader import MigrationLoader
from django.db.models.signals import pre_migrate


def refuse_half_migrated(app: AppConfig) -> None:
    """Check the app before each `migrate`. Errors, then: `CommandError` with the migrations that lack."""

    def check(*, using: str, **_facts: Any) -> None:
        loader = MigrationLoader(connections[using])
        done = set(loader.applied_migrations)
        for (label, _name), migration in loader.replacements.items():
            missing = set(migration.replaces) - done
            if label == app.label and missing and len(missing) < len(migration.replaces):
                names = ", ".join(sorted(name for _label, name in missing))
                raise CommandError(
                    f"An older version left this database half-way: {label} lacks {names}."
                    " Migrate it with the version it was made by, then again with this one."
                )

    pre_migrate.connect(check, sender=app, weak=False, dispatch_uid=f"{app.label}.half_migrated")
