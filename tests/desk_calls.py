"""Tables of a developer's own, which the product knows nothing of: calls, which may be questions, and chunks."""

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

    class DeskPiece(models.Model):
        """A chunk of an answer."""

        answer = models.CharField(max_length=64)
        number = models.PositiveIntegerField()
        kind = models.CharField(max_length=40)
        text = models.TextField(default="")

        class Meta:
            app_label = "auth"
            db_table = "desk_piece"
            constraints = [models.UniqueConstraint(fields=["answer", "number"], name="desk_piece_number")]

        if TYPE_CHECKING:
            objects: models.Manager["DeskPiece"]


def waiting() -> "models.QuerySet[DeskCall]":
    """Rows that wait."""
    return DeskCall.objects.filter(status="pending")


@contextmanager
def desk_table() -> Iterator[None]:
    """Have the tables for as long as the block."""
    tables = (DeskCall, DeskPiece)
    with connection.schema_editor() as editor:
        for model in tables:
            editor.create_model(model)
    try:
        yield
    finally:
        with connection.schema_editor() as editor:
            for model in tables:
                editor.delete_model(model)
