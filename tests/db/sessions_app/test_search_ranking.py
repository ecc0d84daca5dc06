"""Which matches come first, and how much a page of them reads: alike on both databases."""

import math
from typing import Any

import pytest
from django.db import connection
from django.db.backends.utils import CursorWrapper

from sessions_app.messages import services
from sessions_app.models import Session
from sessions_app.search import query as search_query
from sessions_app.search.query import search
from sessions_app.testing import make_session, text_message

pytestmark = pytest.mark.django_db

LIMIT = 5


class Read:
    """What came out of the database: rows, and characters of their texts."""

    def __init__(self) -> None:
        self.rows = 0
        self.characters = 0

    def count(self, rows: Any) -> Any:
        for row in rows:
            self.rows += 1
            self.characters += sum(len(value) for value in row if isinstance(value, str))
        return rows

    def cursor(self, cursor: Any, name: str | None = None) -> "CountingCursor":
        del name
        return CountingCursor(cursor, self)


class CountingCursor(CursorWrapper):
    """A cursor that counts what is fetched."""

    def __init__(self, cursor: Any, read: Read) -> None:
        super().__init__(cursor, connection)
        self.read = read

    def fetchone(self) -> Any:
        row = self.cursor.fetchone()
        self.read.count([] if row is None else [row])
        return row

    def fetchmany(self, size: int = 1) -> Any:
        return self.read.count(self.cursor.fetchmany(size))

    def fetchall(self) -> Any:
        return self.read.count(self.cursor.fetchall())

    def __iter__(self) -> Any:
        return iter(self.fetchall())


def order(query: str, *texts: str) -> list[int]:
    """The numbers of the texts in the order in which they are found."""
    session = session_of(*texts)
    return [int(hit.message_id) for hit in search(query, session_id=session.pk).hits]


def session_of(*texts: str) -> Session:
    session = services.create_session()
    services.append_messages(session.pk, [text_message("user", text, str(at)) for at, text in enumerate(texts)])
    return session


def pages(session: Session, limit: int) -> list[str]:
    seen: list[str] = []
    cursor: str | None = ""
    while cursor is not None:
        page = search("bike", session_id=session.pk, limit=limit, cursor=cursor)
        seen += [hit.message_id for hit in page.hits]
        cursor = page.next_cursor
    return seen


def test_more_often_comes_first() -> None:
    assert order("bike", "a bike is here", "bike and bike", "a house is here") == [1, 0]


def test_in_less_text_comes_first() -> None:
    assert order("bike", "a bike " + "and much else " * 9, "a bike") == [1, 0]


def test_the_rarer_word_counts_more() -> None:
    assert order("red OR bike", "red door", "red book", "red bird", "old bike")[0] == 3


def test_equals_come_newest_first() -> None:
    assert order("bike", "a bike", "a bike", "a bike") == [2, 1, 0]


def bm25(texts: list[str], words: list[str]) -> dict[str, float]:
    """The textbook formula, for texts whose words never stand twice in a row. A text is as long as its characters."""
    sizes = [len(text) + 2 for text in texts]
    average = sum(sizes) / len(sizes)
    scores = dict.fromkeys(map(str, range(len(texts))), 0.0)
    for word in words:
        counts = [text.split().count(word) for text in texts]
        having = sum(map(bool, counts))
        rarity = math.log(1 + (len(texts) - having + 0.5) / (having + 0.5))
        for at, count in enumerate(counts):
            scores[str(at)] += rarity * count * 2.2 / (count + 1.2 * (0.25 + 0.75 * sizes[at] / average))
    return scores


def test_scores_are_those_of_bm25() -> None:
    texts = ["bike or bike", "bike red", "red door and red roof and red sun", "bike of straw"]
    hits = search("bike OR red", session_id=session_of(*texts).pk).hits
    assert {hit.message_id: hit.score for hit in hits} == pytest.approx(bm25(texts, ["bike", "red"]))


def test_pages_together_are_the_whole_order() -> None:
    session = session_of(*["bike " * (1 + number % 4) + "and else " * (number % 3) for number in range(30)])
    assert pages(session, 7) == pages(session, 100)
    assert len(set(pages(session, 7))) == 30


@pytest.mark.parametrize("chars", [10, 20_000])
def test_a_page_reads_as_much_whatever_matches(monkeypatch: pytest.MonkeyPatch, chars: int) -> None:
    text = "bike " + "and so on " * (chars // 10)
    reads = []
    for matches in (LIMIT + 1, 10 * LIMIT):
        session = session_of(*[text] * matches)
        read = Read()
        with monkeypatch.context() as patch:
            patch.setattr(connection, "make_cursor", read.cursor)
            assert len(search("bike", session_id=session.pk, limit=LIMIT).hits) == LIMIT
        reads.append(read)
    few, many = reads
    assert few.rows == many.rows
    assert many.characters < LIMIT * (len(text) + 500) + 20_000
    assert abs(many.characters - few.characters) < 1_000


def test_a_hit_has_the_beginning_of_its_text() -> None:
    session = make_session("u: bike " + "and so on " * 1_000)
    [hit] = search("bike", session_id=session.pk).hits
    assert len(hit.text) == search_query.TEXT_CHARS
