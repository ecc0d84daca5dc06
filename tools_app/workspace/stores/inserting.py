"""Rows made from rows by one statement, without a way through Python."""

from typing import Any

from django.db import connection, models
from django.db.models import QuerySet


def insert_from(
    rows: QuerySet[Any], model: type[models.Model], values: dict[str, Any], *, on_conflict: str = ""
) -> None:
    """`INSERT INTO … SELECT …`, which the ORM cannot say: it compiles the SELECT. `values`: by attribute name.

    `on_conflict`: the clause behind it. The selection needs a condition then, or SQLite takes it for part of a join.
    """
    columns = {field.attname: field.column for field in model._meta.concrete_fields}
    selected = rows.order_by().annotate(**{f"new_{name}": value for name, value in values.items()})
    query, params = selected.values_list(*(f"new_{name}" for name in values)).query.sql_with_params()
    listed = ", ".join(f'"{columns[name]}"' for name in values)
    with connection.cursor() as cursor:
        cursor.execute(f'INSERT INTO "{model._meta.db_table}" ({listed}) {query} {on_conflict}', params)
