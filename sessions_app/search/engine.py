"""The search engine's interface, and the choice of the database's implementation.

A search back end stores nothing itself: it keeps a full-text index over a table of `IndexedText` and turns a query into
SQL. Ranking and paging (`ordering.py`) and snippets are the same for all.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from django.db import connection, connections

from sessions_app.core.search.search_query import Query
from sessions_app.models import EntryWords, IndexedText, MessageWords
from sessions_app.search import postgres, sqlite
from sessions_app.search.ordering import HitsPage, Ranked, Sql, page_sql, read_page

TABLES: Final = {
    MessageWords._meta.db_table: "think_sessions_message",
    EntryWords._meta.db_table: "think_sessions_contextentry",
}
"""The tables of words, and the table whose rows each one is about."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Within:
    """Scope of a search: rows with one tag of each group, and those of the SQL `also`."""

    tags: Sequence[Sequence[str]]
    also: Sql | None = None
    newest: int | None = None  # nothing above this id
    only: Sql | None = None  # a condition on the row `about` that the words are of


class Engine(Protocol):
    """A full-text index of one kind of database."""

    def install(self, table: str, about: str) -> list[str]:
        """Statements that make the index over a table and keep it in step, and do nothing where it is there."""

    def remove(self, table: str, about: str) -> list[str]:
        """Statements that take back what `install` made."""

    def select(self, table: str, query: Query, tags: Sequence[Sequence[str]]) -> Sql:
        """SQL up to its WHERE, selecting `id` and `words` of matches; conditions may be appended."""

    def newest(self, table: str, found: Sql, limit: int) -> Sql:
        """SQL for the newest of what such a SQL finds, newest first."""

    @property
    def row_id(self) -> str:
        """The id's name in the conditions of `select`."""


def engine() -> Engine:
    """The index of the database that is used."""
    return postgres.PostgresIndex() if connection.vendor == "postgresql" else sqlite.SqliteIndex()


def mend_index(using: str, **_: object) -> None:
    """After migrations: see to it that the index is still kept in step."""
    if connections[using].vendor == "sqlite":
        sqlite.mend_triggers(connections[using], TABLES)


def _bounds(row_id: str, about: str, within: Within) -> Sql:
    """The conditions of a place that hold for all of its rows, to be appended to a WHERE."""
    condition, bound = ("", []) if within.newest is None else (f" AND {row_id} <= %s", [within.newest])
    if within.only is None:
        return condition, bound
    sql, params = within.only
    # By the key of each match: what matches the words is the shorter list.
    exists = f" AND EXISTS (SELECT 1 FROM {about} about WHERE about.id = {row_id} AND {sql})"  # noqa: S608 - own names
    return condition + exists, [*bound, *params]


def best_matches(model: type[IndexedText], query: Query, within: Within, page: HitsPage) -> Ranked:
    """One page of the newest matches, best first. The texts stay in the database, which counts and sorts.

    One query, two where the place names further rows, and the estimate of each on PostgreSQL.
    """
    index, table = engine(), model._meta.db_table
    condition, bound = _bounds(index.row_id, TABLES[table], within)
    places = [(within.tags, (condition, bound))]
    if within.also is not None:
        sql, params = within.also
        # The sign keeps the database from looking the words up row by row: what matches is the shorter list.
        places.append(((), (f"{condition} AND +{index.row_id} IN ({sql})", [*bound, *params])))
    found = []
    for tags, (more, values) in places:
        sql, params = index.select(table, query, tags)
        found.append(index.newest(table, (sql + more, [*params, *values]), page.of_newest + 1))
    with connection.cursor() as cursor:
        cursor.execute(*page_sql(found, query.phrases, page))
        return read_page(cursor.fetchall(), page)
