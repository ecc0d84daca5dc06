"""Rows made from rows by one statement, without a way through Python."""

from typing import Any

from django.db import connection, models
from django.db.models import QuerySet


def insert_from(
    rows: QuerySet[Any], model: type[models.Model], values: dict[str, Any], *, ignores_conflicts: bool = False
) -> None:
    """`INSERT INTO … SELECT …`, which the ORM cannot say: it compiles the SELECT. `values`: by attribute name.

    `ignores_conflicts`: rows that are there already stay as they are. The selection needs a condition, or SQLite takes
    the conflict clause for part of a join.
    """
    columns = {field.attname: field.column for field in model._meta.concrete_fields}
    selected = rows.order_by().annotate(**{f"new_{name}": value for name, value in values.items()})
    query, params = selected.values_list(*(f"new_{name}" for name in values)).query.sql_with_params()
    listed = ", ".join(f'"{columns[name]}"' for name in values)
    ending = " ON CONFLICT DO NOTHING" if ignores_conflicts else ""
    with connection.cursor() as cursor:
        cursor.execute(f'INSERT INTO "{model._meta.db_table}" ({listed}) {query}{ending}', params)
