"""Django's `flush`, which may empty the tables whose rows are otherwise only added."""

from contextlib import nullcontext
from typing import Any

from django.core.management.commands import flush
from django.db import connections

from thinkproject.kernel.append_only import SWITCH, erasing


class Command(flush.Command):
    """Empties every table."""

    def handle(self, **options: Any) -> None:
        """Ask, and empty them in one transaction."""
        alias = options["database"]
        is_ours = SWITCH in connections[alias].introspection.table_names()
        with erasing(alias) if is_ours else nullcontext():
            super().handle(**options)
