"""The index on PostgreSQL: a generated `tsvector` column without positions, under GIN.

The words come folded and stemmed, so no text search configuration is asked and none must be installed. A phrase is
looked for by its words, and what the index finds is compared with the text.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db import connection

from sessions_app.core.search.search_query import Alternative, Phrase, Query

MANY: Final = 40_000  # estimated matches, from which on a walk over the newest rows is shorter

_NEWEST: Final = """
WITH found AS MATERIALIZED (:found:)
SELECT t.id, t.words FROM :table: t
WHERE t.ctid = ANY(ARRAY(SELECT place FROM found ORDER BY id DESC LIMIT %s)) ORDER BY t.id DESC
"""
_PENDING: Final = "WITH (gin_pending_list_limit = 256)"


class PostgresIndex:
    """`tsvector` of words and tags; a tag begins with a sign that no word has."""

    row_id = "t.id"

    def install(self, table: str, about: str) -> list[str]:
        """Statements that add the column, its index and the cascade where they are missing."""
        vector = "array_to_tsvector(string_to_array(words || ' ' || tags, ' '))"
        cascade = f"FOREIGN KEY (id) REFERENCES {about} (id) ON DELETE CASCADE"
        return [
            f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS vector tsvector GENERATED ALWAYS AS ({vector}) STORED",
            # A short list of what is not in the index yet: every search reads it.
            f"CREATE INDEX IF NOT EXISTS {table}_vector ON {table} USING gin (vector) {_PENDING}",
            f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {table}_row",
            f"ALTER TABLE {table} ADD CONSTRAINT {table}_row {cascade}",
        ]

    def remove(self, table: str, about: str) -> list[str]:  # noqa: ARG002 - the constraint's name is enough
        """Statements that remove them."""
        return [
            f"ALTER TABLE {table} DROP CONSTRAINT IF EXISTS {table}_row",
            f"ALTER TABLE {table} DROP COLUMN IF EXISTS vector",
        ]

    def select(self, table: str, query: Query, tags: Sequence[Sequence[str]]) -> tuple[str, list[Any]]:
        """SQL whose tsquery names words and tags; phrases are compared besides."""
        words = " | ".join(map(_loose, query.alternatives))
        groups = (" | ".join(f"'{tag}'" for tag in group) for group in tags)
        vector = " & ".join(f"({part})" for part in [words, *groups])
        sql = f"SELECT t.id, t.words FROM {table} t WHERE t.vector @@ %s::tsquery"  # noqa: S608 - a constant
        params: list[Any] = [vector]
        if any(len(phrase) > 1 for each in query.alternatives for phrase in (*each.wanted, *each.unwanted)):
            exact = [_exact(each) for each in query.alternatives]
            sql += f" AND ({' OR '.join(text for text, _ in exact)})"
            params += [value for _, values in exact for value in values]
        return sql, params

    def newest(self, table: str, found: tuple[str, list[Any]], limit: int) -> tuple[str, list[Any]]:
        """SQL that asks the index for all matches, or where they are many, walks the table from its end.

        The planner would walk too soon: it takes comparing a vector to cost next to nothing. Only ids are sorted, as
        the texts would not fit into memory; their rows are then read where they lie, which is safe within a statement.
        They are named as an array, because for a join the planner may read the whole table.
        """
        sql, params = found
        with connection.cursor() as cursor:
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
            [plan] = cursor.fetchone()[0]
        if plan["Plan"]["Plan Rows"] > MANY:
            return f"{sql} ORDER BY t.id DESC LIMIT %s", [*params, limit]
        places = sql.replace("t.id, t.words", "t.id, t.ctid AS place", 1)
        return _NEWEST.replace(":found:", places).replace(":table:", table), [*params, limit]


def _loose(each: Alternative) -> str:
    """The part of an alternative that can be expressed without the order of words."""
    wanted = [f"'{word}'" for phrase in each.wanted for word in phrase]
    unwanted = [f"!'{phrase[0]}'" for phrase in each.unwanted if len(phrase) == 1]
    return f"({' & '.join([*wanted, *unwanted])})"


def _exact(each: Alternative) -> tuple[str, list[Any]]:
    """A whole alternative, on the text."""
    has = "strpos(' ' || t.words || ' ', %s) > 0"
    terms = [has] * len(each.wanted) + [f"NOT {has}"] * len(each.unwanted)
    return f"({' AND '.join(terms)})", [_needle(phrase) for phrase in (*each.wanted, *each.unwanted)]


def _needle(phrase: Phrase) -> str:
    return f" {' '.join(phrase)} "
