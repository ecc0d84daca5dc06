"""Sessions as code holds them, without an agent: rows A3 and C6 16 and 17 of the reference."""

from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from sessions_app.core.messages.messages import StoredMessage
from sessions_app.errors import CompactionInvalid, MessageInvalid, MessageNotFound, SessionNotFound
from sessions_app.messages import forks
from sessions_app.messages.sessions import archive_session, pin_session, prunable_sessions, prune_sessions
from sessions_app.models import Compaction, ContextBlock, Message, MessageQuerySet, Session
from sessions_app.public.handle import SessionHandle
from sessions_app.public.manager import SessionManager
from sessions_app.testing import history_of, text_message

pytestmark = pytest.mark.django_db


@pytest.fixture
def manager() -> SessionManager:
    return SessionManager(scope="s")


def ids(messages: list[StoredMessage]) -> list[str]:
    return [message.id for message in messages]


def talk(manager: SessionManager, name: str = "talk") -> SessionHandle:
    session = manager.create(name)
    session.append_all(history_of("u: one", "a: two", "u: three", "a: four"))
    return session


def compact(session: SessionHandle, first: str, last: str, summary: str = "short") -> Compaction:
    return Compaction.objects.create(
        session_id=session.id, first_id=first, last_id=last, summary=summary, trigger="added"
    )


def test_branches_of_a_message_are_listed(manager: SessionManager) -> None:
    session = manager.create()
    session.append(text_message("user", "hi", "root"))
    for answer in ("first", "second"):
        session.append(text_message("assistant", answer, answer), parent="root")
    assert ids(session.history("first")) == ["root", "first"]
    assert ids(session.history("second")) == ["root", "second"]
    assert ids(session.branches("root")) == ["first", "second"]


def test_a_fork_has_the_path_and_a_life_of_its_own(manager: SessionManager) -> None:
    session = talk(manager)
    fork = manager.fork(session.id, "a2", "copy")
    assert ids(fork.history()) == ["u1", "a2"]
    assert ids(session.history()) == ["u1", "a2", "u3", "a4"]
    assert Message.objects.count() == 4


def test_a_new_session_is_the_current_one(manager: SessionManager) -> None:
    first, second = manager.create("one"), manager.create("two", model_name="m", source="web")
    assert manager.current_id == second.id != first.id
    assert manager.history() == []
    assert [(found.name, found.model_name, found.source) for found in manager.list()] == [
        ("two", "m", "web"),
        ("one", "", ""),
    ]


def test_switching_changes_the_current_session(manager: SessionManager) -> None:
    first = talk(manager)
    manager.create()
    assert ids(manager.switch(first.id)) == ["u1", "a2", "u3", "a4"]
    assert manager.current_id == first.id
    with pytest.raises(SessionNotFound, match="There is no session 'nope'"):
        manager.switch("nope")
    assert manager.current_id == first.id


def test_the_most_recently_changed_is_listed_first(manager: SessionManager) -> None:
    first, second = manager.create("one"), manager.create("two")
    first.append("hi")
    assert [found.id for found in manager.list()] == [first.id, second.id]
    [page] = manager.list(limit=1)
    assert [found.id for found in manager.list(after=page)] == [second.id]


def test_pinned_ones_come_first_and_archived_ones_are_put_away(manager: SessionManager) -> None:
    made = [manager.create(name) for name in ("a", "b", "c")]
    pin_session(made[0].id)
    archive_session(made[1].id)
    assert [found.name for found in manager.list()] == ["a", "c"]
    assert [found.name for found in manager.list(after=manager.list(limit=1)[0])] == ["c"]
    assert [found.name for found in manager.list(is_archived=True)] == ["b"]
    assert {found.name for found in manager.list(is_archived=None)} == {"a", "b", "c"}
    manager.pin(made[0].id, is_pinned=False)
    manager.archive(made[1].id, is_archived=False)
    assert [found.name for found in manager.list()] == ["c", "b", "a"]


def aged(session: SessionHandle, days: int, **fields: Any) -> str:
    Session.objects.filter(pk=session.id).update(updated_at=timezone.now() - timedelta(days=days), **fields)
    return session.id


def test_prune_by_age_and_by_count(manager: SessionManager) -> None:
    old, older, pinned, put_away = (talk(manager, name) for name in ("old", "older", "pinned", "put away"))
    fresh = talk(manager, "fresh")
    elsewhere = SessionManager(scope="other").create("elsewhere")
    now = timezone.now()
    aged(old, 40), aged(older, 50), aged(pinned, 60, pinned_at=now), aged(put_away, 45, archived_at=now)
    aged(elsewhere, 90)
    assert [each.name for each in prunable_sessions(scope="s", days=30)] == ["put away"]
    assert [each.name for each in prunable_sessions(scope="s", days=30, archived_only=False)] == [
        "older",
        "put away",
        "old",
    ]
    assert [each.name for each in prunable_sessions(scope="s", keep=2, archived_only=False)] == ["older", "put away"]
    assert Session.objects.count() == 6  # only looked at
    fork = old.fork(old.history()[1].id)
    Session.objects.filter(pk=fork.id).update(pinned_at=now)
    gone = prune_sessions(prunable_sessions(scope="s", days=30, archived_only=False))
    assert [each.id for each in gone] == [older.id, put_away.id, old.id]
    assert {each.name for each in manager.list(is_archived=None)} == {
        "pinned",
        "fresh",
        manager.get(fork.id).info().name,
    }
    assert len(fork.history()) == 2  # what a fork reaches stays
    assert elsewhere.info().name == "elsewhere"
    assert fresh.history()


def test_prune_leaves_what_changed_since_it_was_listed(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = talk(manager, "first"), talk(manager, "second")
    aged(first, 40), aged(second, 50)
    listed = prunable_sessions(scope="s", days=30, archived_only=False)
    first.append({"id": "m-new", "role": "user", "parts": [{"type": "text", "text": "Wait."}]})
    assert [each.name for each in prune_sessions(listed)] == ["second"]
    assert first.history()[-1].id == "m-new"


@pytest.mark.parametrize("rule", [{}, {"days": -1}, {"keep": -1}, {"days": 10**9}])
def test_an_empty_rule_is_refused(manager: SessionManager, rule: Any) -> None:
    talk(manager)
    with pytest.raises(ValueError, match=r"days|Days"):
        prunable_sessions(**rule, archived_only=False)
    assert Session.objects.count() == 1


def test_deleting_the_current_session_leaves_none(manager: SessionManager) -> None:
    kept, gone = talk(manager, "kept"), talk(manager, "gone")
    compact(gone, "u1", "a2")
    manager.delete(gone.id)
    assert (manager.current_id, manager.history()) == (None, [])
    assert [found.id for found in manager.list()] == [kept.id]
    assert not Compaction.objects.exists()
    with pytest.raises(SessionNotFound):
        manager.delete(gone.id)


def test_a_session_is_renamed(manager: SessionManager) -> None:
    first, _second = manager.create("one"), manager.create("two")
    manager.rename(first.id, "other")
    assert [found.name for found in manager.list()] == ["other", "two"]
    with pytest.raises(SessionNotFound):
        manager.rename("nope", "x")


def test_clearing_keeps_the_session_and_no_message(manager: SessionManager) -> None:
    session = talk(manager)
    compact(session, "u1", "a2")
    Session.objects.filter(pk=session.id).update(loaded_keys=["skills:pdf"], system_prompt="frozen")
    session.clear()
    row = Session.objects.get(pk=session.id)
    assert (session.history(), session.compactions(), row.loaded_keys, row.system_prompt) == ([], [], [], None)
    assert [session.message(message_id) for message_id in ("u1", "a4")] == [None, None], "nothing lies there unseen"


def test_before_the_first_and_on_all_branches(manager: SessionManager) -> None:
    assert (manager.current_id, manager.current, manager.history(), manager.list()) == (None, None, [], [])
    session = talk(manager)
    session.append(text_message("assistant", "again", "again"), parent="u3")
    assert (session.path_length(), session.path_length("a4"), session.message_count()) == (4, 4, 5)
    assert manager.fork(session.id, "u3").message_count() == 3


def test_the_current_session_survives_a_restart(manager: SessionManager) -> None:
    first = talk(manager)
    manager.create()
    manager.switch(first.id)
    assert SessionManager(scope="s").current_id == first.id


def test_sessions_are_isolated(manager: SessionManager, alice: User) -> None:
    first, second = talk(manager), talk(manager)
    first.clear()
    assert ids(second.history()) == ["u1", "a2", "u3", "a4"]
    for other in (SessionManager(scope="other"), SessionManager(owner_id=alice.pk)):
        assert (other.list(), other.find(second.id), other.find("nul\0")) == ([], None, None)
        for method in (other.get, other.delete, other.switch, other.export):
            with pytest.raises(SessionNotFound):
                method(second.id)
    assert ids(second.history()) == ["u1", "a2", "u3", "a4"]


def test_deleting_messages_moves_up_what_hangs_below(manager: SessionManager) -> None:
    session = talk(manager)
    session.append(text_message("user", "five", "u5"))
    session.delete_messages(["a2", "u3"])
    assert ids(session.history()) == ["u1", "a4", "u5"]
    assert [message.depth for message in session.history()] == [0, 1, 2]
    assert [session.message(message_id) for message_id in ("a2", "u3")] == [None, None], "nothing lies there unseen"
    with pytest.raises(MessageNotFound):
        session.delete_messages(["a4", "nope"])
    assert session.path_length() == 3


def test_where_a_message_is_appended(manager: SessionManager) -> None:
    session = talk(manager)
    assert session.history()[-1].id == session.leaf_id() == "a4"
    root = session.append("elsewhere", parent=None)
    assert ids(session.history()) == [root]
    with pytest.raises(MessageNotFound):
        session.append("nowhere", parent="nope")


def test_upsert_and_append_all(manager: SessionManager) -> None:
    session = talk(manager)
    assert session.append_all(["five", text_message("assistant", "six", "a6")]) == "a6"
    session.upsert(text_message("user", "changed", "u1"), parent="a6")
    found = session.message("u1")
    assert found is not None
    assert (found.parts[0]["text"], found.parent_id, session.path_length()) == ("changed", None, 6)
    assert session.upsert(text_message("user", "new", "u7")) == session.leaf_id() == "u7"


def test_a_fork_is_linked_and_listed_first(manager: SessionManager) -> None:
    session = talk(manager)
    manager.create("later")
    fork = manager.fork(session.id, "u3", "copy")
    [first, *_] = manager.list()
    assert (first.id, first.parent_id, first.name) == (fork.id, session.id, "copy")
    session.clear()
    assert ids(fork.history()) == ["u1", "a2", "u3"]


def test_a_fork_keeps_what_lies_on_the_shared_path(manager: SessionManager) -> None:
    session = talk(manager)
    session.append(text_message("assistant", "other", "b2"), parent="u1")
    session.select("a4")
    for first, last in (("u1", "a2"), ("u1", "a4"), ("u1", "b2"), ("u1", "gone")):
        compact(session, first, last, f"{first}-{last}")
    undone = compact(session, "u1", "a2", "undone")
    Compaction.objects.filter(pk=undone.pk).update(undone_at=undone.created_at)
    ContextBlock.objects.create(session_id=session.id, label="notes", content="remember")
    fork = session.fork("u3")
    kept = fork.compactions()
    assert [row.summary for row in kept] == ["u1-a2"]
    assert kept[0].created_at == session.compactions()[0].created_at
    assert kept[0].id != session.compactions()[0].id
    assert [message.id for message in fork.history()] == [f"compaction_{kept[0].id}", "u3"]
    assert ContextBlock.objects.get(session_id=fork.id).content == "remember"
    session.clear()
    assert len(fork.compactions()) == 1


def test_a_fork_looks_through_what_is_read_and_not_through_the_history(
    manager: SessionManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(forks, "REACH", 5)
    session = manager.create()
    session.append_all([text_message("assistant" if n % 2 else "user", f"text {n}", f"m{n}") for n in range(30)])
    for first, last in (("m2", "m4"), ("m8", "m15"), ("m8", "m27")):
        compact(session, first, last, f"{first}-{last}")
    climbed: list[int] = []
    on_path = MessageQuerySet.on_path

    def counted(rows: MessageQuerySet, *args: Any) -> MessageQuerySet:
        found = on_path(rows, *args)
        climbed.append(found.count())
        return found

    monkeypatch.setattr(MessageQuerySet, "on_path", counted)
    fork = session.fork("m29")
    assert [row.summary for row in fork.compactions()] == ["m2-m4", "m8-m27"]  # what m8-m27 covers is not looked for
    assert sum(climbed) <= 2 * 6
    read = [["".join(part["text"] for part in m.parts) for m in one.history()] for one in (session, fork)]
    assert read[0] == read[1]


def test_needs_compaction_counts_only(manager: SessionManager) -> None:
    session = talk(manager)
    assert session.needs_compaction(3)
    assert not session.needs_compaction(4)
    assert not session.needs_compaction()


def test_compactions_are_listed_oldest_first(manager: SessionManager) -> None:
    session = talk(manager)
    for first, last in (("u1", "a2"), ("u3", "a4")):
        session.add_compaction("short", first, last)
    assert [row.last_id for row in session.compactions()] == ["a2", "a4"]
    with pytest.raises(CompactionInvalid):
        session.add_compaction("short", "a4", "u1")


def test_usage_is_added_exactly(manager: SessionManager) -> None:
    session = manager.create()
    for _ in range(10):
        session.add_usage(3, 2, Decimal("0.0000000001"))
    found = session.info()
    assert (found.input_tokens, found.output_tokens, found.cost) == (30, 20, Decimal("0.000000001"))
    for tokens, cost in ((-1, Decimal(0)), (1, 0.1)):
        with pytest.raises(MessageInvalid):
            session.add_usage(tokens, 0, cost)  # type: ignore[arg-type]  # what a caller may do all the same
    assert session.info() == found


def test_compact_and_split(manager: SessionManager) -> None:
    session = manager.create("long", model_name="m", source="cli")
    session.append("hello")
    new = manager.compact_and_split(session.id, "They said hello.")
    old, made = session.info(), new.info()
    assert (old.end_reason, old.path_length) == ("compaction", 1)
    assert (made.name, made.parent_id, made.model_name, made.source) == ("long", session.id, "m", "cli")
    [message] = new.history()
    assert message.role == "assistant"
    assert message.parts[0]["text"] == "[Context from previous session]\n\nThey said hello."
    with pytest.raises(MessageInvalid):
        manager.compact_and_split(new.id, "  ")
    assert new.info().end_reason == ""


def test_search_finds_written_and_imported_messages(manager: SessionManager) -> None:
    session = talk(manager, "one")
    brought = manager.import_session(manager.export(session.id))
    SessionManager(scope="other").create().append("three elsewhere")
    assert {hit.session_id for hit in manager.search("three").hits} == {session.id, brought.id}
    assert [hit.message_id for hit in manager.search("three", session_id=brought.id).hits] == ["u3"]
    assert manager.search('"').problem
