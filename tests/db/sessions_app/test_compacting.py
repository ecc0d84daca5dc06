"""Compactions of a stored session: what they cover, on which paths they apply, and what they leave alone."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest
from asgiref.sync import async_to_sync

from sessions_app.compactions.services import (
    CompactionDone,
    CompactOptions,
    SummaryAuthor,
    add_compaction,
    compact_path,
    compactions,
    edit_compaction,
    get_compaction,
    undo_compaction,
)
from sessions_app.core.compaction.compaction import CompactionResult, create_compact_function
from sessions_app.errors import CompactionFailed, CompactionInvalid, CompactionNotFound, MessageNotFound
from sessions_app.messages import selectors, services
from sessions_app.models import Compaction, CompactionTrigger, ContextChange, Message, MessageQuerySet, Session
from sessions_app.testing import make_message, make_session, text_message

pytestmark = pytest.mark.django_db(transaction=True)

FIVE = ("u: 1", "a: 2", "u: 3", "a: 4", "u: 5")
TEN = tuple(f"{'u' if number % 2 else 'a'}: {number}" for number in range(1, 11))


def read(session: Session, leaf: Any = services.Leaf.ACTIVE, **bounds: int) -> list[str]:
    """What a model reads: ids, and the texts of summaries."""
    found = selectors.model_history(session.pk, leaf=leaf, **bounds)
    return [m.parts[0]["text"] if m.id.startswith("compaction_") else m.id for m in found]


def compact(session: Session, function: Any, leaf: Any = services.Leaf.ACTIVE, **options: Any) -> CompactionDone | None:
    return async_to_sync(compact_path)(session.pk, function, leaf=leaf, options=CompactOptions(**options))


def of_range(first: str, last: str, summary: str) -> Callable[..., Awaitable[CompactionResult]]:
    async def function(history: Sequence[Any]) -> CompactionResult:
        ids = {str(m["metadata"]["compaction"]["id"]) if "compaction" in m.get("metadata", {}) else "" for m in history}
        assert ids  # it gets the history
        return CompactionResult(first_id=first, last_id=last, summary=summary)

    return function


def stored(session: Session) -> list[Any]:
    rows = Message.objects.filter(session=session).order_by("pk")
    return list(rows.values_list("pk", "message_id", "parent_id", "depth", "content", "change_seq"))


def test_a_compaction_stands_over_the_messages() -> None:
    session = make_session(*FIVE)
    before = stored(session)
    add_compaction(session.pk, first_id="u1", last_id="u3", summary="S")
    history = selectors.model_history(session.pk)
    assert read(session) == ["S", "a4", "u5"]
    assert history[0].id == f"compaction_{compactions(session.pk)[0].id}"
    assert (history[0].role, history[0].parent_id, history[0].depth) == ("assistant", None, 0)
    assert stored(session) == before
    assert [m.id for m in selectors.window(session.pk)] == ["u1", "a2", "u3", "a4", "u5"]  # people read everything


def test_overlay_needs_both_ends_on_the_path() -> None:
    session = make_session("u: 1", "a: 2", "u: 3", "a: 4")
    make_message(session, "other", role="user", after="a2", message_id="b3")
    add_compaction(session.pk, first_id="a2", last_id="u3", summary="S")
    assert read(session, "a4") == ["u1", "S", "a4"]
    assert read(session, "b3") == ["u1", "a2", "b3"]
    seen: list[list[str]] = []

    async def function(history: Sequence[Any]) -> CompactionResult:
        seen.append([m["id"] for m in history])
        return CompactionResult(first_id="a2", last_id="b3", summary="T")

    done = compact(session, function, "b3")
    assert seen == [["u1", "a2", "b3"]]
    assert done is not None
    assert (done.first_id, done.last_id) == ("a2", "b3")
    assert read(session, "b3") == ["u1", "T"]
    assert read(session, "a4") == ["u1", "S", "a4"]


def test_a_later_compaction_takes_up_the_earlier_one() -> None:
    session = make_session(*TEN)
    add_compaction(session.pk, first_id="a2", last_id="u5", summary="old")
    done = compact(session, of_range("a6", "a8", "new"))
    assert done is not None
    assert (done.first_id, done.last_id) == ("a2", "a8")
    assert read(session) == ["u1", "new", "u9", "a10"]
    again = compact(session, of_range(f"compaction_{done.compaction_id}", "u9", "newest"))
    assert again is not None
    assert (again.first_id, again.last_id) == ("a2", "u9")
    ends = Compaction.objects.values_list("first_id", "last_id")
    assert not [end for pair in ends for end in pair if end.startswith("compaction_")]
    undo_compaction(again.compaction_id)
    assert read(session) == ["u1", "new", "u9", "a10"]


def test_what_stands_between_two_summaries_is_not_swallowed() -> None:
    session = make_session(*TEN)
    add_compaction(session.pk, first_id="u1", last_id="u3", summary="first")
    compact(session, of_range("a6", "a8", "second"))
    assert read(session) == ["first", "a4", "u5", "second", "u9", "a10"]


def test_a_short_session_has_nothing_to_compact() -> None:
    session = make_session(*FIVE)

    async def never(prompt: str) -> str:
        raise AssertionError(prompt)

    assert compact(session, create_compact_function(never)) is None
    assert not Compaction.objects.exists()


def test_the_middle_is_summarised_and_head_and_tail_stay() -> None:
    session = make_session(*[f"{'u' if n % 2 else 'a'}: " + "word " * 4000 for n in range(1, 11)])
    prompts: list[str] = []

    async def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return "  the summary  "

    done = compact(session, create_compact_function(summarize), trigger=CompactionTrigger.MANUAL, model_name="m")
    assert done is not None
    assert read(session) == ["u1", "a2", "u3", "the summary", "a8", "u9", "a10"]
    assert len(prompts) == 1
    assert done.helped
    assert done.tokens_before - done.tokens_after > 20_000
    [view] = compactions(session.pk)
    assert (view.trigger, view.model_name, view.message_count) == ("manual", "m", 4)


@pytest.mark.parametrize("said", ["", "  \n", "<think>hm</think>\n"])
def test_a_blank_summary_is_refused_and_changes_nothing(said: str) -> None:
    session = make_session(*[f"{'u' if n % 2 else 'a'}: " + "word " * 4000 for n in range(1, 11)])

    async def summarize(_prompt: str) -> str:
        return said

    with pytest.raises(CompactionFailed):
        compact(session, create_compact_function(summarize))
    assert not Compaction.objects.exists()
    assert not ContextChange.objects.exists()


@pytest.mark.parametrize(("first", "last"), [("u1", "nobody"), ("nobody", "u3"), ("u5", "u1")])
def test_an_end_that_is_not_in_the_history_is_discarded(first: str, last: str) -> None:
    session = make_session(*FIVE)
    assert compact(session, of_range(first, last, "S")) is None
    assert not Compaction.objects.exists()


def test_the_later_one_wins() -> None:
    session = make_session(*TEN)
    older = add_compaction(session.pk, first_id="u1", last_id="a8", summary="older")
    add_compaction(session.pk, first_id="u1", last_id="u3", summary="later, shorter")
    assert read(session)[:2] == ["later, shorter", "a4"]
    assert get_compaction(older.id).undone_at is not None
    add_compaction(session.pk, first_id="a2", last_id="u3", summary="same end")
    assert read(session)[:3] == ["u1", "same end", "a4"]
    add_compaction(session.pk, first_id="u1", last_id="u5", summary="over all")
    assert read(session)[:2] == ["over all", "a6"]


def test_an_overlay_of_nothing_is_the_identity() -> None:
    session = make_session(*FIVE)
    plain = selectors.model_history(session.pk)
    view = add_compaction(session.pk, first_id="u1", last_id="u3", summary="S")
    undo_compaction(view.id)
    assert [m.to_ui() for m in selectors.model_history(session.pk)] == [m.to_ui() for m in plain]


def test_a_summary_is_read_edited_and_undone_with_its_history(alice: Any) -> None:
    session = make_session(*FIVE)
    view = add_compaction(session.pk, first_id="u1", last_id="u3", summary="S", author=SummaryAuthor(user_id=alice.pk))
    person = SummaryAuthor(user_id=alice.pk, via="api")
    edited = edit_compaction(view.id, "better", author=person)
    assert (edited.summary, edited.edited_at is None) == ("better", False)
    assert read(session)[0] == "better"
    undo_compaction(view.id, author=person)
    undo_compaction(view.id, author=person)
    assert compactions(session.pk) == []
    assert [each.summary for each in compactions(session.pk, with_undone=True)] == ["better"]
    sent = ContextChange.objects.order_by("id").values_list("subject", "action", "before", "after", "actor", "via")
    assert list(sent) == [
        (f"compaction:{view.id}", "add", "", "S", alice.pk, "code"),
        (f"compaction:{view.id}", "edit", "S", "better", alice.pk, "api"),
        (f"compaction:{view.id}", "undo", "better", "", alice.pk, "api"),
    ]


def test_bad_input_changes_nothing() -> None:
    session = make_session("u: 1", "a: 2", "u: 3")
    make_message(session, after="a2", message_id="b3")
    seq = Session.objects.get(pk=session.pk).change_seq
    for first, last, summary, error in (
        ("u1", "u3", " ", CompactionInvalid),
        ("u3", "u1", "S", CompactionInvalid),
        ("b3", "u3", "S", CompactionInvalid),
        ("u1", "nobody", "S", MessageNotFound),
        ("u1", "u3", "x" * 200_001, CompactionInvalid),
    ):
        with pytest.raises(error):
            add_compaction(session.pk, first_id=first, last_id=last, summary=summary)
    with pytest.raises(CompactionNotFound):
        edit_compaction("cmp_no", "S")
    with pytest.raises(CompactionNotFound):
        undo_compaction("cmp_no")
    assert not Compaction.objects.exists()
    assert Session.objects.get(pk=session.pk).change_seq == seq


def test_a_deleted_end_lets_the_messages_be_read_again() -> None:
    session = make_session(*FIVE)
    add_compaction(session.pk, first_id="a2", last_id="u3", summary="S")
    services.delete_message(session.pk, "a2")
    assert read(session) == ["u1", "u3", "a4", "u5"]


def test_clearing_deletes_summaries_and_their_history() -> None:
    session = make_session(*FIVE)
    add_compaction(session.pk, first_id="u1", last_id="u3", summary="S")
    services.clear_session(session.pk)
    assert not Compaction.objects.exists()
    assert not ContextChange.objects.exists()


def test_a_compaction_refreshes_the_frozen_prompt() -> None:
    session = make_session(*FIVE)
    services.freeze_prompt(session.pk, "old")
    add_compaction(session.pk, first_id="u1", last_id="u3", summary="S")
    session.refresh_from_db()
    assert session.system_prompt is None


def test_messages_that_go_meanwhile_leave_nothing_to_do() -> None:
    session = make_session(*FIVE)

    async def function(history: Sequence[Any]) -> CompactionResult:
        from thinkproject.kernel.aio import db

        await db(services.clear_session, session.pk)
        return CompactionResult(first_id="u1", last_id="u3", summary="S")

    assert compact(session, function) is None
    assert not Compaction.objects.exists()


def test_what_is_covered_is_not_read_and_counts_for_nothing(django_assert_num_queries: Any) -> None:
    session = make_session(*[f"{'u' if n % 2 else 'a'}: {n}" for n in range(1, 101)])
    assert read(session, max_messages=10) == [f"{'u' if n % 2 else 'a'}{n}" for n in range(91, 101)]
    add_compaction(session.pk, first_id="a4", last_id="a96", summary="S")
    with django_assert_num_queries(5):
        assert read(session, max_messages=10) == ["u1", "a2", "u3", "S", "u97", "a98", "u99", "a100"]
    assert read(session, max_messages=6) == ["u3", "S", "u97", "a98", "u99", "a100"]
    assert read(session, max_messages=5) == ["S", "u97", "a98", "u99", "a100"]
    assert read(session, max_messages=4) == ["u97", "a98", "u99", "a100"]
    plain = make_session(*FIVE)
    with django_assert_num_queries(1):
        selectors.model_history(plain.pk)


def test_what_was_out_of_reach_does_not_come_back_by_a_compaction() -> None:
    session = make_session(*[f"{'u' if n % 2 else 'a'}: {n} " + "word " * 800 for n in range(1, 61)])

    async def summarize(_prompt: str) -> str:
        return "S"

    done = compact(session, create_compact_function(summarize), max_messages=40)
    assert done is not None
    assert done.first_id == "u1"
    assert read(session, max_messages=40)[0] == "S"


def test_the_archive_stays_out_of_reach() -> None:
    session = make_session(*TEN)
    add_compaction(session.pk, first_id="a2", last_id="a6", summary="S")
    services.archive_beyond(session.pk, 6)
    assert read(session) == ["S", "u7", "a8", "u9", "a10"]
    services.archive_beyond(session.pk, 2)
    assert read(session) == ["u9", "a10"]


def test_the_write_and_what_comes_with_it_are_one() -> None:
    session = make_session(*FIVE)

    def also(_done: CompactionDone) -> None:
        raise RuntimeError("the journal refuses")

    from django.db import transaction

    with pytest.raises(RuntimeError):
        compact(session, of_range("u1", "u3", "S"), also=also, inside=transaction.atomic)
    assert not Compaction.objects.exists()


def test_a_fork_reads_its_summary_without_a_walk_up_the_shared_path(monkeypatch: pytest.MonkeyPatch) -> None:
    origin = make_session().pk
    services.append_messages(origin, [text_message("user", f"text {n}", f"m{n}") for n in range(10)])
    add_compaction(origin, first_id="m1", last_id="m7", summary="short")
    fork = services.fork_session(origin, "m9").pk
    expected = [message.parts for message in selectors.model_history(origin)]
    monkeypatch.setattr(MessageQuerySet, "named", None)
    assert [message.parts for message in selectors.model_history(fork)] == expected


def test_an_id_that_the_origin_has_elsewhere_is_not_the_one_that_was_summarised() -> None:
    """The fork's own first message is gone; one of another branch of the origin has its id and is not in the fork."""
    origin = make_session().pk
    services.append_messages(origin, [text_message("user", f"text {n}", f"m{n}") for n in range(10)])
    services.append_messages(origin, [text_message("user", "elsewhere", "x")], after="m2", shows=False)
    fork = services.fork_session(origin, "m9").pk
    services.append_messages(fork, [text_message("user", f"text {name}", name) for name in ("x", "y", "z")])
    add_compaction(fork, first_id="x", last_id="y", summary="short")
    services.delete_message(fork, "x")
    assert [message.id for message in selectors.model_history(fork)] == [*(f"m{n}" for n in range(10)), "y", "z"]
