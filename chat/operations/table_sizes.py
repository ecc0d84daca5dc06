"""Sizes of the database's tables in bytes, with indexes. Row counts are estimates."""

from dataclasses import dataclass
from typing import Any, Final

from django.apps import apps
from django.db import OperationalError, connection, models

MAX_READ: Final = 4 * 1024**3  # SQLite reads the whole file for it; a larger one is left out

_POSTGRES: Final = """
SELECT c.relname, pg_total_relation_size(c.oid), pg_indexes_size(c.oid), c.reltuples::bigint
FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p') AND n.nspname = ANY(current_schemas(false))
"""

# Pages of a table and of its indexes, which say whose they are.
_SQLITE: Final = """
SELECT s.tbl_name, SUM(d.pgsize), SUM(CASE s.type WHEN 'index' THEN d.pgsize ELSE 0 END)
FROM dbstat d JOIN sqlite_master s ON s.name = d.name
WHERE d.aggregate = TRUE GROUP BY s.tbl_name
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSize:
    """A table. `what`: the rows in it, in words; `row_estimate`: nothing where the database has no idea yet."""

    table: str
    what: str
    byte_size: int
    index_bytes: int
    row_estimate: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseSize:
    """The whole database, largest table first. `problem`: why the sizes of the tables are unknown."""

    tables: list[TableSize]
    byte_size: int
    problem: str = ""


def database_size() -> DatabaseSize:
    """Measure the database. Costs a look at its catalogue; on SQLite a read of the file, up to 4 GiB."""
    measure = _of_postgres if connection.vendor == "postgresql" else _of_sqlite
    return measure(_words())


def _of_postgres(what: dict[str, str]) -> DatabaseSize:
    rows = _fetch(_POSTGRES)
    [(total,)] = _fetch("SELECT pg_database_size(current_database())")
    tables = [
        TableSize(
            table=table,
            what=what.get(table, ""),
            byte_size=int(size),
            index_bytes=int(indexes),
            row_estimate=None if estimate < 0 else int(estimate),
        )
        for table, size, indexes, estimate in rows
    ]
    return DatabaseSize(tables=_largest_first(tables), byte_size=int(total))


def _of_sqlite(what: dict[str, str]) -> DatabaseSize:
    [(pages,)], [(page_size,)] = _fetch("PRAGMA page_count"), _fetch("PRAGMA page_size")
    total = pages * page_size
    if total > MAX_READ:
        return DatabaseSize(tables=[], byte_size=total, problem="The file is too large to be read for this.")
    try:
        rows = _fetch(_SQLITE)
    except OperationalError:
        return DatabaseSize(tables=[], byte_size=total, problem="This SQLite was built without its table of sizes.")
    tables = [
        TableSize(
            table=table,
            what=what.get(table, ""),
            byte_size=int(size),
            index_bytes=int(indexes),
            row_estimate=_last_row(table) if table in what else None,
        )
        for table, size, indexes in rows
    ]
    return DatabaseSize(tables=_largest_first(tables), byte_size=total)


def _last_row(table: str) -> int | None:
    """The number of the newest row: there were never more rows than that. One look-up."""
    try:
        [(last,)] = _fetch(f"SELECT MAX(rowid) FROM {connection.ops.quote_name(table)}")  # noqa: S608 - a model's table
    except OperationalError:  # a table without row numbers
        return None
    return int(last or 0)


def _words() -> dict[str, str]:
    return {model._meta.db_table: _word(model) for model in apps.get_models(include_auto_created=True)}


def _word(model: type[models.Model]) -> str:
    """The name of a table. Django names those between two others in English, so these are named after their field."""
    owner: Any = model._meta.auto_created
    if not owner:
        return str(model._meta.verbose_name_plural)
    field = next(field for field in owner._meta.many_to_many if field.remote_field.through is model)
    return f"{owner._meta.verbose_name_plural}: {field.verbose_name}"


def _largest_first(tables: list[TableSize]) -> list[TableSize]:
    return sorted(tables, key=lambda each: (-each.byte_size, each.table))


def _fetch(sql: str) -> list[Any]:
    with connection.cursor() as cursor:
        cursor.execute(sql)
        return list(cursor.fetchall())
