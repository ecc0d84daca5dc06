"""What opening, reading and writing a conversation costs at 1,000, 10,000 and 100,000 messages.

    python -m bench.sessions             (SQLite)
    TEST_DATABASE=postgres python -m bench.sessions

Everything that people wait for must cost the page, not the history: the last column is the figure at the largest size
over the one at the smallest. What removes a history costs the history, and is marked.
"""

import os
import platform
import shutil
import sqlite3
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "thinkproject.settings_test")
django.setup()

from django.conf import settings  # noqa: E402 - after the set-up
from django.core.management.color import no_style  # noqa: E402 - after the set-up
from django.db import connection  # noqa: E402 - after the set-up
from django.utils import timezone  # noqa: E402 - after the set-up

from bench.rig import Options  # noqa: E402 - after the set-up
from bench.rows import Row  # noqa: E402 - after the set-up
from sessions_app.compactions.services import add_compaction  # noqa: E402 - after the set-up
from sessions_app.core.messages import shapes  # noqa: E402 - after the set-up
from sessions_app.core.messages.messages import to_content  # noqa: E402 - after the set-up
from sessions_app.messages import selectors, services  # noqa: E402 - after the set-up
from sessions_app.models import Message, Session  # noqa: E402 - after the set-up
from thinkproject.config.paths import private_directory  # noqa: E402 - after the set-up
from thinkproject.kernel.ids import new_id  # noqa: E402 - after the set-up
from thinkproject.kernel.jsonvalue import byte_size  # noqa: E402 - after the set-up

SIZES = (1_000, 10_000, 100_000)
ROUNDS = 41
TEXT = "A sentence of an ordinary length, as people and models write them all day long. " * 4


def message(role: str, message_id: str = "") -> shapes.Message:
    return {"id": message_id or new_id("msg"), "role": role, "parts": [{"type": "text", "text": TEXT}]}


def long_session(count: int, name: str) -> str:
    """Store one straight conversation of so many messages."""
    session = services.create_session(name=name)
    last = Message.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
    roles = ("user", "assistant")
    rows = []
    for index in range(count):
        ui = message(roles[index % 2], f"{name}-{index}")
        rows.append(
            Message(
                pk=last + index + 1,
                session=session,
                message_id=ui["id"],
                parent_id=last + index if index else None,
                depth=index,
                role=ui["role"],
                content=to_content(ui),
                byte_size=byte_size(ui),
                placed_at=timezone.now(),
            )
        )
    Message.objects.bulk_create(rows, batch_size=2000)
    Session.objects.filter(pk=session.pk).update(active_leaf_id=rows[-1].pk)
    with connection.cursor() as cursor:
        for sql in connection.ops.sequence_reset_sql(no_style(), [Message]):
            cursor.execute(sql)
    return session.pk


def answer_of(message_id: str) -> Callable[[shapes.Message], shapes.Message]:
    return lambda ui: {**ui, "parts": [{"type": "text", "text": f"{TEXT} {message_id} {time.perf_counter_ns()}"}]}


def cases(session_id: str, name: str, count: int) -> dict[str, Callable[[], object]]:
    """What is measured, in the order of the table."""
    page = [f"{name}-{index}" for index in range(count - 50, count)]
    shown = [f"{name}-{index}" for index in range(max(0, count - 500), count)]
    fork = services.fork_session(session_id, f"{name}-{count - 20}").pk
    return {
        "page: newest 50": lambda: selectors.path_page(session_id),
        "page: 50 from the middle": lambda: selectors.path_page(session_id, before=f"{name}-{count // 2}"),
        "path: 2,000 messages for a model": lambda: selectors.model_history(session_id),
        "path of a fork: 2,000 messages for a model": lambda: selectors.model_history(fork),
        "window: 500 messages": lambda: selectors.window(session_id),
        "window of a fork": lambda: selectors.window(fork),
        "find 500 ids and an unknown one": lambda: selectors.find_messages(session_id, [*shown, "unknown"]),
        "find 500 ids in a fork": lambda: selectors.find_messages(fork, [*shown, "unknown"]),
        "siblings of 50": lambda: selectors.siblings(session_id, page),
        "siblings of 50 in a fork": lambda: selectors.siblings(fork, page),
        "page with the root": lambda: selectors.path_page(session_id, before=f"{name}-50"),
        "siblings of 50 with the root": lambda: selectors.siblings(session_id, [f"{name}-{n}" for n in range(50)]),
        "answered: 500": lambda: selectors.answered(session_id, shown),
        "is on path: 50 up": lambda: selectors.is_on_path(session_id, page[0]),
        "count": lambda: selectors.count_path(session_id),
        "append a message": lambda: services.append_messages(session_id, [message("user")]),
        "queue and place a message": lambda: queue_and_place(session_id),
        "fork near the end": lambda: services.fork_session(session_id, page[-1]),
        "fork in the middle": lambda: services.fork_session(session_id, f"{name}-{count // 2}"),
        "fork of a fork": lambda: services.fork_session(fork, f"{name}-{count // 2}"),
        "put an answer": lambda: services.put_assistant(session_id, message("assistant"), after=page[-1]),
        "change a message": lambda: services.update_message(session_id, page[0], answer_of(page[0])),
        "select a leaf near the end": lambda: services.select_leaf(session_id, page[-1]),
    }


def summarised(session_id: str, name: str, count: int) -> dict[str, Callable[[], object]]:
    """The same where all but the first three messages and the last thirty have been summarised, again and again."""
    for last in range(count // 20, count - 30, count // 20):
        add_compaction(session_id, first_id=f"{name}-3", last_id=f"{name}-{last}", summary=TEXT)
    add_compaction(session_id, first_id=f"{name}-3", last_id=f"{name}-{count - 30}", summary=TEXT)
    fork = services.fork_session(session_id, f"{name}-{count - 5}").pk
    return {
        "summarised: path for a model": lambda: selectors.model_history(session_id, leaf=f"{name}-{count - 1}"),
        "summarised: path of a fork for a model": lambda: selectors.model_history(fork),
        "summarised: fork near the end": lambda: services.fork_session(session_id, f"{name}-{count - 5}"),
    }


def queue_and_place(session_id: str) -> None:
    ids = services.queue_messages(session_id, [message("user")])
    services.place_messages(session_id, ids, after=services.Leaf.ACTIVE)


def median_ms(call: Callable[[], object], rounds: int = ROUNDS) -> float:
    times = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        times.append((time.perf_counter() - started) * 1000)
    return statistics.median(times)


def whole_history(session_id: str, name: str) -> dict[str, float]:
    """What costs the history by its nature, once each."""
    return {
        "select a leaf from the root": median_ms(lambda: services.select_leaf(session_id, f"{name}-0"), 1),
        "clear, all kept for a fork": median_ms(lambda: services.clear_session(session_id), 1),
        "delete unreached": median_ms(lambda: delete_forks(name), 1),
    }


def delete_forks(name: str) -> None:
    for session_id in Session.objects.filter(name=name, forked_from__isnull=False).values_list("pk", flat=True):
        services.delete_session(session_id)


@contextmanager
def database() -> Iterator[None]:
    private_directory(settings.TEST_DIR)
    name = settings.DATABASES["default"]["NAME"]
    connection.creation.create_test_db(verbosity=0, autoclobber=True)
    try:
        yield
    finally:
        connection.creation.destroy_test_db(name, verbosity=0)
        shutil.rmtree(settings.TEST_DIR, ignore_errors=True)


def measure(sizes: Sequence[int] = SIZES, rounds: int = ROUNDS) -> dict[str, list[float]]:
    table: dict[str, list[float]] = {}
    for count in sizes:
        name = f"s{count}"
        session_id = long_session(count, name)
        if connection.vendor == "postgresql":  # which would do so on its own in time; SQLite goes without statistics
            with connection.cursor() as cursor:
                cursor.execute("ANALYZE")
        for make in (cases, summarised):
            for title, call in make(session_id, name, count).items():
                call()
                table.setdefault(title, []).append(median_ms(call, rounds))
    for count in sizes:
        session = Session.objects.filter(name=f"s{count}", forked_from=None).values_list("pk", flat=True).get()
        for title, value in whole_history(session, f"s{count}").items():
            table.setdefault(f"{title} (whole history)", []).append(value)
    return table


def run(options: Options) -> list[Row]:
    """Measure a short form; returns the table's rows."""
    sizes = (60, 120) if options.is_smoke else (1_000, 10_000)
    with database():
        table = measure(sizes, 3 if options.is_smoke else 15)
    return [
        Row(what=f"{title}, of {sizes[-1]:,} (of {sizes[0]:,}: {short:.2f})", unit="ms", median=long)
        for title, (short, long) in table.items()
    ]


def main() -> None:
    """Measure and print the table."""
    with database():
        print(f"{connection.vendor}, Django {django.__version__}, Python {platform.python_version()}, ", end="")
        print(f"SQLite {sqlite3.sqlite_version}, median of {ROUNDS}, ms")
        print(f"{'':46}" + "".join(f"{size:>10,}" for size in SIZES) + f"{'ratio':>8}")
        for title, values in measure().items():
            ratio = values[-1] / values[0]
            print(f"{title:46}" + "".join(f"{value:10.2f}" for value in values) + f"{ratio:8.1f}", flush=True)


if __name__ == "__main__":
    main()
