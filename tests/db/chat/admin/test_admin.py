"""The admin: read-only, bounded lists, actions with permissions, the exact request of each step."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.admin import site
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.access import api_tokens
from chat.admin.columns import STATUS_WORDS
from chat.files import attachments
from chat.models import AgentInstance, ApiToken, Attachment, StreamSegment, Turn
from chat.turns.state.status import TurnStatus
from fibers.models import Fiber, FiberStep
from tests.db.chat.conftest import make_turn, say
from thinkproject.kernel.jsonvalue import fingerprint

LISTS = ["agentinstance", "turn", "apitoken", "attachment", "streamsegment"]
Make = Callable[..., AgentInstance]


@pytest.fixture
def viewer(db: None) -> User:
    """May look at everything of the chat, and nothing more."""
    user = User.objects.create_user("staff", password="x", is_staff=True)
    wanted = Permission.objects.filter(content_type__app_label="think_chat", codename__startswith="view_")
    user.user_permissions.set(wanted)
    return user


@pytest.fixture
def viewer_client(viewer: User) -> Client:
    made = Client()
    made.force_login(viewer)
    return made


def allow(user: User, *codenames: str) -> None:
    user.user_permissions.add(*Permission.objects.filter(codename__in=codenames))


def act(client: Client, model: str, action: str, *keys: Any, confirmed: bool = True) -> Any:
    data = {
        "action": action,
        "_selected_action": [str(key) for key in keys],
        **({"confirmed": "yes"} if confirmed else {}),
    }
    return client.post(f"/admin/think_chat/{model}/", data, follow=True)


@pytest.mark.parametrize("model", LISTS)
def test_lists_cost_the_same_for_any_length(
    viewer_client: Client, alice: User, conversation: AgentInstance, make_instance: Make, model: str
) -> None:
    def fill(count: int) -> None:
        for _ in range(count):
            instance = make_instance(alice)
            turn = say(instance, "q", "a")
            StreamSegment.objects.create(stream=turn.id, first_offset=0, last_offset=0, data="{}")
            api_tokens.create_token(alice, name="t")
            attachments.store_bytes(alice.pk, b"x", name="a.txt")

    def cost() -> list[str]:
        with CaptureQueriesContext(connection) as queries:
            assert viewer_client.get(f"/admin/think_chat/{model}/?_facets=True").status_code == 200
        return [query["sql"] for query in queries]

    fill(1)
    few = len(cost())
    fill(8)
    queries = cost()
    assert len(queries) == few
    counts = [sql for sql in queries if "COUNT(" in sql.upper() and f"think_chat_{model}" in sql]
    assert all("LIMIT" in sql and "SUM(" not in sql and "LENGTH(" not in sql for sql in counts)


@pytest.mark.parametrize("model", LISTS)
def test_nothing_is_added_or_edited(viewer_client: Client, model: str) -> None:
    User.objects.update(is_superuser=True)
    assert viewer_client.get(f"/admin/think_chat/{model}/add/").status_code == 403


def test_a_turn_shows_exactly_what_the_model_was_asked(viewer_client: Client, conversation: AgentInstance) -> None:
    turn = make_turn(conversation, model_name="openai/x")
    body = {"model": "x", "messages": [{"role": "user", "content": "<b>hostile</b>"}]}
    request = {"hash": fingerprint(body), "shared_messages": 0, "messages_key": "messages", "body": body}
    record = {"finish": "stop", "request": request}
    FiberStep.objects.create(fiber=turn.fiber, step_key="model:0", value=record, attempt=1)
    page = viewer_client.get(f"/admin/think_chat/turn/{turn.id}/change/").content.decode()
    assert "&lt;b&gt;hostile&lt;/b&gt;" in page
    assert "<b>hostile</b>" not in page
    assert "incomplete" not in page
    assert f"/admin/think_fibers/fiber/{turn.fiber_id}/change/" in page
    assert f"/admin/think_chat/agentinstance/{conversation.id}/change/" in page


def test_stopping_needs_a_permission(viewer_client: Client, viewer: User, conversation: AgentInstance) -> None:
    turn = make_turn(conversation, status="running")
    act(viewer_client, "turn", "cancel_turns", turn.pk)
    turn.fiber.refresh_from_db()
    assert turn.fiber.cancel_requested_at is None
    allow(viewer, "change_turn")
    assert b"1 of 1 stopped" in act(viewer_client, "turn", "cancel_turns", turn.pk).content
    turn.fiber.refresh_from_db()
    assert turn.fiber.cancel_requested_at is not None


def test_a_failed_turn_runs_again(viewer_client: Client, viewer: User, conversation: AgentInstance) -> None:
    failed, done = make_turn(conversation, status="failed"), make_turn(conversation)
    allow(viewer, "change_turn")
    assert b"1 of 2 is waiting" in act(viewer_client, "turn", "requeue_turns", failed.pk, done.pk).content
    failed.fiber.refresh_from_db()
    assert failed.fiber.status == "pending"


def test_a_token_is_revoked_and_never_shown(viewer_client: Client, viewer: User, alice: User) -> None:
    row, secret = api_tokens.create_token(alice, name="laptop")
    page = viewer_client.get(f"/admin/think_chat/apitoken/{row.pk}/change/").content.decode()
    assert row.token_hash not in page
    assert secret not in page
    allow(viewer, "change_apitoken")
    act(viewer_client, "apitoken", "revoke_tokens", row.pk)
    assert ApiToken.objects.get().revoked_at is not None


def test_conversations_and_files_are_deleted_by_permission(
    viewer_client: Client, viewer: User, alice: User, conversation: AgentInstance
) -> None:
    row = attachments.store_bytes(alice.pk, b"x", name="a.txt")
    act(viewer_client, "agentinstance", "delete_conversations", conversation.pk)
    act(viewer_client, "attachment", "delete_files", row.pk)
    assert (AgentInstance.objects.count(), Attachment.objects.count()) == (1, 1)
    allow(viewer, "delete_agentinstance", "delete_attachment")
    act(viewer_client, "agentinstance", "delete_conversations", conversation.pk)
    act(viewer_client, "attachment", "delete_files", row.pk)
    assert (AgentInstance.objects.count(), Attachment.objects.count(), Turn.objects.count()) == (0, 0, 0)


@pytest.mark.parametrize(
    ("model", "query"),
    [
        ("agentinstance", "q=talk&agent=assistant"),
        ("turn", "q=x&status=completed"),
        ("attachment", "q=a&claimed=0"),
        ("streamsegment", "q=trn"),
        ("apitoken", "q=think_"),
    ],
)
def test_search_and_filters_work(viewer_client: Client, conversation: AgentInstance, model: str, query: str) -> None:
    assert viewer_client.get(f"/admin/think_chat/{model}/?{query}").status_code == 200


@pytest.mark.parametrize(
    ("word", "status", "reason"),
    [
        ("pending", "pending", ""),
        ("running", "running", ""),
        ("running", "parked", ""),
        ("completed", "completed", ""),
        ("aborted", "cancelled", "stopped"),
        ("skipped", "cancelled", "skipped"),
        ("error", "failed", ""),
        ("error", "interrupted", ""),
    ],
)
def test_turns_are_filtered_by_the_words_of_their_rows(
    viewer_client: Client, conversation: AgentInstance, word: str, status: str, reason: str
) -> None:
    Turn.objects.all().delete()
    turn = make_turn(conversation, status=status)
    Fiber.objects.filter(pk=turn.fiber_id).update(reason=reason)
    page = viewer_client.get("/admin/think_chat/turn/").content.decode()
    words = {status.value for status in TurnStatus}
    assert f'<span class="think-state think-state-{word}">{STATUS_WORDS[TurnStatus(word)]}</span>' in page
    assert all(f"?status={each}" in page for each in words)
    found = {
        each
        for each in words
        if quote(turn.pk) in viewer_client.get(f"/admin/think_chat/turn/?status={each}").content.decode()
    }
    assert found == {word}


def test_no_column_bears_the_name_of_a_field() -> None:
    """The admin would show the field, and never ask the column."""
    shadowed = [
        f"{model.__name__}.{name}"
        for model, shown in site._registry.items()
        for name in shown.list_display
        if isinstance(name, str)
        and name in {field.name for field in model._meta.concrete_fields}
        and any(name in vars(each) for each in type(shown).__mro__)
    ]
    assert site._registry
    assert shadowed == []
