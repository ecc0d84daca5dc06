"""A table of a developer's own, which the product knows nothing of: calls of tools, and questions for an agent."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from django.db import connection, models
from django.test.utils import isolate_apps

with isolate_apps("django.contrib.auth"):

    class DeskCall(models.Model):
        """A call, or a question."""

        name = models.CharField(max_length=64, default="")
        args = models.JSONField(default=dict)
        status = models.CharField(max_length=16, default="pending")
        result = models.JSONField(null=True)
        error = models.TextField(default="")

        class Meta:
            app_label = "auth"
            db_table = "desk_call"

        if TYPE_CHECKING:
            objects: models.Manager["DeskCall"]


def waiting() -> "models.QuerySet[DeskCall]":
    """Rows that wait."""
    return DeskCall.objects.filter(status="pending")


@contextmanager
def desk_table() -> Iterator[None]:
    """Have the table for as long as the block."""
    with connection.schema_editor() as editor:
        editor.create_model(DeskCall)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            editor.delete_model(DeskCall)
