"""Segments in the database."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from chat.models import AgentInstance, StreamSegment, Turn
from chat.streams.logs import database_log
from chat.streams.logs.database_log import (
    SEGMENT_BYTES,
    archive,
    cold_page,
    cold_records,
    next_cold_offset,
    prune_segments,
    write_missing,
    write_segments,
)
from chat.streams.records import Record
from fibers.models import Fiber
from sessions_app.models import Session
from tests.db.chat.streams.support import records

pytestmark = pytest.mark.django_db

DAY = 86_400.0


def make_turn(owner: User, *, finished_days_ago: float | None) -> Turn:
    instance, _ = AgentInstance.objects.get_or_create(owner=owner, agent="a", name="n")
    count = Turn.objects.count()
    finished = None if finished_days_ago is None else timezone.now() - timedelta(days=finished_days_ago)
    return Turn.objects.create(
        instance=instance,
        session=Session.objects.create(owner=owner),
        fiber=Fiber.objects.create(name="chat.turn"),
        position=count,
        request_id=f"r{count}",
        trigger="submit-message",
        generation=0,
        assistant_id=f"msg_{count}",
        finished_at=finished,
    )


def make_segment(stream: str, *, days_old: float = 0.0, first: int = 0, count: int = 3) -> None:
    write_segments(stream, records(count, start=first))
    made = timezone.now() - timedelta(days=days_old)
    StreamSegment.objects.filter(stream=stream, first_offset=first).update(created_at=made)


def test_segments_read_back_as_records() -> None:
    make_segment("trn_x", first=0, count=3)
    make_segment("trn_x", first=3, count=4)
    make_segment("trn_y", first=0, count=1)
    assert cold_records("trn_x", 0, 100) == records(7)
    assert cold_records("trn_x", 2, 3) == records(3, start=2)
    assert cold_records("trn_x", 7, 3) == []
    assert [next_cold_offset(name) for name in ("trn_x", "trn_y", "trn_z")] == [7, 1, 0]


def test_odd_text_survives() -> None:
    odd = '"\\u0000 \\ud800 ü 🙂 \u2028\u0085\r \\n"'
    write_segments("trn_x", [Record(0, odd), Record(1, odd)])
    assert cold_records("trn_x", 0, 9) == [Record(0, odd), Record(1, odd)]


def test_large_runs_become_several_rows() -> None:
    big = "x" * (SEGMENT_BYTES // 2)
    write_segments("trn_x", [Record(number, big) for number in range(5)])
    rows = StreamSegment.objects.order_by("first_offset").values_list("first_offset", "last_offset")
    assert list(rows) == [(0, 1), (2, 3), (4, 4)]
    assert len(cold_records("trn_x", 0, 9)) == 5


def test_an_offset_is_written_once() -> None:
    make_segment("trn_x", count=3)
    with pytest.raises(IntegrityError), transaction.atomic():
        make_segment("trn_x", count=5)
    write_missing("trn_x", records(5))
    archive("trn_x", records(6))
    archive("trn_x", records(6))
    assert cold_records("trn_x", 0, 9) == records(6)


def test_pruning_takes_final_turns_after_the_retention_only(alice: User) -> None:
    turns = {age: make_turn(alice, finished_days_ago=age) for age in (None, 0.5, 2.0)}
    for turn in turns.values():
        make_segment(turn.pk, days_old=3)
    make_segment("trn_whose_turn_is_gone", days_old=3)
    make_segment("trn_of_nobody_yet", days_old=0)
    assert prune_segments(retention_seconds=DAY) == 2
    left = set(StreamSegment.objects.values_list("stream", flat=True))
    assert left == {turns[None].pk, turns[0.5].pk, "trn_of_nobody_yet"}
    assert prune_segments(retention_seconds=DAY) == 0


def test_pruning_goes_in_bounded_steps(alice: User) -> None:
    turn = make_turn(alice, finished_days_ago=2)
    for first in range(5):
        make_segment(turn.pk, days_old=3, first=first, count=1)
    assert [prune_segments(retention_seconds=DAY, max_rows=2) for _ in range(3)] == [2, 2, 1]


def test_reading_a_page_is_one_query(django_assert_num_queries: object) -> None:
    for first in range(0, 100, 5):
        make_segment("trn_x", first=first, count=5)
    with django_assert_num_queries(1):  # type: ignore[operator]  # pytest-django's fixture has no public type
        assert len(cold_records("trn_x", 40, 20)) == 20


@pytest.mark.parametrize("at_once", [1, 2, 100])
@pytest.mark.parametrize("offset", [0, 1, 4, 5, 13, 19, 20, 25])
def test_a_page_says_where_the_log_ends_too(monkeypatch: pytest.MonkeyPatch, at_once: int, offset: int) -> None:
    monkeypatch.setattr(database_log, "SEGMENTS_PER_QUERY", at_once)
    for first in range(0, 20, 5):
        write_segments("trn_x", records(5, start=first), epoch=f"life-{first // 10}")
    for limit in (1, 7, 100):
        page = cold_page("trn_x", offset, limit)
        assert page.records == cold_records("trn_x", offset, limit)
        assert (page.end, page.epoch) == (20, "life-1")
    assert cold_page("trn_z", offset, 5) == ([], 0, None)


def test_a_page_of_a_log_without_its_beginning_starts_later() -> None:
    write_segments("trn_x", records(5, start=10))
    assert cold_page("trn_x", 3, 100) == (records(5, start=10), 15, None)


def test_a_page_and_the_end_of_the_log_are_one_query(django_assert_num_queries: object) -> None:
    for first in range(0, 100, 5):
        make_segment("trn_x", first=first, count=5)
    with django_assert_num_queries(1):  # type: ignore[operator]  # as above
        assert len(cold_page("trn_x", 40, 20).records) == 20
