"""A deleted conversation with everything that can be in one, and a walk over every list there is: none names it."""

from decimal import Decimal

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from chat.agent.base import InstanceKey
from chat.errors import InvitationNotFound
from chat.files import attachments
from chat.instances.rows import ensure_instance, key_of
from chat.members.services import accept_invitation, add_member, invite
from chat.models import AgentInstance, MessageFeedback, Role
from chat.operations.deleted import put_into_deleted
from chat.shares.services import NewShare, make_link
from fibers.core.schedules.timing import ScheduleKind, Timing
from fibers.schedules.services import ScheduleDraft, create_schedule
from tests.db.chat.conftest import ApiClient, interrupted_fiber, say
from tests.db.chat.http.api.questions import ask
from thinkproject.api import api

TITLE = "Zebra at midnight"
WORD = "xylophone"
NAMES_THEM = {"/api/v1/deleted"}
"""What lists deleted conversations."""


@pytest.fixture
def crowded(alice: User, bob: User) -> AgentInstance:
    """Deleted, with a sub-agent, turns, a file, a schedule, work, a question, a member, a link and feedback."""
    key = InstanceKey(owner_id=alice.pk, agent="assistant", name="zebra")
    instance = ensure_instance(key, title=TITLE)
    below = ensure_instance(InstanceKey(owner_id=alice.pk, agent="assistant", name="below", parent=key_of(instance)))
    say(instance, f"{WORD} question", f"{WORD} answer", model_name="acme", cost=Decimal("0.5"))
    say(below, f"{WORD} asked below", f"{WORD} answered below")
    row = attachments.store_bytes(alice.pk, b"hello", name=f"{WORD}.txt")
    attachments.bind(alice.pk, [row.pk], instance)
    timing = Timing(kind=ScheduleKind.INTERVAL, spec="3600")
    create_schedule(
        ScheduleDraft(scope=instance.pk, timing=timing, function="x", owner_id=alice.pk, title=f"{WORD} schedule")
    )
    interrupted_fiber(alice, instance)
    ask(instance, "c1", lasting=True)
    add_member(instance, bob.username, Role.APPROVER, by=alice.pk)
    make_link(instance, NewShare(days=1))
    MessageFeedback.objects.create(
        instance=instance, session_id=str(instance.session_id), user=alice, message_id=f"{WORD} answer", is_good=False
    )
    return instance


def lists() -> list[str]:
    """The addresses of the API that need nothing to be filled in."""
    paths = api.get_openapi_schema(path_prefix="/api/v1/")["paths"]
    return sorted(path for path, verbs in paths.items() if "get" in verbs and "{" not in path)


def marks_of(instance: AgentInstance) -> list[str]:
    return [TITLE, WORD, *AgentInstance.everything.values_list("pk", flat=True)]


def found_in(text: str, marks: list[str]) -> list[str]:
    return [mark for mark in marks if mark in text]


def asked_with(path: str) -> str:
    """Queries that make a list say the most."""
    more = {
        "/api/v1/search": f"?q={WORD}",
        "/api/v1/usage": "?days=30",
        "/api/v1/work": "?section=ended",
        "/api/v1/models": "?agent=assistant",
        "/api/v1/instances": f"?search={TITLE.split(maxsplit=1)[0]}",
    }
    return path + more.get(path, "")


@pytest.mark.parametrize("who", ["alice", "bob"])
def test_no_list_of_the_api_names_it(crowded: AgentInstance, request: pytest.FixtureRequest, who: str) -> None:
    marks = marks_of(crowded)
    client = ApiClient(request.getfixturevalue(who)).http
    walked = [asked_with(path) for path in lists() if path not in NAMES_THEM]
    walked += ["/api/v1/work?section=now", "/api/v1/work?section=schedules", "/api/v1/instances?archived=true"]
    before = {path: found_in(client.get(path).content.decode(), marks) for path in walked}
    assert any(before.values())  # the walk would see it
    put_into_deleted([crowded])
    after = {path: found for path in walked if (found := found_in(client.get(path).content.decode(), marks))}
    assert after == {}
    assert len(walked) > 30


def test_no_page_of_the_admin_lists_it(crowded: AgentInstance, alice: User) -> None:
    marks = marks_of(crowded)
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    client = Client()
    client.force_login(User.objects.get(pk=alice.pk))
    pages = [
        reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist") for model in admin.site._registry
    ]
    pages.append(reverse("admin:index"))
    before = {page: found_in(client.get(page).content.decode(), marks) for page in pages}
    assert any(before.values())
    put_into_deleted([crowded])
    after = {page: found for page in pages if (found := found_in(client.get(page).content.decode(), marks))}
    assert sorted(after) == []


def test_an_invitation_into_it_does_not_work(crowded: AgentInstance, alice: User) -> None:
    _, secret = invite(crowded, Role.READER, by=alice.pk, days=1)
    put_into_deleted([crowded])
    carol = User.objects.create_user("carol")
    with pytest.raises(InvitationNotFound):
        accept_invitation(carol, secret)


def test_the_quota_is_shown_with_it(crowded: AgentInstance, as_alice: ApiClient) -> None:
    def used() -> int:
        limits = {limit["name"]: limit["used"] for limit in as_alice.get("/usage/limits").json()}
        return int(limits["conversations"])

    assert used() == 2
    put_into_deleted([crowded])
    assert used() == 2
