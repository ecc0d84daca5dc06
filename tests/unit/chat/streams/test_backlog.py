"""A writer's buffer: merging before offsets, and what each tier lacks."""

from chat.core.wire import chunks
from chat.streams.records import Record
from chat.streams.writing.backlog import MAX_MERGES, Backlog
from thinkproject.kernel.jsonvalue import load


def make_backlog(count: int = 0) -> Backlog:
    backlog = Backlog()
    for number in range(count):
        backlog.add(chunks.text_delta(f"t{number}", "x"))
    backlog.assign()
    return backlog


def test_adjacent_deltas_become_one_record() -> None:
    backlog = Backlog()
    for word in ("a", "b", "c"):
        backlog.add(chunks.text_delta("t1", word))
    backlog.add(chunks.text_end("t1"))
    assert backlog.next_offset == 2
    backlog.assign()
    assert [load(text) for text in backlog.held] == [chunks.text_delta("t1", "abc"), chunks.text_end("t1")]


def test_a_delta_never_joins_a_record_that_has_its_offset() -> None:
    backlog = Backlog()
    backlog.add(chunks.text_delta("t1", "a"))
    backlog.assign()
    backlog.add(chunks.text_delta("t1", "b"))
    backlog.assign()
    assert [load(text)["delta"] for text in backlog.held] == ["a", "b"]


def test_a_record_holds_a_bounded_number_of_deltas() -> None:
    backlog = Backlog()
    for _ in range(2 * (MAX_MERGES + 1)):
        backlog.add(chunks.text_delta("t1", "x"))
    backlog.assign()
    assert [len(load(text)["delta"]) for text in backlog.held] == [MAX_MERGES + 1] * 2


def test_a_record_leaves_when_both_tiers_have_it() -> None:
    backlog = make_backlog(4)
    backlog.sent(3)
    assert len(backlog.held) == 4
    backlog.stored(2, is_hot_down=False)
    assert (backlog.base, len(backlog.held), backlog.unsent()) == (2, 2, (3, backlog.held[1:]))
    assert [record.offset for record in backlog.unstored()] == [2, 3]
    assert backlog.held_size == sum(map(len, backlog.held))


def test_records_that_the_hot_log_lacks_stay_although_they_are_stored() -> None:
    backlog = make_backlog(4)
    backlog.stored(4, is_hot_down=False)
    assert backlog.unsent() == (0, backlog.held)
    assert backlog.waiting == 0


def test_a_hot_log_that_is_down_gets_nothing_that_is_stored() -> None:
    backlog = make_backlog(4)
    backlog.stored(4, is_hot_down=True)
    assert (backlog.held, backlog.held_size, backlog.unsent()) == ([], 0, (4, []))
    assert backlog.next_offset == 4


def test_everything_held_is_sent_again_after_a_loss() -> None:
    backlog = make_backlog(4)
    backlog.sent(4)
    backlog.stored(1, is_hot_down=False)
    backlog.forget_sent()
    assert backlog.unsent() == (1, backlog.held)


def test_a_takeover_holds_what_the_database_lacks() -> None:
    backlog = Backlog()
    backlog.begin(7, ('"a"', '"b"'))
    assert (backlog.next_offset, backlog.waiting, backlog.unsent()) == (9, 0, (9, []))
    assert backlog.unstored() == [Record(7, '"a"'), Record(8, '"b"')]
