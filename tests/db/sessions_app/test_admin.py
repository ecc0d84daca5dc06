"""Conversations in the admin: readable, read-only, bounded."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import Permission
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from sessions_app.admin.conversation_view import part_view
from sessions_app.compactions.services import add_compaction, undo_compaction
from sessions_app.compactions.summaries import write_summary
from sessions_app.core.messages.shapes import Part
from sessions_app.messages import selectors, services
from sessions_app.models import Message, Session
from sessions_app.testing import make_message, make_session, text_message
from thinkproject.kernel.read_only_admin import COUNT_LIMIT, BoundedPaginator

pytestmark = pytest.mark.django_db

Queries = Callable[..., Any]


@pytest.fixture
def root_client(client: Client) -> Client:
    client.force_login(get_user_model().objects.create_superuser("root"))
    return client


def page_of(client: Client, session: Session, query: str = "") -> str:
    response = client.get(reverse("admin:think_sessions_session_change", args=[session.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def test_a_session_reads_as_a_conversation(root_client: Client) -> None:
    session = make_session("u: What is the weather?")
    call: Part = {
        "type": "tool-weather",
        "toolCallId": "c1",
        "state": "output-available",
        "input": {"city": "Oslo"},
        "output": {"celsius": 3},
    }
    parts: list[Part] = [{"type": "step-start"}, {"type": "reasoning", "text": "Let me look."}, call]
    make_message(session, role="assistant", message_id="a1", parts=[*parts, {"type": "text", "text": "It is cold."}])
    services.queue_messages(session.pk, [text_message("user", "And tomorrow?", "q1")])
    html = page_of(root_client, session)
    places = [html.index(text) for text in ("the weather?", "Let me look.", "weather", "celsius", "It is cold.")]
    assert places[0] < places[1] < places[3] < places[4] < html.index("And tomorrow?")
    assert "Tool <b>weather</b> <em>done</em>" in html
    assert html.count("<details class=") >= 2
    assert html.index("Waiting for their turn") < html.index("And tomorrow?")


def test_a_session_has_a_summary(root_client: Client) -> None:
    session = make_session("u: one")
    assert "About" not in page_of(root_client, session)
    write_summary(session.pk, "About <b>tea</b>.")
    html = page_of(root_client, session)
    assert "About &lt;b&gt;tea&lt;/b&gt;. (a person, " in html


def test_what_people_wrote_is_text_and_never_markup(root_client: Client) -> None:
    session = make_session()
    evil = "<script>alert(1)</script><img src=x> \0 \ud800"
    parts: list[Part] = [
        {"type": "text", "text": evil},
        {"type": "file", "mediaType": "image/png", "filename": evil, "url": "https://elsewhere.example/x.png"},
        {"type": "tool-x", "toolCallId": "c", "state": evil, "input": evil, "errorText": evil},
        cast("Part", {"type": "nonsense", "deep": [evil]}),
    ]
    make_message(session, message_id="<b>'\"&", parts=parts)
    html = page_of(root_client, session)
    assert "<script>alert" not in html
    assert "<img" not in html
    assert 'src="https://elsewhere' not in html
    assert 'href="https://elsewhere' not in html
    assert "&lt;script&gt;alert(1)" in html


def test_pages_and_branches_are_links(root_client: Client) -> None:
    session = make_session(*["u: question", "a: answer"] * 40)
    services.put_assistant(session.pk, text_message("assistant", "other", "b80"), after="u79")
    html = page_of(root_client, session)
    assert "2 / 2" in html
    assert "?at=a80#message-a80" in html
    assert "before=a32" in html or "before=u31" in html
    assert "other" in html
    assert "1 / 2" in page_of(root_client, session, "?branch=a80")
    opened = page_of(root_client, session, "?at=a80")
    assert "1 / 2" in opened
    assert "Opened here" in opened
    older = page_of(root_client, session, "?before=u31")
    assert 'id="message-a30"' in older
    assert 'id="message-u31"' not in older
    assert page_of(root_client, session, "?branch=unknown&before=unknown%00")


def test_the_conversation_costs_a_page(root_client: Client, django_assert_max_num_queries: Queries) -> None:
    for lines in (60, 600):
        session = make_session(*["u: question", "a: answer"] * lines)
        services.put_assistant(session.pk, text_message("assistant", "other", "b"), after=f"u{lines * 2 - 1}")
        for last in (lines * 2 - 4, lines * 2 - 2):
            add_compaction(session.pk, first_id="u1", last_id=f"a{last}", summary="In short.")
        for _ in range(5):
            services.fork_session(session.pk, f"u{lines * 2 - 1}")
        with django_assert_max_num_queries(18):
            html = page_of(root_client, session)
        assert html.count('class="think-message ') == 50


def test_the_tree_is_shown_in_place(root_client: Client) -> None:
    session = make_session("u: hi", "a: hello", "u: more", "a: first answer", name="Origin")
    services.put_assistant(session.pk, text_message("assistant", "second answer", "b4"), after="u3")
    summary = add_compaction(session.pk, first_id="u1", last_id="a2", summary="They <greeted>.")
    fork = services.fork_session(session.pk, "u3", name="A fork")
    html = page_of(root_client, session)
    at = [html.index(text) for text in ("hello", "of 2 messages", "They &lt;greeted&gt;.", "A fork", "2 / 2")]
    assert at == sorted(at)
    assert "first answer</a>" in html  # how the sibling begins
    assert reverse("admin:think_sessions_compaction_change", args=[summary.id]) in html
    assert "Shared with the history this one was forked from" in page_of(root_client, fork)
    larger = add_compaction(session.pk, first_id="u1", last_id="u3", summary="All of it.")
    html = page_of(root_client, session)
    assert html.index("Earlier summary of 2") < html.index("Summary that models read instead of 3")
    undo_compaction(larger.id)
    html = page_of(root_client, session)
    assert html.index("Summary that models read instead of 2") < html.index("Undone summary of 3")


def test_a_page_in_the_middle_leads_both_ways(root_client: Client) -> None:
    session = make_session(*["u: question", "a: answer"] * 100)
    html = page_of(root_client, session, "?at=u101")
    assert 'id="message-u101"' in html
    assert "before=a76" in html
    assert "?at=u125" in html
    assert "To the newest messages" in html
    assert page_of(root_client, session, "?at=unknown").count('class="think-message ') == 50


def test_archived_messages_are_counted(root_client: Client) -> None:
    session = make_session(*["u: question", "a: answer"] * 4)
    services.archive_beyond(session.pk, 4)
    assert "4 older ones above are archived" in page_of(root_client, session)


def test_staff_search_in_messages_of_everybody(root_client: Client) -> None:
    alice, bob = (get_user_model().objects.create_user(name) for name in ("alice", "bob"))
    hers = make_session("u: Where do penguins <b>live</b>?", "a: In the south.", owner_id=alice.pk, name="Birds")
    make_session("u: A penguin book", owner_id=bob.pk)
    url = reverse("admin:think_sessions_message_search")

    def found(**query: str) -> str:
        return root_client.get(url, query).content.decode()

    everything = found(q="penguin")
    assert everything.count('class="think-message ') == 2
    assert "<mark>penguins</mark>" in everything
    assert "&lt;b&gt;live&lt;/b&gt;" in everything
    assert f"/{hers.pk}/change/?at=u1#message-u1" in everything
    assert found(q="penguin", owner="bob").count('class="think-message ') == 1
    assert found(q="penguin", session=hers.pk).count('class="think-message ') == 1
    assert "There is no user of this name." in found(q="penguin", owner="carol")
    assert 'role="alert"' in found(q="penguin", cursor="nonsense")
    assert 'role="alert"' in found(q='"')
    assert "Nothing was found" in found(q="walrus")
    assert 'class="think-message ' not in found(q="")


def test_the_search_costs_a_page_of_hits(root_client: Client) -> None:
    costs = []
    for _ in range(2):
        for _ in range(8):
            make_session("u: a penguin", "a: a penguin too")
        with CaptureQueriesContext(connection) as captured:
            root_client.get(reverse("admin:think_sessions_message_search"), {"q": "penguin"})
        costs.append(len(captured))
    assert costs[0] == costs[1]


def test_the_search_needs_the_permission_to_see_messages(client: Client) -> None:
    person = get_user_model().objects.create_user("helper", is_staff=True)
    client.force_login(person)
    assert client.get(reverse("admin:think_sessions_message_search"), {"q": "x"}).status_code == 403


def test_nothing_is_edited(root_client: Client) -> None:
    session = make_session("u: hi")
    change = reverse("admin:think_sessions_session_change", args=[session.pk])
    assert root_client.post(change, {"name": "x"}).status_code == 403
    assert root_client.get(reverse("admin:think_sessions_session_add")).status_code == 403
    assert root_client.get(reverse("admin:think_sessions_message_add")).status_code == 403
    row = Message.objects.get()
    assert (
        root_client.post(reverse("admin:think_sessions_message_change", args=[row.pk]), {"role": "x"}).status_code
        == 403
    )
    assert (
        root_client.post(reverse("admin:think_sessions_message_delete", args=[row.pk]), {"post": "yes"}).status_code
        == 403
    )


def test_staff_without_permission_see_nothing(client: Client) -> None:
    person = get_user_model().objects.create_user("helper", is_staff=True)
    client.force_login(person)
    session = make_session("u: secret")
    change = reverse("admin:think_sessions_session_change", args=[session.pk])
    assert client.get(change).status_code == 403
    person.user_permissions.add(
        Permission.objects.get(codename="view_session", content_type__app_label="think_sessions")
    )
    assert "secret" in client.get(change).content.decode()


def test_a_deleted_session_leaves_its_fork(root_client: Client) -> None:
    session = make_session("u: hi", "a: hello")
    fork = services.fork_session(session.pk, "a2")
    delete = reverse("admin:think_sessions_session_delete", args=[session.pk])
    assert "with all its messages" in root_client.get(delete).content.decode()
    assert root_client.post(delete, {"post": "yes"}).status_code == 302
    assert [m.id for m in selectors.window(fork.pk)] == ["u1", "a2"]
    assert "forked" in page_of(root_client, fork).lower()


def test_chosen_sessions_are_deleted_with_their_messages(root_client: Client) -> None:
    gone = [make_session("u: hi", "a: hello").pk for _ in range(3)]
    kept = make_session("u: stays")
    data = {"action": "delete_selected", "_selected_action": gone, "post": "yes"}
    assert root_client.post(reverse("admin:think_sessions_session_changelist"), data).status_code == 302
    assert list(Session.objects.values_list("pk", flat=True)) == [kept.pk]
    assert Message.objects.count() == 1


def test_lists_do_not_grow_with_their_rows(root_client: Client) -> None:
    owner = get_user_model().objects.create_user("alice")
    counts = []
    for _ in range(2):
        for _ in range(4):
            make_session("u: hi", owner_id=owner.pk)
        for name in ("session", "message"):
            url = reverse(f"admin:think_sessions_{name}_changelist")
            with CaptureQueriesContext(connection) as captured:
                assert root_client.get(url).status_code == 200
            counts.append(len(captured))
    assert counts[:2] == counts[2:]


def test_sessions_are_found_by_owner_and_messages_by_ids(root_client: Client) -> None:
    owner = get_user_model().objects.create_user("alice")
    session = make_session("u: hi", owner_id=owner.pk, name="Holiday plans")
    make_session("u: hi", name="Other")
    services.put_assistant(session.pk, text_message("assistant", "hello", "needle"), after="u1", turn_id="trn_1")
    sessions = reverse("admin:think_sessions_session_changelist")
    messages = reverse("admin:think_sessions_message_changelist")
    for term in ("alice", "Holiday", session.pk):
        assert "1 histor" in root_client.get(sessions, {"q": term}).content.decode()
    for term, count in (("needle", 1), ("trn_1", 1), (session.pk, 2), ("x" * 200, 0), ("nothing", 0)):
        assert f"{count} message" in root_client.get(messages, {"q": term}).content.decode()
    assert "NUL" not in root_client.get(messages, {"q": "no\0thing"}).content.decode()


def test_a_message_links_to_its_conversation(root_client: Client) -> None:
    session = make_session()
    make_message(session, message_id="a&b")
    html = root_client.get(
        reverse("admin:think_sessions_message_change", args=[Message.objects.get().pk])
    ).content.decode()
    assert f"/{session.pk}/change/?at=a%26b" in html


def test_counting_stops_at_a_limit() -> None:
    paginator = BoundedPaginator(Message.objects.order_by("pk"), 50)
    with CaptureQueriesContext(connection) as captured:
        assert paginator.count == 0
    assert f"LIMIT {COUNT_LIMIT}" in captured[0]["sql"]


def test_a_long_block_is_cut() -> None:
    view = part_view({"type": "tool-x", "toolCallId": "c", "state": "output-available", "output": "x" * 100_000})
    assert len(view.blocks[0].text) == 20_000
