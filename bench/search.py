"""What a search costs among 1,000, 10,000, 100,000 and 1,000,000 messages, and what the index costs.

    python -m bench.search [--most 1000000]             (SQLite)
    TEST_DATABASE=postgres python -m bench.search
    python -m bench.search --ranking 600                (before and after: ranking in Python, and in the database)

Messages of 40 words, a thousand in a session, all of one owner: so the owner narrows nothing. Words are as frequent as
in a language. The goal is 50 ms where less than one in a hundred messages matches; "the" is in all of them.
"""

import argparse
import os
import platform
import random
import sqlite3
import statistics
import time
import tracemalloc
from collections.abc import Callable, Iterator

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.contrib.auth.models import User  # noqa: E402 - after the set-up
from django.core.management.color import no_style  # noqa: E402 - after the set-up
from django.db import connection  # noqa: E402 - after the set-up
from django.utils import timezone  # noqa: E402 - after the set-up

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row  # noqa: E402 - after the set-up
from bench.sessions import database  # noqa: E402 - after the set-up
from sessions_app.core.messages.messages import to_content  # noqa: E402 - after the set-up
from sessions_app.core.search.search_query import parse_query  # noqa: E402 - after the set-up
from sessions_app.messages import services  # noqa: E402 - after the set-up
from sessions_app.models import Message, MessageWords, Session  # noqa: E402 - after the set-up
from sessions_app.search.engine import Within, best_matches, engine  # noqa: E402 - after the set-up
from sessions_app.search.indexing import fill_messages  # noqa: E402 - after the set-up
from sessions_app.search.ordering import HitsPage  # noqa: E402 - after the set-up
from sessions_app.search.query import search  # noqa: E402 - after the set-up
from sessions_app.testing import text_message  # noqa: E402 - after the set-up
from thinkproject.kernel.jsonvalue import byte_size  # noqa: E402 - after the set-up

SIZES = (1_000, 10_000, 100_000, 1_000_000)
IN_A_SESSION = 1_000
ROUNDS = 15
GOAL_MS = 50.0
RARE = {"quokka": 10_000, "wombat": 1_000, "koala": 110, "ferret": 105}  # a word, and one of how many messages has it
VOCABULARY = [
    first + vowel + last
    for vowel in ("a", "e", "i", "o", "u", "ou")
    for first in "bdfgklmnprst"
    for last in ("lan", "ric", "tem", "von", "sil", "dor", "pas", "mir")
]


def texts(start: int, stop: int) -> Iterator[str]:
    """Texts of 40 words; the tenth word is a tenth as frequent as the first."""
    chance = random.Random(start)
    weights = [1 / rank for rank in range(1, len(VOCABULARY) + 1)]
    for number in range(start, stop):
        words = ["the", *chance.choices(VOCABULARY, weights, k=39)]
        words += [word for word, of in RARE.items() if number % of == of // 2]
        yield " ".join(words)


def add_sessions(owner_id: int, start: int, stop: int) -> int:
    """Store so many messages as straight sessions, past the services and the index. Returns the last id before."""
    last = Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    for first in range(start, stop, IN_A_SESSION):
        session = services.create_session(owner_id=owner_id, scope=f"scope-{first}")
        rows = []
        for number, text in enumerate(texts(first, first + IN_A_SESSION)):
            ui = text_message(("user", "assistant")[number % 2], text, f"m{first + number}")
            rows.append(
                Message(
                    pk=last + first - start + number + 1,
                    session=session,
                    message_id=ui["id"],
                    parent_id=last + first - start + number if number else None,
                    depth=number,
                    role=ui["role"],
                    content=to_content(ui),
                    byte_size=byte_size(ui),
                    placed_at=timezone.now(),
                )
            )
        Message.objects.bulk_create(rows, batch_size=1_000)
        Session.objects.filter(pk=session.pk).update(active_leaf_id=rows[-1].pk)
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), [Message]):
            cursor.execute(sql)
    return last


def cases(owner_id: int, session_id: str, number: int) -> dict[str, Callable[[], object]]:
    """What is measured, in the order of the table."""

    def among(query: str) -> Callable[[], object]:
        return lambda: search(query, owner_id=owner_id)

    return {
        "1 of 10,000 messages": among("quokka"),
        "1 of 1,000": among("wombat"),
        "1 of 110": among("koala"),
        "1 of 110, and all": among("koala the"),
        "1 of 110, or 1 of 105": among("koala OR ferret"),
        "1 of 110, not the commonest name": among(f"koala -{VOCABULARY[0]}"),
        "phrase of the two commonest": among(f'"{VOCABULARY[0]} {VOCABULARY[1]}"'),
        "all messages (newest 5,000 ranked)": among("the"),
        "all messages, in one session": lambda: search("the", session_id=session_id),
        "all messages, in one scope": lambda: search("the", scopes=[f"scope-{number}"]),
        "1 of 110, second page": lambda: search("koala", owner_id=owner_id, cursor=search_cursor(owner_id)),
        "nothing": among("aardvark"),
        "append a message": lambda: services.append_messages(session_id, [text_message("user", next(texts(0, 1)))]),
    }


def search_cursor(owner_id: int) -> str:
    """The cursor of a second page; measured with it."""
    return search("koala", owner_id=owner_id).next_cursor or ""


def median_ms(call: Callable[[], object], rounds: int) -> float:
    times = []
    for _ in range(rounds):
        began = time.perf_counter()
        call()
        times.append((time.perf_counter() - began) * 1000)
    return statistics.median(times)


def measure(sizes: tuple[int, ...], rounds: int) -> Iterator[tuple[int, dict[str, float]]]:
    """The figures of each size."""
    owner_id = User.objects.create_user("bench").pk
    there = 0
    for size in sizes:
        last = add_sessions(owner_id, there, size)
        began = time.perf_counter()
        done = sum(count for _, count in fill_messages(Message.objects, after=last))
        spent = time.perf_counter() - began
        with connection.cursor() as cursor:
            cursor.execute("ANALYZE")
        session = Session.objects.get(scope=f"scope-{size - IN_A_SESSION}")
        figures = {
            title: median_ms(call, rounds) for title, call in cases(owner_id, session.pk, size - IN_A_SESSION).items()
        }
        yield size, {**figures, "index 1,000 messages": spent * 1_000_000 / done}
        there = size


def rank_in_python(model_rows: int) -> int:
    """How a page was ranked before: the words of every match come to Python. Returns the characters that were read."""
    query = parse_query("quokka")
    index, table = engine(), MessageWords._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(*index.newest(table, index.select(table, query, ()), model_rows))
        found = [f" {words} " for _, words in cursor.fetchall()]
    counts = [text.count(" quokka ") for text in found]
    average = sum(map(len, found)) / len(found)
    sorted(
        count / (count + 1.2 * (0.25 + 0.75 * len(text) / average)) for count, text in zip(counts, found, strict=True)
    )
    return sum(map(len, found))


def rank_in_database(model_rows: int) -> int:
    """How it is ranked now. Returns the characters of text that were read: none."""
    page = HitsPage(limit=20, of_newest=model_rows)
    best_matches(MessageWords, parse_query("quokka"), Within(tags=[]), page)
    return 0


def compare_ranking(matches: int) -> None:
    """Print time, memory and characters of the two, where so many long messages match."""
    session = services.create_session()
    body = " ".join(texts_of_one(15_000))
    for first in range(0, matches, 50):
        numbers = range(first, min(first + 50, matches))
        services.append_messages(session.pk, [text_message("user", f"quokka {body}", f"m{at}") for at in numbers])
    print(f"{connection.vendor}, {matches} matches of 15,000 words, a page of 20, median of 5")
    print(f"{'':10}{'ms':>10}{'peak, MB':>12}{'characters':>14}")
    for title, call in (("before", rank_in_python), ("now", rank_in_database)):
        spent = median_ms(lambda call=call: call(matches + 1), 5)  # type: ignore[misc]  # bound at once
        tracemalloc.start()
        characters = call(matches + 1)
        peak = tracemalloc.get_traced_memory()[1] / 1_000_000
        tracemalloc.stop()
        print(f"{title:10}{spent:>10.1f}{peak:>12.2f}{characters:>14,}", flush=True)


def texts_of_one(words: int) -> list[str]:
    """The words of one long message."""
    return random.Random(words).choices(VOCABULARY, k=words)


def run(options: Options) -> list[Row]:
    """The figures as rows of the big table: the largest size that a run by the way can make."""
    sizes, rounds = ((1_000,), 3) if options.is_smoke else (SIZES[:3], ROUNDS)
    with database():
        *_, (size, figures) = measure(sizes, rounds)
    return [
        Row(what=f"{title}; {size:,} messages", unit="ms", median=value, goal=GOAL_MS if "1 of" in title else None)
        for title, value in figures.items()
    ]


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=SIZES[-1])
    parser.add_argument("--ranking", type=int, default=0)
    given = parser.parse_args()
    sizes = tuple(size for size in SIZES if size <= given.most)
    with database():
        if given.ranking:
            compare_ranking(given.ranking)
            return
        print(f"{connection.vendor}, Django {django.__version__}, Python {platform.python_version()}, ", end="")
        print(f"SQLite {sqlite3.sqlite_version}, median of {ROUNDS}, ms", flush=True)
        for size, figures in measure(sizes, ROUNDS):
            for title, value in figures.items():
                print(f"{size:>10,}  {title:46}{value:10.2f}", flush=True)


if __name__ == "__main__":
    main()
