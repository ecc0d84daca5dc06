"""The registry of threads and workspaces: verbs that race, and titles that are in the feed."""

from functools import partial

import pytest

from chat.agent.base import InstanceKey
from chat.feed.reading import open_feed, read_changes
from chat.threads import registry
from tests.db.races import together
from tools_app.models import StoredWorkspace, WorkspaceAttachment

pytestmark = [pytest.mark.database, pytest.mark.django_db(transaction=True)]
ROUTE = "coder-under-test"
ROUNDS = 6


def test_a_workspace_that_is_deleted_while_it_is_attached_is_attached_nowhere(
    coders_key: InstanceKey, coders: None
) -> None:
    registry.ensure_thread(coders_key, ROUTE, "here")
    for number in range(ROUNDS):
        made = registry.create_workspace(coders_key, f"Round {number}")
        errors = together(
            partial(registry.move_thread, coders_key, ROUTE, "here", made.id),
            partial(registry.delete_workspace, coders_key, ROUTE, made.id),
            partial(registry.move_thread, coders_key, ROUTE, f"new-{number}", made.id),
        )
        assert errors == []
        assert not StoredWorkspace.objects.filter(pk=made.stored_id).exists()
        assert not WorkspaceAttachment.objects.filter(workspace_id=made.stored_id).exists()
        assert registry.find_workspace(coders_key, made.id) is None


def test_a_thread_that_is_made_while_its_workspace_is_deleted_is_whole(coders_key: InstanceKey, coders: None) -> None:
    for number in range(ROUNDS):
        registry.start(coders_key)
        errors = together(
            partial(registry.create_thread, coders_key, ROUTE, f"Round {number}"),
            partial(registry.delete_workspace, coders_key, ROUTE, "default"),
        )
        assert errors == []
        known = set(StoredWorkspace.objects.values_list("pk", flat=True))
        assert set(WorkspaceAttachment.objects.values_list("workspace_id", flat=True)) <= known
    assert len(registry.threads_of(coders_key, ROUTE)) == ROUNDS


def test_a_new_title_of_a_workspace_is_in_the_feed(coders_key: InstanceKey, coders: None) -> None:
    made = registry.create_workspace(coders_key, "Parser")
    position = open_feed(coders_key.owner_id)
    registry.rename_workspace(coders_key, made.id, "Lexer")
    found = read_changes(coders_key.owner_id, position).changes
    assert [(each.type, each.op, each.key) for each in found] == [("workspace", "update", made.stored_id)]
    registry.rename_workspace(coders_key, made.id, "Lexer")  # nothing has changed
    assert read_changes(coders_key.owner_id, found[-1].seq).changes == []
