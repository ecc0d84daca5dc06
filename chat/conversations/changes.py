"""Changes of a conversation: made on the first write, renamed, pinned, put away, seen, shown at another branch.

Whether the user may do it was decided in `auth.py`; these functions take what it opened.
"""

from django.db import transaction
from django.utils import timezone

from chat.access.auth import OpenedAgent
from chat.core.model.chosen_model import NOTHING, ChosenModel
from chat.errors import AgentNotFound, InputInvalid
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit
from chat.instances.rows import ensure_instance, key_of
from chat.models import AgentInstance
from chat.people.projects import hold_project, move_to_project
from sessions_app.messages.services import select_leaf
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.phrases import Phrase

MAX_TITLE = 100


def create_instance(
    opened: OpenedAgent,
    *,
    title: str = "",
    title_is_provisional: bool = False,
    model_choice: ChosenModel = NOTHING,
    is_temporary: bool = False,
    project_id: str | None = None,
) -> AgentInstance:
    """Make the instance of this address with its session, or return the present one unchanged.

    A provisional title is only the first words that came to hand: a better one may take its place. The choice of a
    model was checked (`ModelChoices.check`). For `is_temporary` see `chat/operations/temporary.py`.
    `project_id`: of a project of its owner's.
    Safe to call twice and from two processes at once. Errors: `AgentNotFound` when its class is gone, `QuotaExceeded`,
    `ProjectNotFound`.
    """
    if opened.instance is not None:
        return opened.instance
    if opened.is_read_only:
        raise AgentNotFound
    with transaction.atomic():
        if project_id is not None:
            hold_project(opened.key.owner_id, project_id)
        return ensure_instance(
            opened.key,
            title=_clean_title(title),
            title_is_provisional=title_is_provisional,
            model_choice=model_choice.to_json(),
            is_temporary=is_temporary,
            project_id=project_id,
        )


def new_instance_name() -> str:
    """Generated name of a conversation that was given none."""
    return new_id("chat")


def rename_instance(instance: AgentInstance, title: str) -> None:
    """Set the conversation's title and notify the owner's open pages. Errors: `InputInvalid` when it is too long."""
    with transaction.atomic():
        AgentInstance.objects.filter(pk=instance.pk).update(title=_clean_title(title), title_is_provisional=False)
        notify_conversation(instance.owner_id, instance.pk)


def pin_instance(instance: AgentInstance, *, is_pinned: bool) -> None:
    """Keep the conversation at hand, or no longer. Recency stays as it is."""
    AgentInstance.objects.filter(pk=instance.pk).update(pinned_at=timezone.now() if is_pinned else None)


def archive_instance(instance: AgentInstance, *, is_archived: bool) -> None:
    """Put the conversation away, or restore it. It can be read, found by its id, and continued all the same."""
    AgentInstance.objects.filter(pk=instance.pk).update(archived_at=timezone.now() if is_archived else None)


def move_instance(instance: AgentInstance, project_id: str | None) -> None:
    """Put a conversation into a project of its owner's, or into none. Errors: `ProjectNotFound`, `InputInvalid`."""
    if instance.parent_id is not None:
        raise InputInvalid("A sub-agent is where its conversation is: move that one.")
    move_to_project(instance.owner_id, [instance.pk], project_id)


def mark_seen(instance: AgentInstance) -> None:
    """Note that the owner looks at the conversation now."""
    AgentInstance.objects.filter(pk=instance.pk).update(seen_at=timezone.now())


def show_message(instance: AgentInstance, message_id: str) -> str:
    """Show the newest path below a message of the current session; returns its end. Errors: `MessageNotFound`."""
    if instance.session_id is None:
        raise InputInvalid("This conversation has no messages.")
    with transaction.atomic():
        leaf_id = select_leaf(instance.session_id, message_id)
        notify_on_commit(group_of(key_of(instance)), {"type": "transcript.changed"})
        notify_conversation(instance.owner_id, instance.pk)
    return leaf_id


def _clean_title(title: str) -> str:
    cleaned = " ".join(title.split())
    if len(cleaned) > MAX_TITLE:
        raise InputInvalid(Phrase("A title has at most {limit} characters.", limit=MAX_TITLE), max_length=MAX_TITLE)
    return cleaned
