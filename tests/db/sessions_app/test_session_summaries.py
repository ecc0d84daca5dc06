"""Summaries of sessions for people, and what a session has changed (B5.5): rows, without a model."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User

from sessions_app.compactions.services import add_compaction
from sessions_app.compactions.summaries import (
    MAX_CHARS,
    Material,
    find_summary,
    read_material,
    store_summary,
    write_summary,
)
from sessions_app.context import diffs, store
from sessions_app.context.diffs import session_diff
from sessions_app.context.history import ContextActor, ContextOwner
from sessions_app.core.context.context_blocks import Entry
from sessions_app.errors import ExportInvalid, SummaryInvalid
from sessions_app.messages import services
from sessions_app.messages.derived import forget_summary
from sessions_app.messages.sessions import session_info
from sessions_app.models import ContextChange, Session, SessionSummary
from sessions_app.public.manager import SessionManager
from sessions_app.testing import make_message, make_session, text_message
from sessions_app.transfer.export import export_lines, export_markdown
from sessions_app.transfer.import_session import import_session
from thinkproject.kernel.append_only import erasing

pytestmark = pytest.mark.django_db


@pytest.fixture
def session() -> Session:
    return make_session("u: one", "a: two", scope="s")


def material(session: Session, *, afresh: bool = False) -> Material:
    found = read_material(session.pk, afresh=afresh)
    assert found is not None
    return found


def ids(found: Material | None) -> list[str]:
    return [] if found is None else [message.id for message in found.messages]


def is_current(session: Session) -> bool:
    found = find_summary(session.pk)
    assert found is not None
    return found.is_current


def summarise(session: Session, text: str = "About tea.", *, afresh: bool = False) -> bool:
    return store_summary(session.pk, text, material=material(session, afresh=afresh), model_name="m/x", afresh=afresh)


def test_a_summary_covers_the_shown_path(session: Session) -> None:
    assert find_summary(session.pk) is None
    assert summarise(session)
    found = find_summary(session.pk)
    assert found is not None
    assert (found.text, found.model_name, found.leaf_id) == ("About tea.", "m/x", "a2")
    assert found.is_current
    assert not found.is_own
    assert read_material(session.pk) is None  # nothing new
    assert session_info(session.pk).summary == "About tea."


def test_what_is_new_is_added_to_the_former_summary(session: Session) -> None:
    summarise(session)
    services.append_messages(session.pk, [text_message("user", "three", "u3")])
    assert not is_current(session)
    found = material(session)
    assert (found.previous, ids(found)) == ("About tea.", ["u3"])
    assert ids(material(session, afresh=True)) == ["u1", "a2", "u3"]
    assert material(session, afresh=True).previous == ""


def test_an_answer_that_has_grown_is_new(session: Session) -> None:
    summarise(session)
    services.put_assistant(session.pk, text_message("assistant", "two and a half", "a2"), after="u1")
    assert not is_current(session)
    assert ids(material(session)) == ["a2"]


def test_another_branch_is_sent_from_its_beginning(session: Session) -> None:
    summarise(session)
    make_message(session, "other", role="assistant", after="u1", message_id="b2")
    services.select_leaf(session.pk, "b2")
    found = material(session)
    assert (found.previous, ids(found)) == ("", ["u1", "b2"])
    services.select_leaf(session.pk, "a2")
    assert read_material(session.pk) is None


def test_a_person_s_own_words_stay(session: Session, alice: User) -> None:
    summarise(session)
    known = material(session, afresh=True)
    own = write_summary(session.pk, " Mine. ", user_id=alice.pk)
    assert (own.text, own.is_own, own.is_current) == ("Mine.", True, True)
    services.append_messages(session.pk, [text_message("user", "three", "u3")])
    assert read_material(session.pk) is None
    assert not store_summary(session.pk, "Another", material=known, model_name="m")
    assert summarise(session, "Asked for", afresh=True)
    assert session_info(session.pk).summary == "Asked for"


@pytest.mark.parametrize("text", ["", " \n", "\0", "x" * (MAX_CHARS + 1)])
def test_a_wrong_text_is_refused_and_changes_nothing(session: Session, text: str) -> None:
    with pytest.raises(SummaryInvalid):
        write_summary(session.pk, text)
    assert not SessionSummary.objects.exists()


def test_it_is_no_change_of_the_conversation(session: Session) -> None:
    session.refresh_from_db()
    before = (session.change_seq, session.updated_at)
    summarise(session)
    write_summary(session.pk, "Mine")
    forget_summary(session.pk)
    session.refresh_from_db()
    assert (session.change_seq, session.updated_at) == before


def test_deleting_messages_deletes_their_records(session: Session) -> None:
    known = material(session)
    services.delete_messages(session.pk, ["a2"])
    assert not store_summary(session.pk, "Tells of a2", material=known, model_name="m")
    summarise(session)
    services.delete_messages(session.pk, ["u1"])
    assert find_summary(session.pk) is None
    write_summary(session.pk, "Mine")
    make_message(session, "again", message_id="u9")
    services.delete_messages(session.pk, ["u9"])
    assert find_summary(session.pk) is not None  # a person's own words tell what that person wants
    services.clear_session(session.pk)
    assert find_summary(session.pk) is None
    assert read_material(session.pk) is None


def test_a_fork_begins_without_one(session: Session) -> None:
    summarise(session)
    assert find_summary(services.fork_session(session.pk, "u1").pk) is None


def test_it_goes_out_and_comes_in(session: Session) -> None:
    summarise(session, "About\ntea.")
    lines = list(export_lines(session.pk))
    made = import_session(lines)
    assert list(export_lines(made.session_id))[1:] == lines[1:]
    found = find_summary(made.session_id)
    assert found is not None
    assert (found.text, found.is_current) == ("About\ntea.", True)
    assert "".join(export_markdown(session.pk)).startswith("> About\n> tea.\n\n## User")
    twice = [*lines[:-1], lines[-2], lines[-1]]
    with pytest.raises(ExportInvalid, match="one summary at most"):
        import_session(twice)
    for wrong in ('{"kind":"summary"}\n', '{"kind":"summary","text":7}\n', '{"kind":"summary","text":" "}\n'):
        with pytest.raises(ExportInvalid):
            import_session([*lines[:-2], wrong, lines[-1]])


def test_a_session_as_code_holds_it() -> None:
    handle = SessionManager(scope="s").create("tea")
    handle.append("One?")
    assert handle.summary() is None
    assert handle.write_summary("About tea.").text == "About tea."
    store.write_text(ContextOwner(session_id=handle.id), "notes", lambda _: "a\nb")
    assert (handle.diff().additions, handle.diff().deletions) == (2, 0)


# What a session has changed


def put(session: Session, label: str, text: str) -> None:
    store.write_text(ContextOwner(session_id=session.pk), label, lambda _: text)


def test_the_diff_is_what_was_before_against_what_is_now(session: Session) -> None:
    put(session, "notes", "tea")
    put(session, "notes", "tea\ncake")
    put(session, "plan", "one")
    store.put_entry(ContextOwner(session_id=session.pk), "docs", Entry(key="k", content="x"))
    store.delete_entry(ContextOwner(session_id=session.pk), "docs", "k")
    put(session, "plan", "two")
    found = session_diff(session.pk)
    assert [(each.label, each.key, each.of, each.status) for each in found.documents] == [
        ("plan", None, "session", "added"),
        ("notes", None, "session", "added"),
    ]
    assert found.documents[1].diff.patch == "@@ -0,0 +1,2 @@\n+tea\n+cake"
    assert (found.additions, found.deletions, found.is_cut) == (3, 0, False)


def test_modified_and_deleted(session: Session) -> None:
    store.put_entry(ContextOwner(session_id=session.pk), "docs", Entry(key="k", content="x\ny"))
    put(session, "notes", "a\nb")
    # What was there before this session said anything: as an import leaves it.
    with erasing():
        ContextChange.objects.all().delete()
    store.delete_entry(ContextOwner(session_id=session.pk), "docs", "k")
    put(session, "notes", "a\nc")
    assert {(each.label, each.key): each.status for each in session_diff(session.pk).documents} == {
        ("docs", "k"): "deleted",
        ("notes", None): "modified",
    }
    assert (session_diff(session.pk).additions, session_diff(session.pk).deletions) == (1, 3)


def test_of_the_user_s_memory_only_what_this_session_changed(session: Session, alice: User) -> None:
    mine, elsewhere = ContextOwner(owner_id=alice.pk), make_session("u: else")
    here = ContextActor(via="model", session_id=session.pk)

    def write(text: str, by: ContextActor) -> None:
        store.write_text(mine, "memory", lambda _: text, by=by)

    write("old", ContextActor())
    write("old\nhere", here)
    write("old\nhere\nthere", replace(here, session_id=elsewhere.pk))
    write("old\nhere\nthere\nagain", here)
    [found] = session_diff(session.pk).documents
    assert (found.label, found.of, found.status) == ("memory", "user", "modified")
    assert (found.diff.additions, found.diff.deletions) == (2, 0)
    assert "+there" not in found.diff.patch
    assert [each.diff.additions for each in session_diff(elsewhere.pk).documents] == [1]
    services.delete_session(elsewhere.pk)
    assert session_diff(session.pk).additions == 2


def test_a_session_and_its_user_may_have_blocks_of_one_name(session: Session, alice: User) -> None:
    put(session, "notes", "a")
    here = ContextActor(session_id=session.pk)
    store.write_text(ContextOwner(owner_id=alice.pk), "notes", lambda _: "a\nb", by=here)
    sent = session_diff(session.pk).documents
    assert [(each.label, each.of, each.diff.additions) for each in sent] == [
        ("notes", "user", 2),
        ("notes", "session", 1),
    ]


def test_compactions_are_no_change_of_what_is_remembered(session: Session) -> None:
    add_compaction(session.pk, first_id="u1", last_id="a2", summary="short")
    assert session_diff(session.pk).documents == []


def test_reverted_or_erased_changes_are_not_in_the_diff(session: Session) -> None:
    put(session, "notes", "secret")
    store.forget(ContextOwner(session_id=session.pk), "notes", erases_history=True)
    put(session, "plan", "one")
    put(session, "plan", "")
    assert session_diff(session.pk).documents == []


def test_the_diff_has_bounds(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(4):
        put(session, f"notes{number}", "a")
    put(session, "long", "x" * 120_000)
    monkeypatch.setattr(diffs, "MAX_STRETCHES", 3)
    found = session_diff(session.pk)
    assert [each.label for each in found.documents] == ["long", "notes3", "notes2"]
    assert found.is_cut
    assert found.documents[0].diff.is_cut
    assert (found.documents[0].status, found.documents[0].diff.patch) == ("added", "")


def test_two_queries_whatever_was_changed(
    session: Session, django_assert_num_queries: Callable[[int], AbstractContextManager[Any]]
) -> None:
    for number in range(30):
        put(session, f"notes{number % 7}", str(number))
    with django_assert_num_queries(2):
        session_diff(session.pk)
