"""Writers that meet, on real threads and connections."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from sessions_app.core.messages import shapes
from sessions_app.core.messages.parts import Result, apply_result
from sessions_app.errors import SessionError
from sessions_app.messages import selectors, services
from sessions_app.messages.services import Leaf
from sessions_app.models import Message, Session
from sessions_app.testing import make_message, make_session, text_message
from tests.db.races import together

pytestmark = pytest.mark.django_db(transaction=True)


def user(message_id: str) -> shapes.Message:
    return text_message("user", message_id, message_id)


def test_two_appends_never_fork_the_path_silently() -> None:
    session = make_session("u: hi")

    def append(worker: int) -> Callable[[], None]:
        def work() -> None:
            for number in range(8):
                services.append_messages(session.pk, [user(f"w{worker}-{number}")])

        return work

    assert together(*[append(worker) for worker in range(4)]) == []
    page = selectors.path_page(session.pk, limit=100)
    assert len(page.messages) == 33
    assert [m.depth for m in page.messages] == list(range(33))
    for worker in range(4):
        mine = [m.id for m in page.messages if m.id.startswith(f"w{worker}")]
        assert mine == [f"w{worker}-{number}" for number in range(8)]
    session.refresh_from_db()
    assert session.change_seq == 33
    assert sorted(Message.objects.values_list("change_seq", flat=True)) == list(range(1, 34))


def test_the_same_message_from_two_tabs_is_stored_once() -> None:
    session = make_session()
    works = [lambda: services.queue_messages(session.pk, [user("same")]) for _ in range(4)]
    assert together(*works) == []
    assert Message.objects.count() == 1
    session.refresh_from_db()
    assert session.change_seq == 1


def test_two_results_for_one_message_never_overwrite_each_other() -> None:
    session = make_session("u: hi")
    calls: list[shapes.Part] = [
        {"type": "tool-t", "toolCallId": f"c{n}", "state": "input-available", "input": {}} for n in range(6)
    ]
    make_message(session, role="assistant", message_id="a1", parts=calls)

    def settle(number: int) -> Callable[[], object]:
        return lambda: services.update_message(
            session.pk, "a1", lambda m: apply_result(m, f"c{number}", Result(output=number))
        )

    assert together(*[settle(number) for number in range(6)]) == []
    stored = selectors.find_messages(session.pk, ["a1"])["a1"]
    assert [part["output"] for part in stored.parts] == list(range(6))


def test_a_message_is_placed_once_by_racing_turns() -> None:
    session = make_session("u: hi", "a: hello")
    services.queue_messages(session.pk, [user("q1"), user("q2")])
    works = [lambda: services.place_messages(session.pk, ["q1", "q2"], after=Leaf.ACTIVE) for _ in range(4)]
    assert together(*works) == []
    assert [m.id for m in selectors.path_page(session.pk).messages] == ["u1", "a2", "q1", "q2"]


def test_clearing_and_writing_leave_no_half_of_either() -> None:
    for _ in range(5):
        session = make_session("u: hi", "a: hello")
        answer = text_message("assistant", "late", "late")
        errors = together(
            lambda s=session: services.clear_session(s.pk),  # type: ignore[misc]  # a default binds the loop's value
            lambda s=session, m=answer: services.put_assistant(s.pk, m, after="u1"),  # type: ignore[misc]  # as above
        )
        assert all(isinstance(error, SessionError) for error in errors)
        assert Message.objects.filter(session=session).count() == 0
        assert selectors.window(session.pk) == []


def test_forking_and_deleting_leave_a_whole_fork_or_none() -> None:
    for _ in range(5):
        session = make_session("u: hi", "a: hello")
        errors = together(
            lambda s=session: services.fork_session(s.pk, "a2"),  # type: ignore[misc]  # as above
            lambda s=session: services.delete_session(s.pk),  # type: ignore[misc]  # as above
        )
        assert all(isinstance(error, SessionError) for error in errors)
        assert not Session.objects.filter(pk=session.pk).exists()
        forks = Session.objects.exclude(forked_from=None)
        assert len(forks) == 1 - len(errors)
        for fork in forks:
            assert [m.id for m in selectors.path_page(fork.pk).messages] == ["u1", "a2"]
            services.delete_session(fork.pk)
        assert Message.objects.count() == 0


def test_a_reader_never_sees_an_unfinished_write() -> None:
    session = make_session("u: hi")
    seen: list[list[str]] = []
    inside, done = threading.Event(), threading.Event()

    def write() -> None:
        with transaction.atomic():
            services.append_messages(session.pk, [user("n1"), user("n2")])
            inside.set()
            done.wait(10)

    def read() -> None:
        inside.wait(10)
        seen.append([m.id for m in selectors.window(session.pk)])
        done.set()

    assert together(write, read) == []
    assert seen == [["u1"]]
    assert [m.id for m in selectors.window(session.pk)] == ["u1", "n1", "n2"]


def test_a_message_that_is_placed_while_the_window_is_read_is_in_it_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clients replace their list by the window, so a message that it leaves out vanishes from the screen."""
    for first in ("queued", "_shown"):
        session = make_session("u: hi", "a: hello")
        services.queue_messages(session.pk, [user("next")])
        read = getattr(selectors, first)
        was_placed: list[str] = []

        def read_then_place(
            *args: Any, read: Any = read, session: Session = session, was_placed: list[str] = was_placed, **named: Any
        ) -> Any:
            found = read(*args, **named)
            if not was_placed:
                was_placed.append("next")
                services.place_messages(session.pk, ["next"], after=Leaf.ACTIVE)
            return found

        with monkeypatch.context() as patch:
            patch.setattr(selectors, first, read_then_place)
            shown = [message.id for message in selectors.window(session.pk)]
        assert was_placed
        assert shown.count("next") == 1
