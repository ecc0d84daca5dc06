"""The archive of a long path and the frozen prompt: kept, not shown."""

import pytest

from sessions_app.messages import selectors, services
from sessions_app.models import Message, Session
from sessions_app.testing import make_message, make_session, text_message

from .conftest import Ids

pytestmark = pytest.mark.django_db

THREE_TURNS = ("u: one", "a: 1", "u: two", "a: 2", "u: three", "a: 3")


def test_the_oldest_are_out_of_reach_and_kept(path: Ids) -> None:
    session = make_session(*THREE_TURNS)
    assert services.archive_beyond(session.pk, 4) is True
    assert path(session.pk) == ["u3", "a4", "u5", "a6"]
    assert [m.id for m in selectors.window(session.pk)] == ["u3", "a4", "u5", "a6"]
    assert [m.id for m in selectors.model_history(session.pk, leaf="u5")] == ["u3", "a4", "u5"]
    assert selectors.count_path(session.pk) == 4
    assert Message.objects.filter(session=session).count() == 6


def test_pages_end_where_the_archive_begins() -> None:
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, 4)
    newest = selectors.path_page(session.pk, limit=2)
    oldest = selectors.path_page(session.pk, before="u5", limit=2)
    assert (newest.has_more, oldest.has_more) == (True, False)
    assert [m.id for m in oldest.messages] == ["u3", "a4"]
    assert selectors.path_page(session.pk, before="u3").messages == []


@pytest.mark.parametrize(("limit", "first"), [(6, "u1"), (5, "u3"), (3, "u5"), (1, "u1")])
def test_what_stays_begins_at_a_users_message(limit: int, first: str, path: Ids) -> None:
    """Without a user's message among the newest nothing is archived: the answer alone says nothing."""
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, limit)
    assert path(session.pk)[0] == first


def test_archiving_again_changes_nothing() -> None:
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, 2)
    seq = Session.objects.get(pk=session.pk).change_seq
    assert services.archive_beyond(session.pk, 2) is False
    assert services.archive_beyond(session.pk, 4) is False
    assert Session.objects.get(pk=session.pk).change_seq == seq


def test_a_branch_that_begins_in_the_archive_brings_it_back(path: Ids) -> None:
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, 2)
    make_message(session, "other", role="assistant", after="u1", message_id="b")
    assert path(session.pk) == ["u1", "b"]


def test_deleting_neither_hides_what_was_shown_nor_empties_the_path(path: Ids) -> None:
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, 2)
    services.delete_message(session.pk, "a2")
    assert path(session.pk) == ["u5", "a6"]
    services.delete_message(session.pk, "a6")
    services.delete_message(session.pk, "u5")
    assert path(session.pk) == ["a4"]


def test_a_fork_keeps_the_archive_of_its_origin(path: Ids) -> None:
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, 4)
    assert path(services.fork_session(session.pk, "u5").pk) == ["u3", "a4", "u5"]
    assert path(services.fork_session(session.pk, "a2").pk) == ["a2"]


def test_clearing_forgets_archive_and_prompt(path: Ids) -> None:
    session = make_session(*THREE_TURNS)
    services.archive_beyond(session.pk, 2)
    services.freeze_prompt(session.pk, "Be brief.")
    services.clear_session(session.pk)
    services.append_messages(session.pk, [text_message("user", "again", "n1")])
    assert path(session.pk) == ["n1"]
    session.refresh_from_db()
    assert session.system_prompt is None


def test_the_first_frozen_prompt_wins_and_an_empty_one_is_one() -> None:
    session = make_session()
    assert services.freeze_prompt(session.pk, "") == ""
    assert services.freeze_prompt(session.pk, "later") == ""
    session.refresh_from_db()
    assert session.system_prompt == ""
    assert services.freeze_prompt(session.pk, "nul \0 here", replace=True) == "nul \0 here"
