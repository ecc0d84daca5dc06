"""Summaries, blocks and entries in the admin: edited by services, within limits, with a history that no one edits."""

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.compactions.services import add_compaction
from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from sessions_app.context.store import Shape
from sessions_app.core.context.context_blocks import Entry
from sessions_app.messages.services import freeze_prompt
from sessions_app.models import Compaction, ContextBlock, ContextChange, ContextEntry, Session
from sessions_app.search.query import search_entries
from sessions_app.testing import make_session

pytestmark = pytest.mark.django_db


@pytest.fixture
def short_session() -> Session:
    return make_session("u: hi", "a: hello", "u: more")


def url_of(row: Any, what: str = "change") -> str:
    return reverse(f"admin:think_sessions_{row._meta.model_name}_{what}", args=[row.pk])


def edit(client: Client, row: Any, **texts: str) -> Any:
    """Open the page, change a text, save."""
    form = client.get(url_of(row)).context["adminform"].form
    data = {name: form.initial.get(name) or "" for name in form.fields}
    return client.post(url_of(row), {**data, **texts})


def block_of(holder: ContextOwner, text: str = "Likes tea.", max_tokens: int | None = 20) -> ContextBlock:
    store.write_text(holder, "memory", lambda _held: text, shape=Shape(max_tokens=max_tokens))
    return ContextBlock.objects.get()


def test_a_block_is_edited_and_the_history_names_the_editor(client: Client, root: User, short_session: Session) -> None:
    block = block_of(ContextOwner(session_id=short_session.pk))
    freeze_prompt(short_session.pk, "kept")
    assert edit(client, block, content="Likes coffee.\r\nOften.").status_code == 302
    block.refresh_from_db()
    short_session.refresh_from_db()
    assert block.content == "Likes coffee.\nOften."
    assert short_session.system_prompt is None  # it shows in the next turn
    change = ContextChange.objects.latest("pk")
    assert (change.actor, change.via, change.before, change.after) == (root, "admin", "Likes tea.", block.content)
    page = client.get(url_of(block)).content.decode()
    assert "Set, root via The admin" in page


def test_a_block_of_a_person_is_edited_too(client: Client, root: User) -> None:
    block = block_of(ContextOwner(owner_id=root.pk))
    assert edit(client, block, content="").status_code == 302
    assert ContextChange.objects.latest("pk").owner == root
    assert "root" in client.get(url_of(block)).content.decode()


def test_what_does_not_fit_is_refused_beside_its_field(client: Client, root: User, short_session: Session) -> None:
    block = block_of(ContextOwner(session_id=short_session.pk))
    answer = edit(client, block, content="word " * 100)
    assert "holds at most 20 tokens" in answer.content.decode()
    block.refresh_from_db()
    assert block.content == "Likes tea."
    assert ContextChange.objects.count() == 1


def test_a_text_that_changed_meanwhile_is_not_overwritten(client: Client, root: User, short_session: Session) -> None:
    holder = ContextOwner(session_id=short_session.pk)
    block = block_of(holder)
    seen = client.get(url_of(block)).context["adminform"].form.initial["seen"]
    store.write_text(holder, "memory", lambda _held: "A model wrote this.")
    answer = client.post(url_of(block), {"content": "Mine.", "seen": seen})
    assert "has changed since this page was opened" in answer.content.decode()
    block.refresh_from_db()
    assert block.content == "A model wrote this."


def test_a_deleted_block_takes_its_entries_along(client: Client, root: User, short_session: Session) -> None:
    holder = ContextOwner(session_id=short_session.pk)
    block = block_of(holder)
    store.put_entry(holder, "memory", Entry(key="tea", content="green"))
    assert "with 1 entry" in client.get(url_of(block, "delete")).content.decode()
    assert client.post(url_of(block, "delete"), {"post": "yes"}).status_code == 302
    assert (ContextBlock.objects.count(), ContextEntry.objects.count()) == (0, 0)
    assert set(ContextChange.objects.filter(action="delete").values_list("via", "actor")) == {("admin", root.pk)}


def test_a_block_is_deleted_with_its_history(client: Client, root: User, short_session: Session) -> None:
    block = block_of(ContextOwner(session_id=short_session.pk))
    data = {"action": "forget_wholly", "_selected_action": [block.pk], "confirmed": "yes"}
    page = client.post(reverse("admin:think_sessions_contextblock_changelist"), data, follow=True).content.decode()
    assert "1 forgotten." in page
    assert list(ContextChange.objects.order_by("pk").values_list("action", "before", "after")) == [
        ("set", "", ""),
        ("delete", "", ""),
    ]


def test_an_entry_is_edited_found_anew_and_deleted(client: Client, root: User, short_session: Session) -> None:
    store.put_entry(ContextOwner(session_id=short_session.pk), "notes", Entry(key="tea", content="green"))
    entry = ContextEntry.objects.get()
    assert edit(client, entry, content="black with milk", title="Tea").status_code == 302
    entry.refresh_from_db()
    assert (entry.content, entry.title) == ("black with milk", "Tea")
    assert search_entries("milk", label="notes", session_id=short_session.pk).entries == [entry]
    assert client.post(url_of(entry, "delete"), {"post": "yes"}).status_code == 302
    assert ContextChange.objects.latest("pk").action == "delete"


def test_a_summary_is_edited_and_undone(client: Client, root: User, short_session: Session) -> None:
    add_compaction(short_session.pk, first_id="u1", last_id="a2", summary="They greeted.")
    row = Compaction.objects.get()
    assert "A summary cannot be empty." in edit(client, row, summary="  ").content.decode()
    assert edit(client, row, summary="They said hello.").status_code == 302
    row.refresh_from_db()
    assert row.summary == "They said hello."
    assert row.edited_at is not None
    data = {"action": "undo", "_selected_action": [row.pk]}
    page = client.post(reverse("admin:think_sessions_compaction_changelist"), data, follow=True).content.decode()
    assert "1 undone." in page
    row.refresh_from_db()
    assert row.undone_at is not None
    made = list(ContextChange.objects.order_by("pk").values_list("action", "via"))
    assert made == [("add", "code"), ("edit", "admin"), ("undo", "admin")]


def test_the_history_is_not_edited(client: Client, root: User, short_session: Session) -> None:
    block_of(ContextOwner(session_id=short_session.pk), text="<b>bold</b>")
    change = ContextChange.objects.get()
    page = client.get(url_of(change)).content.decode()
    assert "&lt;b&gt;bold&lt;/b&gt;" in page
    assert 'name="_save"' not in page
    assert client.post(url_of(change), {"after": "x"}).status_code == 403
    assert client.post(url_of(change, "delete"), {"post": "yes"}).status_code == 403


def test_who_may_look_may_not_edit(client: Client, short_session: Session) -> None:
    person = get_user_model().objects.create_user("helper", is_staff=True)
    wanted = ("view_contextblock", "view_compaction", "view_contextentry")
    person.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    client.force_login(person)
    block = block_of(ContextOwner(session_id=short_session.pk))
    add_compaction(short_session.pk, first_id="u1", last_id="a2", summary="They greeted.")
    for row in (block, Compaction.objects.get()):
        page = client.get(url_of(row)).content.decode()
        assert 'name="_save"' not in page
        assert 'name="seen"' not in page
        assert client.post(url_of(row), {"content": "x", "summary": "x"}).status_code == 403
    assert client.post(url_of(block, "delete"), {"post": "yes"}).status_code == 403
    data = {"action": "undo", "_selected_action": [Compaction.objects.get().pk]}
    client.post(reverse("admin:think_sessions_compaction_changelist"), data)
    assert Compaction.objects.get().undone_at is None


@pytest.mark.parametrize("name", ["compaction", "contextblock", "contextentry", "contextchange"])
def test_lists_do_not_grow_with_their_rows(client: Client, root: User, name: str) -> None:
    counts = []
    for round_number in range(2):
        for number in range(4):
            session = make_session("u: hi", "a: hello", owner_id=root.pk)
            holder = ContextOwner(session_id=session.pk) if number else ContextOwner(owner_id=root.pk)
            store.write_text(holder, f"memory{round_number}", lambda _held: "x")
            store.put_entry(holder, "notes", Entry(key=f"k{round_number}", content="x"))
            add_compaction(session.pk, first_id="u1", last_id="a2", summary="s")
        with CaptureQueriesContext(connection) as captured:
            assert client.get(reverse(f"admin:think_sessions_{name}_changelist")).status_code == 200
        counts.append(len(captured))
    assert counts[0] == counts[1]
    assert not [query for query in captured if "DISTINCT" in query["sql"]]
    assert client.get(reverse(f"admin:think_sessions_{name}_changelist"), {"q": "memory0"}).status_code == 200


def test_changes_are_filtered_by_what_and_how(client: Client, root: User, short_session: Session) -> None:
    block = block_of(ContextOwner(session_id=short_session.pk))
    edit(client, block, content="Mine.")
    url = reverse("admin:think_sessions_contextchange_changelist")
    for query, count in (({"via": "admin"}, 1), ({"via": "api"}, 0), ({"action": "set"}, 2), ({"action": "undo"}, 0)):
        assert f"{count} change" in client.get(url, query).content.decode()
