"""A conversation's page in the admin: it reads as one, and what staff change is a new message that names them."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from chat.agents import Assistant
from chat.conversations.staff_edits import ask_again, reword_message, write_message
from chat.errors import InputInvalid, TurnConflict
from chat.models import AgentInstance, Turn
from fibers.models import Fiber
from sessions_app.compactions.services import add_compaction
from sessions_app.context.history import ContextOwner, list_changes
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages import selectors, services
from sessions_app.models import ContextChange
from sessions_app.models import Message as MessageRow
from sessions_app.transfer.export import export_lines
from tests.db.chat.conftest import ApiClient, make_turn, say, text_message

READ = ("view_agentinstance", "view_message")
EVERYTHING = (*READ, "change_message", "add_message", "change_session", "change_turn")
Make = Callable[..., AgentInstance]


def signed_in(*codenames: str) -> tuple[User, Client]:
    user = User.objects.create_user("staff", password="x", is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    client = Client()
    client.force_login(user)
    return user, client


def page_of(client: Client, instance: AgentInstance, query: str = "") -> str:
    response = client.get(reverse("admin:think_chat_agentinstance_change", args=[instance.pk]) + query)
    assert response.status_code == 200
    return response.content.decode()


def url_of(instance: AgentInstance, name: str) -> str:
    return reverse(f"admin:think_chat_agentinstance_{name}", args=[instance.pk])


def path_of(instance: AgentInstance) -> list[str]:
    return [message.id for message in selectors.window(str(instance.session_id))]


def texts_of(instance: AgentInstance, message_id: str) -> list[str]:
    message = selectors.get_message(str(instance.session_id), message_id)
    assert message is not None
    return [str(part["text"]) for part in message.parts if part["type"] == "text"]


# --- it reads as a conversation --------------------------------------------------------------------------------------


def test_people_read_who_said_what_and_what_it_cost(conversation: AgentInstance) -> None:
    Turn.objects.update(cost=Decimal("0.25"), model_name="openai/large", input_tokens=1200, output_tokens=30)
    html = page_of(signed_in(*READ)[1], conversation)
    order = [html.index(text) for text in ("<h1>A talk</h1>", "<strong>alice</strong>", "text of q1", "text of a1")]
    assert order == sorted(order)
    assert "<strong>Assistant</strong>" in html
    assert "openai/large · 1,200 in, 30 out · $0.25" in html
    for button in ("Edit<", "Reply below", "Ask again", "Add a message", ">Stop<"):
        assert button not in html


def test_a_failure_stands_under_the_question_that_it_left_unanswered(conversation: AgentInstance) -> None:
    turn = make_turn(conversation, status="failed", error_code="rate_limited", error_text="Wait a <b>while</b>.")
    services.append_messages(str(conversation.session_id), [text_message("q2", "user")], turn_id=turn.pk)
    html = page_of(signed_in(*READ)[1], conversation)
    assert html.index("text of q2") < html.index("Wait a &lt;b&gt;while&lt;/b&gt;. (rate_limited)")


def test_without_the_permission_to_read_messages_nothing_of_them_is_there(conversation: AgentInstance) -> None:
    AgentInstance.objects.update(title="Her first words", title_is_provisional=True)
    html = page_of(signed_in("view_agentinstance", "change_message", "add_message", "change_turn")[1], conversation)
    assert "text of q1" not in html
    assert "Her first words" not in html
    assert "needs the permission to view messages" in html
    assert "Add a message" not in html


def test_an_empty_conversation_says_so(alice: User, make_instance: Make) -> None:
    assert "No messages yet." in page_of(signed_in(*EVERYTHING)[1], make_instance(alice))


def test_a_conversation_that_was_brought_says_why_it_has_no_turns(
    as_alice: ApiClient, conversation: AgentInstance, make_instance: Make
) -> None:
    file = SimpleUploadedFile("x.jsonl", "".join(export_lines(str(conversation.session_id))).encode())
    made = as_alice.http.post("/api/v1/imports", {"file": file, "agent": "assistant"}).json()
    client = signed_in(*READ)[1]
    html = page_of(client, AgentInstance.objects.get(pk=made["instance_id"]))
    assert "None: its messages were added by staff or brought from elsewhere." in html
    assert "None yet." not in html
    assert "None yet." in page_of(client, make_instance(conversation.owner))


def test_another_history_can_be_read_and_not_changed(conversation: AgentInstance) -> None:
    old = str(conversation.session_id)
    AgentInstance.objects.update(session=services.create_session(owner_id=conversation.owner_id, scope=conversation.pk))
    client = signed_in(*EVERYTHING)[1]
    html = page_of(client, conversation, f"?history={old}")
    assert "text of a1" in html
    assert "not the current one" in html
    assert "Add a message" not in html
    assert "text of a1" not in page_of(client, conversation)
    alien = services.create_session(scope="elsewhere")
    services.append_messages(alien.pk, [text_message("secret", "user")])
    assert "text of secret" not in page_of(client, conversation, f"?history={alien.pk}")


def test_a_page_costs_the_same_for_any_length(alice: User, make_instance: Make) -> None:
    client, costs = signed_in(*EVERYTHING)[1], []
    page_of(client, make_instance(alice))  # what is read once for all stays out of the count
    for pairs in (30, 300):
        instance = make_instance(alice)
        turn = make_turn(instance)
        said: list[Message] = [text_message(f"m{n}", "assistant" if n % 2 else "user") for n in range(2 * pairs)]
        session_id = str(instance.session_id)
        services.append_messages(session_id, said, turn_id=turn.pk)
        add_compaction(session_id, first_id="m0", last_id=f"m{2 * pairs - 3}", summary="In short.")
        with CaptureQueriesContext(connection) as queries:
            html = page_of(client, instance)
        costs.append(len(queries))
        assert html.count('class="think-message ') == 50
    assert costs[0] == costs[1] <= 40


@pytest.mark.parametrize(
    ("name", "field", "word"),
    [
        ("think_chat_agentinstance", "shown_title", "text of a1"),
        ("think_sessions_session", "title", "text of a1"),
        ("think_chat_turn", "title", "Ask again for another answer"),
    ],
)
def test_links_of_lists_lead_to_whole_pages(conversation: AgentInstance, name: str, field: str, word: str) -> None:
    client = signed_in(*EVERYTHING, "view_session", "view_turn")[1]
    html = client.get(reverse(f"admin:{name}_changelist")).content.decode()
    found = re.search(rf'field-{field}[^>]*><a href="([^"]+)"', html)
    assert found is not None
    assert word in client.get(found[1]).content.decode()


# --- editing ---------------------------------------------------------------------------------------------------------


def test_an_edited_answer_stands_beside_the_old_one_with_its_author(conversation: AgentInstance) -> None:
    user, client = signed_in(*EVERYTHING)
    data = {"text_0": "The right answer.", "session": conversation.session_id, "shows": "on"}
    response = client.post(url_of(conversation, "edit_message") + "?message=a1", data, follow=True)
    html = response.content.decode()
    [_, new_id] = path_of(conversation)
    assert new_id != "a1"
    assert (texts_of(conversation, "a1"), texts_of(conversation, new_id)) == (["text of a1"], ["The right answer."])
    assert "Edited by staff" in html
    assert "2 / 2" in html
    entry = LogEntry.objects.get()
    assert (entry.user_id, entry.object_id) == (user.pk, conversation.pk)
    assert "Edited message a1" in entry.get_change_message()
    assert MessageRow.objects.get(message_id=new_id).content["metadata"] == {"writtenBy": "staff"}


def test_an_answer_may_be_corrected_without_moving_what_is_shown(conversation: AgentInstance) -> None:
    say(conversation, "q2", "a2")
    client = signed_in(*EVERYTHING)[1]
    data = {"text_0": "Better.", "session": conversation.session_id}
    client.post(url_of(conversation, "edit_message") + "?message=a1", data)
    assert path_of(conversation) == ["q1", "a1", "q2", "a2"]
    assert MessageRow.objects.count() == 5


@pytest.mark.parametrize("answers", [False, True])
def test_an_edited_question_is_answered_only_where_it_is_wanted(conversation: AgentInstance, answers: bool) -> None:
    AgentInstance.objects.update(last_body={"theme": "dark"})
    user, client = signed_in(*EVERYTHING)
    data = {"text_0": "What else?", "session": conversation.session_id, **({"answers": "on"} if answers else {})}
    client.post(url_of(conversation, "edit_message") + "?message=q1", data)
    row = MessageRow.objects.exclude(message_id__in=["q1", "a1"]).get()
    turns = Turn.objects.exclude(assistant_id="a1")
    assert turns.filter(trigger="edit-message").count() == int(answers)
    assert (row.placed_at is None) is answers  # it has its place once its turn begins
    change = ContextChange.objects.get(subject=f"message:{row.message_id}")
    assert (change.action, change.before, change.actor_id, change.via) == ("edit", "q1", user.pk, "admin")
    conversation.refresh_from_db()
    assert conversation.last_body == {"theme": "dark"}


def test_tool_calls_and_files_come_along(conversation: AgentInstance, alice: User) -> None:
    call: Part = {"type": "tool-x", "toolCallId": "c", "state": "output-available", "input": {}, "output": 1}
    parts: list[Part] = [
        {"type": "text", "text": "one", "providerMetadata": {"openai": {"itemId": "i"}}},
        call,
        {"type": "text", "text": "two", "providerMetadata": {"openai": {"itemId": "j"}}},
    ]
    session_id = str(conversation.session_id)
    services.append_messages(session_id, [{"id": "a9", "role": "assistant", "parts": parts}], after="q1")
    made = reword_message(conversation, "a9", ["one", "zwei\r\nzeilen"], session_id=session_id, user_id=alice.pk)
    message = selectors.get_message(session_id, made)
    assert message is not None
    assert [part["type"] for part in message.parts] == ["text", "tool-x", "text"]
    assert message.parts[2] == {"type": "text", "text": "zwei\nzeilen"}
    shortened = reword_message(conversation, "a9", ["", "two"], session_id=session_id, user_id=alice.pk)
    kept = selectors.get_message(session_id, shortened)
    assert kept is not None
    assert [part["type"] for part in kept.parts] == ["tool-x", "text"]


def test_what_cannot_be_edited_says_why(conversation: AgentInstance, alice: User) -> None:
    session_id = str(conversation.session_id)
    call: Part = {"type": "tool-x", "toolCallId": "c", "state": "approval-requested", "input": {}}
    services.append_messages(session_id, [{"id": "a9", "role": "assistant", "parts": [call]}])
    services.queue_messages(session_id, [text_message("later", "user")])
    client = signed_in(*EVERYTHING)[1]
    for message_id, word in (("a9", "settled"), ("later", "waits for its turn")):
        with pytest.raises(InputInvalid, match=word):
            reword_message(conversation, message_id, ["x"], session_id=session_id, user_id=alice.pk)
        page = client.get(url_of(conversation, "edit_message") + f"?message={message_id}").content.decode()
        assert word in page
        assert "<textarea" not in page
    with pytest.raises(InputInvalid, match="empty"):
        reword_message(conversation, "a1", ["  "], session_id=session_id, user_id=alice.pk)
    with pytest.raises(TurnConflict, match="another history"):
        reword_message(conversation, "a1", ["x"], session_id="ses_other", user_id=alice.pk)
    assert client.get(url_of(conversation, "edit_message") + "?message=nowhere").status_code == 404


def test_hostile_text_stays_text(conversation: AgentInstance) -> None:
    client, evil = signed_in(*EVERYTHING)[1], "</textarea><script>alert(1)</script>"
    data = {"text_0": evil, "session": conversation.session_id, "shows": "on"}
    client.post(url_of(conversation, "edit_message") + "?message=a1", data)
    new_id = path_of(conversation)[-1]
    for html in (
        page_of(client, conversation),
        client.get(url_of(conversation, "edit_message") + f"?message={new_id}").content.decode(),
    ):
        assert "<script>alert" not in html
        assert "&lt;script&gt;alert(1)" in html


# --- adding ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", ["user", "assistant"])
def test_a_message_is_added_at_the_end(conversation: AgentInstance, role: str) -> None:
    client = signed_in(*EVERYTHING)[1]
    data = {"role": role, "text": "By the way.", "session": conversation.session_id, "after": ""}
    html = client.post(url_of(conversation, "add_message"), data, follow=True).content.decode()
    path = path_of(conversation)
    assert path[:2] == ["q1", "a1"]
    assert texts_of(conversation, path[2]) == ["By the way."]
    assert "Written by staff" in html
    assert Turn.objects.count() == 1


def test_a_reply_below_an_earlier_message_is_another_branch(conversation: AgentInstance) -> None:
    say(conversation, "q2", "a2")
    client = signed_in(*EVERYTHING)[1]
    data = {"role": "user", "text": "Or rather", "session": conversation.session_id, "after": "a1"}
    client.post(url_of(conversation, "add_message") + "?after=a1", data)
    path = path_of(conversation)
    assert path[:2] == ["q1", "a1"]
    assert len(path) == 3
    assert MessageRow.objects.filter(message_id__in=["q2", "a2"]).count() == 2


def test_an_added_question_is_answered_where_it_is_wanted(conversation: AgentInstance, alice: User) -> None:
    session_id = str(conversation.session_id)
    made = write_message(conversation, "user", "And now?", session_id=session_id, user_id=alice.pk, answers=True)
    turn = Turn.objects.exclude(assistant_id="a1").get()
    assert (turn.trigger, turn.input_ids) == ("submit-message", [made])
    client = signed_in(*EVERYTHING)[1]
    data = {"role": "assistant", "text": "x", "session": session_id, "after": "", "answers": "on"}
    assert "Only a person" in client.post(url_of(conversation, "add_message"), data).content.decode()
    with pytest.raises(InputInvalid):
        write_message(conversation, "system", "x", session_id=session_id, user_id=alice.pk)


# --- branches, stopping, asking again --------------------------------------------------------------------------------


def test_a_branch_is_looked_at_first_and_then_shown_to_everyone(conversation: AgentInstance) -> None:
    services.put_assistant(str(conversation.session_id), text_message("other", "assistant"), after="q1")
    client = signed_in(*EVERYTHING)[1]
    html = page_of(client, conversation, "?at=a1")
    assert "Show this branch to everyone" in html
    assert path_of(conversation) == ["q1", "other"]
    client.post(url_of(conversation, "branch"), {"message": "a1", "session": conversation.session_id})
    assert path_of(conversation) == ["q1", "a1"]
    assert "Showed the branch" in LogEntry.objects.get().get_change_message()
    html = client.post(
        url_of(conversation, "branch"), {"message": "gone", "session": conversation.session_id}, follow=True
    ).content.decode()
    assert 'class="error"' in html


def test_a_question_is_asked_again(conversation: AgentInstance) -> None:
    user, client = signed_in(*EVERYTHING)
    client.post(url_of(conversation, "ask_again"), {"message": "a1", "session": conversation.session_id})
    turn = Turn.objects.exclude(assistant_id="a1").get()
    assert (turn.trigger, turn.base_id) == ("regenerate-message", "q1")
    change = ContextChange.objects.get(subject=f"message:{turn.assistant_id}")
    assert (change.action, change.actor_id) == ("ask", user.pk)


def test_a_refused_request_leaves_no_author(conversation: AgentInstance, alice: User) -> None:
    with pytest.raises(InputInvalid):
        ask_again(conversation, "nowhere", session_id=str(conversation.session_id), user_id=alice.pk)
    assert (ContextChange.objects.count(), Turn.objects.count()) == (0, 1)


def test_turns_are_stopped_run_again_and_asked_again_on_their_pages(conversation: AgentInstance) -> None:
    running = make_turn(conversation, status="running")
    failed = make_turn(conversation, status="failed")
    services.append_messages(str(conversation.session_id), [text_message("q3", "user")], turn_id=failed.pk)
    Turn.objects.filter(pk=failed.pk).update(input_ids=["q3"])
    client = signed_in(*EVERYTHING, "view_turn")[1]

    def act(turn: Turn, do: str) -> str:
        url = reverse("admin:think_chat_turn_act", args=[turn.pk])
        return client.post(url, {"do": do}, follow=True).content.decode()

    assert "was stopped" in act(running, "stop")
    assert Fiber.objects.get(pk=running.fiber_id).cancel_requested_at is not None
    assert "Only a turn that failed" in act(running, "run-again")
    assert "asked again" in act(failed, "ask-again")
    assert Turn.objects.get(trigger="regenerate-message").base_id == "q3"
    assert "goes on where it broke off" in act(failed, "run-again")
    assert Fiber.objects.get(pk=failed.fiber_id).status == "pending"
    assert client.post(reverse("admin:think_chat_turn_act", args=[failed.pk]), {"do": "dance"}).status_code == 404
    assert client.get(reverse("admin:think_chat_turn_act", args=[failed.pk])).status_code == 405


# --- rights ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "query", "permission"),
    [
        ("edit_message", "?message=a1", "change_message"),
        ("add_message", "", "add_message"),
        ("branch", "", "change_session"),
        ("ask_again", "", "change_turn"),
    ],
)
def test_each_action_needs_its_permission_and_the_one_to_read(
    conversation: AgentInstance, name: str, query: str, permission: str
) -> None:
    data = {
        "message": "a1",
        "text": "x",
        "text_0": "x",
        "role": "user",
        "session": conversation.session_id,
        "after": "",
    }
    others = set(EVERYTHING) - {permission}
    user, client = signed_in(*others)
    url = url_of(conversation, name) + query
    for codenames in (others, {permission, "view_agentinstance"}, {permission, "view_message"}):
        user.user_permissions.set(Permission.objects.filter(codename__in=codenames))
        assert client.post(url, data).status_code == 403, codenames
    assert (MessageRow.objects.count(), Turn.objects.count()) == (2, 1)
    user.user_permissions.set(Permission.objects.filter(codename__in=EVERYTHING))
    assert client.post(url, data).status_code == 302
    assert client.post(url_of(AgentInstance(pk="ins_none"), name) + query, data).status_code == 404
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(user)
    assert strict.post(url, data).status_code == 403


def test_acting_on_a_turn_needs_the_permission_to_change_turns(conversation: AgentInstance) -> None:
    turn = make_turn(conversation, status="running")
    client = signed_in(*READ, "view_turn")[1]
    assert client.post(reverse("admin:think_chat_turn_act", args=[turn.pk]), {"do": "stop"}).status_code == 403
    assert "think-buttons" not in client.get(reverse("admin:think_chat_turn_change", args=[turn.pk])).content.decode()


def test_staff_read_what_its_class_declares(conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "max_steps", 4711)
    monkeypatch.setattr(Assistant, "enabled_tools", ("read", "!x<b>"))
    html = page_of(signed_in("view_agentinstance")[1], conversation)
    declared = html[html.index("What its class declares") : html.index("All fields")]
    for words in (
        "<dd>4711</dd>",
        "read, !x&lt;b&gt;",
        "<code>pendingApprovals(execution_id: str | None = None)</code>",
    ):
        assert words in declared


def test_an_agent_that_is_gone_leaves_a_conversation_to_read(conversation: AgentInstance) -> None:
    AgentInstance.objects.update(agent="gone")
    client = signed_in(*EVERYTHING)[1]
    html = page_of(client, conversation)
    assert "not served any more" in html
    assert "text of a1" in html
    assert "Ask again" not in html
    data = {"text_0": "x", "session": conversation.session_id}
    assert "no agent" in client.post(url_of(conversation, "edit_message") + "?message=a1", data).content.decode()


def test_authors_are_no_memory_and_go_with_the_messages(conversation: AgentInstance, alice: User) -> None:
    session_id = str(conversation.session_id)
    reword_message(conversation, "a1", ["x"], session_id=session_id, user_id=alice.pk)
    assert list_changes(ContextOwner(session_id=session_id)) == []
    assert ContextChange.objects.count() == 1
    services.clear_session(session_id)
    assert ContextChange.objects.count() == 0


def test_lists_cost_the_same_for_any_length(conversation: AgentInstance, alice: User, make_instance: Make) -> None:
    client = signed_in(*EVERYTHING, "view_session", "view_turn", "view_fiber", "view_toolcallrecord")[1]
    lists: list[Any] = ["think_sessions_session", "think_sessions_message", "think_fibers_fiber", "think_chat_turn"]

    def costs() -> list[int]:
        found = []
        for name in (*lists, "think_chat_agentinstance", "think_tools_toolcallrecord"):
            with CaptureQueriesContext(connection) as queries:
                assert client.get(reverse(f"admin:{name}_changelist")).status_code == 200
            found.append(len(queries))
        return found

    few = costs()
    for number in range(8):
        say(make_instance(alice), f"q{number}", f"a{number}")
    assert costs() == few
