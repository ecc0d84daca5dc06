"""What is pruned: what is past its time, nothing else; a dry run changes nothing."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.utils import timezone

from chat.access import api_tokens
from chat.files import attachments
from chat.models import AgentInstance, ApiToken, Attachment, StreamSegment, Turn
from chat.operations import retention
from fibers.models import Fiber, FiberStep
from sessions_app.models import Message
from tests.db.chat.access_rows import all_rows
from tests.db.chat.conftest import make_turn
from thinkproject.kernel.object_storage import object_storage

LONG_AGO = timezone.now() - timedelta(days=400)
Capture = Callable[..., AbstractContextManager[Any]]


@pytest.fixture
def old_things(alice: User, conversation: AgentInstance, settings: Any, tmp_path: Any) -> dict[str, Turn]:
    backend = "django.core.files.storage.FileSystemStorage"
    settings.STORAGES = {**settings.STORAGES, "think": {"BACKEND": backend, "OPTIONS": {"location": str(tmp_path)}}}
    made = {name: make_turn(conversation, status=name) for name in ("completed", "failed", "running")}
    for turn in made.values():
        FiberStep.objects.create(fiber=turn.fiber, step_key="model:0", value={}, attempt=1)
        StreamSegment.objects.create(stream=turn.id, first_offset=0, last_offset=0, data="{}")
    StreamSegment.objects.update(created_at=LONG_AGO)
    Fiber.objects.exclude(status="running").update(finished_at=LONG_AGO)
    Turn.objects.exclude(fiber__status="running").update(finished_at=LONG_AGO)
    attachments.store_bytes(alice.pk, b"x", name="a.txt")
    Attachment.objects.update(created_at=LONG_AGO)
    api_tokens.create_token(alice, name="old")
    ApiToken.objects.update(revoked_at=LONG_AGO)
    return made


def test_a_dry_run_counts_and_changes_nothing(old_things: dict[str, Turn]) -> None:
    before = all_rows()
    out = StringIO()
    call_command("prune", dry_run=True, stdout=out)
    assert "streams: 2 would go" in out.getvalue()
    assert "journals: 1 would go" in out.getvalue()
    assert "files: 1 would go" in out.getvalue()
    assert "tokens: 1 would go" in out.getvalue()
    assert all_rows() == before


def test_pruning_takes_the_old_and_leaves_the_rest(
    old_things: dict[str, Turn], django_capture_on_commit_callbacks: Capture
) -> None:
    messages = Message.objects.count()
    turns = Turn.objects.count()
    out = StringIO()
    with django_capture_on_commit_callbacks(execute=True):
        call_command("prune", stdout=out)
    assert list(StreamSegment.objects.values_list("stream", flat=True)) == [old_things["running"].id]
    kept = set(FiberStep.objects.values_list("fiber__status", flat=True))
    assert kept == {"failed", "running"}  # a failed one may be run again, over its journal
    assert not Attachment.objects.exists()
    assert object_storage().listdir(attachments.FOLDER)[1] == []
    assert not ApiToken.objects.exists()
    assert (Message.objects.count(), Turn.objects.count()) == (messages, turns)
    assert "journals: 1 removed" in out.getvalue()


def test_a_kind_can_be_chosen(old_things: dict[str, Turn]) -> None:
    call_command("prune", "tokens", stdout=StringIO())
    assert not ApiToken.objects.exists()
    assert StreamSegment.objects.count() == 3


def test_journals_can_be_kept_for_ever(old_things: dict[str, Turn], settings: Any) -> None:
    settings.THINK_JOURNAL_DAYS = 0
    assert retention.prune_journals() == 0


def test_rounds_are_bounded_and_go_on(old_things: dict[str, Turn], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retention, "BATCH", 1)
    fiber = old_things["completed"].fiber
    for index in range(1, 4):
        FiberStep.objects.create(fiber=fiber, step_key=f"model:{index}", value={}, attempt=1)
    policy = next(policy for policy in retention.POLICIES if policy.name == "journals")
    assert list(retention.prune_all(policy)) == [1, 1, 1, 1]


def test_tidying_runs_every_policy_once(old_things: dict[str, Turn]) -> None:
    assert set(retention.tidy()) == {policy.name for policy in retention.POLICIES}
