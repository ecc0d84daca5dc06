"""The order of matches and their pages, in SQL that both databases understand.

The built-in functions of the two (`bm25`, `ts_rank_cd`) order differently, and the same search must find the same on
both. So BM25 is written out here over numbers that the database counts. The texts never leave it, and a page reads its
own rows alone.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from sessions_app.core.search.search_query import Phrase

Sql: TypeAlias = tuple[str, list[Any]]

SATURATION: Final = 1.2  # the two constants of BM25: how soon another occurrence stops to count,
LENGTH_WEIGHT: Final = 0.75  # and how much a long text loses

# An occurrence is counted by what its removal takes away; a space stands around each word.
_COUNTED: Final = """
SELECT id, length(words) + 2 AS size, :counts: FROM (:newest:) matching
"""
_COUNT: Final = "(length(words) + 2 - length(replace(' ' || words || ' ', %s, ''))) / :length: AS count_:number:"
_RARITY: Final = """
ln(1 + (count(*) - sum(CASE WHEN count_:number: > 0 THEN 1 ELSE 0 END) + CAST(0.5 AS double precision))
     / (sum(CASE WHEN count_:number: > 0 THEN 1 ELSE 0 END) + 0.5)) AS rarity_:number:
"""
_SCORE: Final = """
s.rarity_:number: * k.count_:number: * CAST(:most: AS double precision) / (k.count_:number:
    + CAST(:saturation: AS double precision) * (:rest: + :length_weight: * k.size / s.average))
"""
_PAGE: Final = """
WITH found AS (SELECT * FROM (:found:) merged ORDER BY id DESC LIMIT :found_limit:),
kept AS (SELECT * FROM found ORDER BY id DESC LIMIT :of_newest:),
numbers AS (SELECT CAST(avg(size) AS double precision) AS average, :rarities: FROM kept),
scored AS (SELECT k.id, :score: AS score FROM kept k CROSS JOIN numbers s),
placed AS (SELECT id, score, row_number() OVER (ORDER BY score DESC, id DESC) AS place FROM scored)
SELECT f.newest, f.total, p.id, p.score, p.place
FROM (SELECT max(id) AS newest, count(*) AS total FROM found) f
LEFT JOIN (
    SELECT id, score, place FROM placed
    WHERE place > coalesce((SELECT place FROM placed WHERE id = :last:), :given:) ORDER BY place LIMIT :limit:
) p ON 1 = 1
ORDER BY p.place
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HitsPage:
    """Condition for the next page: after the row `last`, or if it is gone, after the first `given`."""

    limit: int
    of_newest: int
    given: int = 0
    last: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """Scores and row ids of one page, best first and newest first among equals.

    `end` is the number of matches up to here. `newest` is the newest match of all.
    """

    rows: list[tuple[float, int]]
    end: int
    newest: int | None
    has_more: bool
    is_cut: bool


def page_sql(found: Sequence[Sql], phrases: Sequence[Phrase], page: HitsPage) -> Sql:
    """SQL for one page of the results of several queries for `id` and `words`, with one extra row."""
    needles = [f" {' '.join(phrase)} " for phrase in phrases]
    counts = ", ".join(_filled(_COUNT, number=at, length=len(needle)) for at, needle in enumerate(needles))
    counted = [_filled(_COUNTED, counts=counts, newest=sql) for sql, _ in found]
    constants = {
        "most": SATURATION + 1,
        "saturation": SATURATION,
        "rest": 1 - LENGTH_WEIGHT,
        "length_weight": LENGTH_WEIGHT,
    }
    sql = _filled(
        _PAGE,
        found=" UNION ".join(counted),
        found_limit=page.of_newest + 1,
        of_newest=page.of_newest,
        rarities=", ".join(_filled(_RARITY, number=at) for at in range(len(needles))),
        score=" + ".join(_filled(_SCORE, number=at, **constants) for at in range(len(needles))),
        last=page.last,
        given=page.given,
        limit=page.limit + 1,
    )
    return sql, [value for _, params in found for value in (*needles, *params)]


def read_page(rows: Sequence[tuple[Any, ...]], page: HitsPage) -> Ranked:
    """Decode the rows of such a query."""
    newest, total = rows[0][:2]
    given = [row for row in rows if row[2] is not None]
    shown = given[: page.limit]
    return Ranked(
        rows=[(score, row_id) for _, _, row_id, score, _ in shown],
        end=shown[-1][4] if shown else page.given,
        newest=newest,
        has_more=len(given) > len(shown),
        is_cut=total > page.of_newest,
    )


def _filled(template: str, **values: object) -> str:
    for name, value in values.items():
        template = template.replace(f":{name}:", str(value))
    return template
