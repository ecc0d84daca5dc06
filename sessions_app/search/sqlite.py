"""The index on SQLite: FTS5 over the table of words, kept in step by triggers.

The words come folded and stemmed, so the plain `ascii` tokenizer is enough: it splits at spaces and leaves every other
character alone, whatever version of Unicode SQLite knows.
"""

from collections.abc import Sequence
from typing import Any, Final

from django.db.backends.base.base import BaseDatabaseWrapper

from sessions_app.core.search.search_query import Alternative, Phrase, Query

_INSTALL: Final = (
    """CREATE VIRTUAL TABLE IF NOT EXISTS :table:_fts USING fts5(
        words, tags, content=':table:', content_rowid='id', columnsize=0, tokenize='ascii'
    )""",
    """CREATE TRIGGER IF NOT EXISTS :table:_added AFTER INSERT ON :table: BEGIN :add: END""",
    """CREATE TRIGGER IF NOT EXISTS :table:_taken AFTER DELETE ON :table: BEGIN :take: END""",
    """CREATE TRIGGER IF NOT EXISTS :table:_changed AFTER UPDATE ON :table: BEGIN :take: :add: END""",
    """CREATE TRIGGER IF NOT EXISTS :table:_erased AFTER DELETE ON :about: BEGIN
        DELETE FROM :table: WHERE id = old.id;
    END""",
)
_ADD: Final = "INSERT INTO :table:_fts(rowid, words, tags) VALUES (new.id, new.words, new.tags);"
_TAKE: Final = (
    "INSERT INTO :table:_fts(:table:_fts, rowid, words, tags) VALUES ('delete', old.id, old.words, old.tags);"
)

# CROSS JOIN: the index first, never the table.
_SELECT: Final = """
SELECT t.id, t.words FROM :table:_fts f CROSS JOIN :table: t ON t.id = f.rowid WHERE f.:table:_fts MATCH %s
"""


class SqliteIndex:
    """FTS5 without a copy of the text and without sizes: ranking is done elsewhere."""

    row_id = "f.rowid"

    def install(self, table: str, about: str) -> list[str]:
        """Statements that make the index and its triggers where they are missing."""
        filled = (text.replace(":add:", _ADD).replace(":take:", _TAKE) for text in _INSTALL)
        return [text.replace(":table:", table).replace(":about:", about) for text in filled]

    def remove(self, table: str, about: str) -> list[str]:  # noqa: ARG002 - the trigger's name is enough
        """Statements that remove them."""
        names = ("erased", "changed", "taken", "added")
        return [*(f"DROP TRIGGER IF EXISTS {table}_{name}" for name in names), f"DROP TABLE IF EXISTS {table}_fts"]

    def select(self, table: str, query: Query, tags: Sequence[Sequence[str]]) -> tuple[str, list[Any]]:
        """SQL whose MATCH names words and tags, so that a narrow search reads only what both have."""
        words = " OR ".join(map(_alternative, query.alternatives))
        groups = (" OR ".join(f'"{tag.removeprefix("@")}"' for tag in group) for group in tags)
        sql = _SELECT.replace(":table:", table)
        return sql, [" AND ".join([f"(words : ({words}))", *(f"(tags : ({group}))" for group in groups)])]

    def newest(self, table: str, found: tuple[str, list[Any]], limit: int) -> tuple[str, list[Any]]:  # noqa: ARG002 - the index says it all
        """SQL that walks the index from its end."""
        sql, params = found
        return f"{sql} ORDER BY f.rowid DESC LIMIT %s", [*params, limit]


def mend_triggers(database: BaseDatabaseWrapper, tables: dict[str, str]) -> None:
    """Make triggers that are gone: Django changes a table on SQLite by making it anew, which loses them."""
    existing = set(database.introspection.table_names())
    with database.cursor() as cursor:
        for table, about in tables.items():
            if {f"{table}_fts", table, about} <= existing:
                for statement in SqliteIndex().install(table, about):
                    cursor.execute(statement)


def _alternative(each: Alternative) -> str:
    wanted = " AND ".join(map(_phrase, each.wanted))
    if not each.unwanted:
        return f"({wanted})"
    return f"(({wanted}) NOT ({' OR '.join(map(_phrase, each.unwanted))}))"


def _phrase(phrase: Phrase) -> str:
    return '"' + " ".join(phrase) + '"'
