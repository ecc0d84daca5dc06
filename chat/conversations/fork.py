"""A conversation that goes on from a message of another one, as an instance of its own: both run side by side."""

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.agent.registry import is_served
from chat.errors import AgentNotFound, InputInvalid
from chat.files import attachments
from chat.instances.rows import ensure_instance, hold_instance, key_of
from chat.models import AgentInstance
from chat.people.projects import hold_project
from chat.turns.admission.rule_answers import place_of
from sessions_app.messages.services import delete_session, fork_session
from sessions_app.messages.sessions import hide_sessions
from sessions_app.models import Session
from thinkproject.kernel.ids import new_id
from tools_app.core.permissions.rules import RuleLevel
from tools_app.guard.standings import GuardScope, copy_guard
from tools_app.permissions.rows import copy_rules
from tools_app.workspace.copying import copy_workspaces


@transaction.atomic
def fork_instance(instance: AgentInstance, message_id: str, *, session_id: str = "", title: str = "") -> AgentInstance:
    """Make a conversation that shares the path up to a message and goes on alone; returns the new one.

    The message is one of the current session, or of `session_id`. Configuration, state, the chosen model and the
    project come along, turns that run do not. The files of its workspace are copied as they are now, so that neither
    conversation changes those of the other. What rules deny there is denied here, and what was allowed is asked again.
    Attached files become shared, so that neither takes them along when it is deleted.
    Errors: `MessageNotFound`, `InputInvalid` without messages, `QuotaExceeded`, `AgentNotFound` when the class is gone;
    `FileFailed` with `ENOSPC` without room for the copy.
    """
    if not is_served(instance.agent):
        raise AgentNotFound
    parent = key_of(instance).parent
    if instance.project_id is not None:
        hold_project(instance.owner_id, instance.project_id)
    made = ensure_instance(
        InstanceKey(owner_id=instance.owner_id, agent=instance.agent, name=new_id("chat"), parent=parent),
        title=title or instance.title,
        is_temporary=instance.is_temporary,
        project_id=instance.project_id,
    )
    for row in sorted((instance, made), key=lambda row: row.pk):  # rows of one kind in one order
        hold_instance(row)
    source_id = session_id or instance.session_id
    if source_id is None or not Session.objects.filter(pk=source_id, scope=instance.pk).exists():
        raise InputInvalid("This conversation has no such messages.")
    former_id = made.session_id
    fork = fork_session(source_id, message_id, scope=made.pk)
    if made.is_temporary:
        hide_sessions([made.pk], is_hidden=True)
    copy_guard(source_id, GuardScope(session_id=fork.pk, scope=made.pk, owner_id=made.owner_id))
    copy_rules(instance.pk, place_of(made, RuleLevel.CONVERSATION))
    AgentInstance.objects.filter(pk=made.pk).update(
        session=fork,
        state=instance.state,
        state_version=instance.state_version,
        config=instance.config,
        config_version=instance.config_version,
        model_choice=instance.model_choice,
    )
    if former_id is not None:
        delete_session(former_id)  # the empty one that a new instance begins with
    attachments.share_files_of(instance)
    copy_workspaces(instance.pk, made.pk, instance.owner_id)
    made.refresh_from_db()
    return made
