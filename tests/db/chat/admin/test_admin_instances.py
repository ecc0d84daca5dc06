"""Conversations in the admin: costs, configuration, pruning with a dry run, what takes space; and the command."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from io import StringIO
from typing import Any, Literal

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission, User
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pydantic import BaseModel, Field

from chat.agent.base import StateSource
from chat.agents import Assistant
from chat.conversations.changes import pin_instance
from chat.conversations.pruning import PruneRule, plan_pruning, prune_by_rule, prune_conversations
from chat.errors import InputInvalid
from chat.files import attachments
from chat.instances import notifications
from chat.instances.config import save_config
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance, Turn
from chat.operations import table_sizes
from chat.operations.removal import delete_instance
from chat.operations.table_sizes import database_size
from chat.runtime import state as synced_state
from sessions_app.compactions.services import add_compaction
from sessions_app.messages import selectors
from sessions_app.messages.services import append_messages, fork_session
from sessions_app.models import Compaction, Message, Session
from sessions_app.testing import make_session
from tests.db.chat.conftest import make_turn, say, text_message

Make = Callable[..., AgentInstance]
LIST = "/admin/think_chat/agentinstance/"
NOW = timezone.now()


class Tone(BaseModel):
    colour: str
    level: int = 1


@pytest.fixture
def keeper_of_instances(db: None) -> User:
    user = User.objects.create_user("staff", password="x", is_staff=True)
    wanted = ("view_agentinstance", "change_agentinstance", "delete_agentinstance", "view_turn")
    user.user_permissions.set(Permission.objects.filter(codename__in=wanted))
    return user


@pytest.fixture
def keeper_client(keeper_of_instances: User) -> Client:
    made = Client()
    made.force_login(keeper_of_instances)
    return made


def grow_old(*rows: AgentInstance, days: int = 100, archived: bool = True) -> None:
    ids = [row.pk for row in rows]
    AgentInstance.objects.filter(pk__in=ids).update(
        active_at=NOW - timedelta(days=days), archived_at=NOW if archived else None
    )


def named(rule: PruneRule) -> list[str]:
    return [each.id for each in plan_pruning(rule, NOW).conversations]


# --- the rule --------------------------------------------------------------------------------------------------------


def test_a_rule_names_by_age_count_and_owner(alice: User, bob: User, make_instance: Make) -> None:
    rows = [make_instance(alice) for _ in range(4)]
    for age, row in enumerate(rows):
        grow_old(row, days=age * 10)
    other = make_instance(bob)
    grow_old(other, days=25)
    ids = [row.pk for row in rows]
    assert named(PruneRule(days=15)) == [ids[3], other.pk, ids[2]]
    assert named(PruneRule(keep=1)) == [ids[3], ids[2], ids[1]]
    assert named(PruneRule(owner_id=bob.pk)) == [other.pk]
    assert named(PruneRule(days=15, keep=3)) == [ids[3]]
    assert named(PruneRule(days=15, owner_id=alice.pk, keep=0)) == [ids[3], ids[2]]


def test_what_is_pinned_not_archived_or_busy_stays(alice: User, make_instance: Make) -> None:
    pinned, shown, busy, below, free = (make_instance(alice) for _ in range(5))
    child = ensure_instance(key_of(below).below("assistant", "child"))
    grow_old(pinned, busy, below, free)
    grow_old(shown, archived=False)
    pin_instance(pinned, is_pinned=True)
    make_turn(busy, status="parked")
    make_turn(child, status="running")
    plan = plan_pruning(PruneRule(days=30), NOW)
    assert ([each.id for each in plan.conversations], plan.busy_count) == ([free.pk], 2)
    assert set(named(PruneRule(days=30, archived_only=False))) == {free.pk, shown.pk}
    assert prune_conversations(PruneRule(days=30), NOW, [busy.pk, below.pk, pinned.pk, free.pk]) == 1


def test_a_rule_without_a_limit_is_refused() -> None:
    wrong: list[dict[str, Any]] = [{}, {"days": -1}, {"keep": -1}, {"days": 10**9}]
    for given in wrong:
        with pytest.raises(InputInvalid):
            PruneRule(**given)


def test_a_plan_lists_exactly_what_is_deleted(alice: User, bob: User, make_instance: Make) -> None:
    old, kept = make_instance(alice, title="Old"), make_instance(alice)
    say(old, "q1", "a1")
    say(old, "q2", "a2")
    child = ensure_instance(key_of(old).below("assistant", "child"))
    say(child, "q3", "a3")
    grow_old(old)
    file = attachments.store_bytes(alice.pk, b"x" * 100, name="a.txt")
    attachments.claim(alice.pk, [file.id], old)
    fork = fork_session(old.session_id or "", "a1", scope=kept.pk)
    plan = plan_pruning(PruneRule(days=30), NOW)
    [line] = plan.conversations
    assert (line.title, line.owner, line.turn_count, line.message_count) == ("Old", "alice", 3, 6)
    assert (line.sub_agent_count, line.file_count) == (1, 1)
    assert line.byte_size == 100 + sum(Message.objects.exclude(session=fork).values_list("byte_size", flat=True))
    assert plan.staying_count == 2
    before = Message.objects.count()
    assert sum(prune_by_rule(PruneRule(days=30), NOW)) == 1
    assert before - Message.objects.count() == line.message_count - plan.staying_count
    assert [message.id for message in selectors.window(fork.pk)] == ["q1", "a1"]  # the fork stays whole
    assert list(AgentInstance.objects.all()) == [kept]


def test_a_fork_that_goes_too_keeps_nothing(alice: User, make_instance: Make) -> None:
    old, older = make_instance(alice), make_instance(alice)
    say(old, "q1", "a1")
    fork_session(old.session_id or "", "a1", scope=older.pk)
    grow_old(old, older)
    assert plan_pruning(PruneRule(days=30), NOW).staying_count == 0
    assert sum(prune_by_rule(PruneRule(days=30), NOW)) == 2
    assert (Message.objects.count(), Session.objects.count(), Turn.objects.count()) == (0, 0, 0)


def test_a_fork_of_a_fork_whose_origin_is_gone_is_counted(alice: User, make_instance: Make) -> None:
    origin, middle, last = (make_instance(alice) for _ in range(3))
    say(origin, "q1", "a1")
    first = fork_session(origin.session_id or "", "a1", scope=middle.pk)
    append_messages(first.pk, [text_message("mine", "user")])
    second = fork_session(first.pk, "mine", scope=last.pk)
    delete_instance(middle)
    grow_old(origin)
    assert plan_pruning(PruneRule(days=30), NOW).staying_count == 2
    assert sum(prune_by_rule(PruneRule(days=30), NOW)) == 1
    assert [message.id for message in selectors.window(second.pk)] == ["q1", "a1", "mine"]


def test_who_wakes_up_before_it_goes_is_spared(
    alice: User, make_instance: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    row = make_instance(alice)
    say(row, "q1", "a1")
    grow_old(row)

    def somebody_writes(instance: AgentInstance, **given: Any) -> bool:
        say(row, "q2", "a2")
        return delete_instance(instance, **given)

    monkeypatch.setattr("chat.conversations.pruning.delete_instance", somebody_writes)
    assert sum(prune_by_rule(PruneRule(days=30), NOW)) == 0
    row.refresh_from_db()
    assert (Message.objects.count(), row.generation) == (4, 0)


def test_a_plan_costs_the_same_for_any_length(alice: User, make_instance: Make) -> None:
    costs = []
    for _ in range(2):
        for _ in range(4):
            row = make_instance(alice)
            say(row, "q1", "a1")
            grow_old(row)
        with CaptureQueriesContext(connection) as captured:
            plan_pruning(PruneRule(days=30), NOW)
        costs.append(len(captured))
    assert costs[0] == costs[1] <= 10


# --- the command -----------------------------------------------------------------------------------------------------


def run(*args: str) -> str:
    out = StringIO()
    call_command("prune_conversations", *args, stdout=out)
    return out.getvalue()


def test_the_command_first_lists_what_would_be_deleted(alice: User, make_instance: Make) -> None:
    row = make_instance(alice, title="Old plans")
    say(row, "q1", "a1")
    grow_old(row)
    said = run("--days", "30", "--owner", "alice", "--dry-run")
    assert f"{row.pk}  " in said
    assert "Old plans" in said
    assert "1 conversations would go, with 2 messages" in said
    assert AgentInstance.objects.exists()
    assert "0 conversations removed" in run("--days", "3000")
    assert "1 conversations removed" in run("--days", "30", "--owner", "alice")
    assert not AgentInstance.objects.exists()


def test_the_command_refuses_what_is_no_rule(db: None) -> None:
    for wrong in ((), ("--days", "-3"), ("--owner", "nobody")):
        with pytest.raises(CommandError):
            run(*wrong)


# --- pages -----------------------------------------------------------------------------------------------------------


def test_the_page_shows_a_plan_and_deletes_what_was_shown(
    keeper_client: Client, alice: User, make_instance: Make
) -> None:
    shown, later = make_instance(alice, title="<b>Shown</b>"), make_instance(alice)
    grow_old(shown)
    assert "Say how old" in keeper_client.get(f"{LIST}prune/?days=").content.decode()
    assert "There is no user" in keeper_client.get(f"{LIST}prune/?owner=carol").content.decode()
    page = keeper_client.get(f"{LIST}prune/?days=30").content.decode()
    assert "&lt;b&gt;Shown&lt;/b&gt;" in page
    assert "Delete this one" in page
    grow_old(later)  # it was not on the page, so it stays
    answer = keeper_client.post(f"{LIST}prune/?days=30", {"days": "30", "id": [shown.pk]}, follow=True)
    assert "1 conversation was removed." in answer.content.decode()
    assert list(AgentInstance.objects.all()) == [later]
    assert keeper_client.post(f"{LIST}prune/", {"days": "300", "id": [later.pk]}).status_code == 302
    assert AgentInstance.objects.exists()


def test_pages_need_permissions(keeper_client: Client, keeper_of_instances: User, conversation: AgentInstance) -> None:
    keeper_of_instances.user_permissions.set(Permission.objects.filter(codename="view_agentinstance"))
    for path in ("prune/?days=1", f"{conversation.pk}/config/"):
        assert keeper_client.get(LIST + path).status_code == 403
        assert (
            keeper_client.post(LIST + path, {"days": "0", "include_all": "on", "id": [conversation.pk]}).status_code
            == 403
        )
    assert keeper_client.get(f"{LIST}storage/").status_code == 200
    assert "prune/" not in keeper_client.get(LIST).content.decode()
    keeper_of_instances.user_permissions.clear()
    assert keeper_client.get(f"{LIST}storage/").status_code == 403
    assert AgentInstance.objects.exists()


def test_the_words_of_a_message_are_for_who_may_read_messages(
    keeper_client: Client, keeper_of_instances: User, alice: User, make_instance: Make
) -> None:
    said = make_instance(alice, "said", title="Secret words of a message")
    AgentInstance.objects.filter(pk=said.pk).update(title_is_provisional=True)
    make_instance(alice, "named", title="A name that was given")
    grow_old(*AgentInstance.objects.all())
    pages = [LIST, f"{LIST}{said.pk}/change/", f"{LIST}prune/?days=30"]

    def shown() -> list[bool]:
        return ["Secret words" in keeper_client.get(page).content.decode() for page in pages]

    def found() -> bool:
        return said.pk in keeper_client.get(f"{LIST}?q=Secret").content.decode()

    assert (shown(), found()) == ([False, False, False], False)
    assert "A name that was given" in keeper_client.get(LIST).content.decode()
    keeper_of_instances.user_permissions.add(Permission.objects.get(codename="view_message"))
    assert (shown(), found()) == ([True, True, True], True)


def test_the_database_reports_its_table_sizes(keeper_client: Client, conversation: AgentInstance) -> None:
    with CaptureQueriesContext(connection) as captured:
        size = database_size()
    assert not [query for query in captured if "COUNT(" in query["sql"].upper()]
    tables = {each.table: each for each in size.tables}
    messages = tables["think_sessions_message"]
    assert 0 < messages.index_bytes < messages.byte_size <= size.byte_size
    assert messages.what == "messages"
    assert [each.byte_size for each in size.tables] == sorted((t.byte_size for t in size.tables), reverse=True)
    assert "think_sessions_message" in keeper_client.get(f"{LIST}storage/").content.decode()


@pytest.mark.skipif(connection.vendor != "sqlite", reason="PostgreSQL always knows")
def test_what_cannot_be_measured_is_reported(keeper_client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table_sizes, "MAX_READ", 0)
    assert "too large to be read" in keeper_client.get(f"{LIST}storage/").content.decode()
    monkeypatch.undo()
    monkeypatch.setattr(table_sizes, "_SQLITE", "SELECT * FROM no_such_table")
    page = keeper_client.get(f"{LIST}storage/").content.decode()
    assert "built without its table of sizes" in page
    assert "The database takes" in page


def test_a_configuration_is_changed_as_its_class_allows(
    keeper_client: Client, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "config_model", Tone)
    url = f"{LIST}{conversation.pk}/config/?json"
    assert "What it has to fit" in keeper_client.get(url).content.decode()
    refused = keeper_client.post(url, {"value": '{"level": "high"}', "version": "0"}).content.decode()
    assert "colour: Field required" in refused
    assert "This is no JSON" in keeper_client.post(url, {"value": "{", "version": "0"}).content.decode()
    conversation.refresh_from_db()
    assert conversation.config_version == 0
    assert keeper_client.post(url, {"value": '{"colour": "red"}', "version": "0"}).status_code == 302
    conversation.refresh_from_db()
    assert (conversation.config, conversation.config_version) == ({"colour": "red", "level": 1}, 1)
    assert LogEntry.objects.get().get_change_message() == "Configuration changed."
    assert "red" in keeper_client.get(f"{LIST}{conversation.pk}/change/").content.decode()


class Manner(BaseModel):
    """How an agent speaks."""

    colour: Literal["red", "blue"] = Field(title="Colour of the head")
    level: int = Field(default=1, ge=0, le=5, description="From 0 to 5.")
    note: str | None = Field(default=None, max_length=40)
    loud: bool = False
    words: list[str] = []
    more: dict[str, int] = {}


def test_a_configuration_is_filled_in_as_a_form(
    keeper_client: Client, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Assistant, "config_model", Manner)
    url = f"{LIST}{conversation.pk}/config/"
    page = keeper_client.get(url).content.decode()
    for text in ("Colour of the head", "From 0 to 5.", 'type="checkbox"', "Words, one a line", "More, as JSON"):
        assert text in page
    assert "<textarea" in page
    filled = {"version": "0", "config_colour": "blue", "config_level": "9", "config_words": "", "config_more": "{}"}
    assert "less than or equal to 5" in keeper_client.post(url, filled).content.decode()
    filled |= {"config_level": "2", "config_loud": "on", "config_words": "one\n two \n", "config_more": '{"a": 1}'}
    assert (
        "is not one of the available choices"
        in keeper_client.post(url, {**filled, "config_colour": "green"}).content.decode()
    )
    conversation.refresh_from_db()
    assert conversation.config_version == 0
    assert keeper_client.post(url, filled).status_code == 302
    conversation.refresh_from_db()
    assert conversation.config == {
        "colour": "blue",
        "level": 2,
        "note": None,
        "loud": True,
        "words": ["one", "two"],
        "more": {"a": 1},
    }
    page = keeper_client.get(url).content.decode()
    assert '<option value="blue" selected>' in page
    assert "one\ntwo</textarea>" in page
    assert "Reload the page" in keeper_client.post(url, filled).content.decode()


def test_a_configuration_that_changed_meanwhile_is_not_overwritten(
    keeper_client: Client, conversation: AgentInstance
) -> None:
    save_config(key_of(conversation), {"a": 1})
    page = keeper_client.post(f"{LIST}{conversation.pk}/config/", {"value": "{}", "version": "0"}).content.decode()
    assert "Reload the page" in page
    conversation.refresh_from_db()
    assert conversation.config == {"a": 1}
    assert keeper_client.get(f"{LIST}unknown/config/").status_code == 404


@pytest.mark.django_db(transaction=True)
def test_the_state_is_changed_as_its_agent_allows_and_open_pages_get_it(
    keeper_client: Client, conversation: AgentInstance, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse_other_than_lists(_agent: Assistant, state: Any, _source: StateSource) -> None:
        if not isinstance(state, list):
            raise ValueError("canary")

    sent: list[int] = []
    monkeypatch.setattr(Assistant, "validate_state_change", refuse_other_than_lists)
    monkeypatch.setattr(synced_state, "notify_on_commit", lambda _group, event: sent.append(event["version"]))
    url = f"{LIST}{conversation.pk}/state/"
    assert url in keeper_client.get(f"{LIST}{conversation.pk}/change/").content.decode()
    refused = keeper_client.post(url, {"value": '{"a": 1}', "version": "0"}).content.decode()
    assert "State update rejected" in refused
    assert "canary" not in refused
    assert keeper_client.post(url, {"value": '["red"]', "version": "0"}).status_code == 302
    assert sent == [1]
    conversation.refresh_from_db()
    assert (conversation.state, conversation.state_version) == (["red"], 1)
    assert LogEntry.objects.get().get_change_message() == "State changed."
    assert "red" in keeper_client.get(url).content.decode()
    assert "Reload the page" in keeper_client.post(url, {"value": "[]", "version": "0"}).content.decode()
    AgentInstance.objects.update(agent="an-agent-that-is-gone")
    assert keeper_client.get(url).status_code == 404
    assert url not in keeper_client.get(f"{LIST}{conversation.pk}/change/").content.decode()


def test_costs_stand_in_lists_and_pages(
    keeper_client: Client, conversation: AgentInstance, make_instance: Make
) -> None:
    Session.objects.filter(scope=conversation.pk).update(cost=Decimal("1.25"), input_tokens=1000)
    child = ensure_instance(key_of(conversation).below("assistant", "child"))
    Session.objects.filter(scope=child.pk).update(cost=Decimal("0.5"))
    Turn.objects.update(cost=Decimal("1.25"))
    assert "$1.25" in keeper_client.get(LIST).content.decode()
    assert "$1.75 ($0.50 by sub-agents" in keeper_client.get(f"{LIST}{conversation.pk}/change/").content.decode()
    assert "1.25" in keeper_client.get("/admin/think_chat/turn/").content.decode()


def test_a_summary_that_staff_changes_is_sent_to_open_pages(
    conversation: AgentInstance, keeper_of_instances: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent: list[Any] = []
    monkeypatch.setattr(notifications, "notify_on_commit", lambda group, event: sent.append(event["session_id"]))
    session_id = conversation.session_id or ""
    made = add_compaction(session_id, first_id="q1", last_id="a1", summary="In short.")
    alone = add_compaction(make_session("u: hi").pk, first_id="u1", last_id="u1", summary="In short.")
    User.objects.filter(pk=keeper_of_instances.pk).update(is_superuser=True)
    client = Client()
    client.force_login(User.objects.get(pk=keeper_of_instances.pk))
    for row_id in (made.id, alone.id):
        url = f"/admin/think_sessions/compaction/{row_id}/change/"
        seen = client.get(url).context["adminform"].form.initial["seen"]
        assert client.post(url, {"summary": "Other words.", "seen": seen}).status_code == 302
        data = {"action": "undo", "_selected_action": [row_id]}
        assert client.post("/admin/think_sessions/compaction/", data).status_code == 302
    assert sent == [session_id, session_id]
    assert not Compaction.objects.filter(undone_at=None).exists()
