"""Conversations that come from elsewhere: an exported history becomes one of an instance's, or an instance of its own.

What a person uploads is checked like what a client sends. Messages of role system are refused: those are the
developer's to say. Blocks are filled by the policy that the API follows, and by no other (`BlockPolicy`).
"""

from dataclasses import dataclass
from typing import Any

from asgiref.sync import async_to_sync
from django.db import transaction

from chat.access.auth import OpenedAgent
from chat.conversations.changes import create_instance, rename_instance
from chat.errors import InputInvalid, QuotaExceeded
from chat.instance.context import block_policy
from chat.instances.quota import count_messages, recount_if_due
from chat.instances.rows import hold_instance, key_of
from chat.models import AgentInstance
from chat.operations.removal import delete_instance
from chat.runtime.sessions import check_session_quota, choose, has_room_for_sessions, keeps_sessions, too_many_sessions
from sessions_app.messages.services import delete_session
from sessions_app.models import Session
from sessions_app.transfer.import_session import Imported, ImportRules, import_session, is_importing, lines_of
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase
from tools_app.core.guard.rules import SeenText, Spot
from tools_app.core.origins import Origin
from tools_app.guard.standings import GuardScope, see


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportResult:
    """Result of an import. `left_out`: labels of blocks that users may not write in this agent."""

    instance_id: str
    session_id: str
    message_count: int
    left_out: tuple[str, ...]


def import_conversation(opened: OpenedAgent, file: Any, *, title: str = "") -> ImportResult:
    """Make a conversation of its own. `opened` has no instance yet.

    Errors: `ExportInvalid`, `QuotaExceeded`, `AgentNotFound`; then there is no new conversation.
    """
    instance = create_instance(opened, title=title)
    try:
        imported = _import(instance, file)
    except ThinkError:
        delete_instance(instance)
        raise
    with transaction.atomic():
        hold_instance(instance)
        former_id = instance.session_id
        choose(instance, imported.session_id)
        if former_id is not None:
            delete_session(former_id)  # the empty one that a new instance begins with
        name = Session.objects.values_list("name", flat=True).get(pk=imported.session_id)
        if not title and name:
            rename_instance(instance, name[:100])
    return _brought(instance, imported)


def import_history(instance: AgentInstance, file: Any) -> ImportResult:
    """Add a history to a conversation; the current one stays current.

    Errors: `InputInvalid` when the agent does not keep several, `ExportInvalid`, `QuotaExceeded`.
    """
    if not keeps_sessions(instance.agent):
        raise InputInvalid(
            Phrase("Agent {agent!r} keeps one history; import it as a conversation of its own.", agent=instance.agent)
        )
    check_session_quota(instance)
    imported = _import(instance, file)
    with transaction.atomic():
        hold_instance(instance)
        is_kept = has_room_for_sessions(instance, spare=0)  # others may have been imported meanwhile
        if not is_kept:
            delete_session(imported.session_id)
    if not is_kept:
        raise too_many_sessions()
    return _brought(instance, imported)


def _import(instance: AgentInstance, file: Any) -> Imported:
    key = key_of(instance)
    policy = async_to_sync(block_policy)(key)
    recount_if_due(key.owner_id)
    needs = 1  # room in the minute for the first message; the others fill it

    def begin() -> None:
        if key.owner_id is None:
            return
        lock_owner(key.owner_id)
        if is_importing(key.owner_id):
            raise QuotaExceeded(
                "Another import of yours is still running. Wait until it has finished.", retry_after_seconds=10
            )

    def admit(count: int, byte_count: int) -> None:
        nonlocal needs
        if key.owner_id is not None:
            count_messages(key.owner_id, count, byte_count, paced=needs)
        needs = 0

    rules = ImportRules(blocks=policy, begin=begin, admit=admit)
    imported = import_session(lines_of(file), owner_id=key.owner_id, scope=instance.pk, rules=rules)
    if imported.message_count:  # the writer of the file may have written all of it
        place = GuardScope(session_id=imported.session_id, scope=instance.pk, owner_id=key.owner_id)
        see(place, [SeenText(Origin.FILE, str(getattr(file, "name", "") or ""))], at=Spot(name="import"))
    return imported


def _brought(instance: AgentInstance, imported: Imported) -> ImportResult:
    return ImportResult(
        instance_id=instance.pk,
        session_id=imported.session_id,
        message_count=imported.message_count,
        left_out=imported.left_out,
    )
