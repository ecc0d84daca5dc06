"""Messages that wait for their turn: their content and their order may still be changed by the person who sent them."""

from collections.abc import Sequence

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.errors import TurnConflict
from chat.files import attachments
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit
from chat.instances.rows import find_instance, hold_instance, key_of
from chat.models import AgentInstance, Turn
from chat.turns.admission.intake import Submit, adopt_files_of, in_current_zone, resolve
from chat.turns.admission.overlap import waiting_turns
from chat.turns.admission.oversized import fit_intake
from chat.turns.state.active import lane_of
from fibers.services import hold_pending, reorder_pending
from sessions_app.core.messages.shapes import NewMessage
from sessions_app.messages.queue import edit_queued, order_queue

NOT_WAITING = "This message is not waiting any more."


def edit_waiting(turn_id: str, message: NewMessage, *, version: int) -> int:
    """Give a waiting message other content; its place and its id stay. Returns its new version.

    Durability: what is stored when this returns is answered. Errors: `TurnConflict` where it does not wait any more or
    is of another version by now, `InputInvalid`, `AttachmentInvalid`, `MessageInvalid`.
    """
    turn = Turn.objects.select_related("instance").get(pk=turn_id)
    if len(turn.input_ids) != 1:
        raise TurnConflict(NOT_WAITING)
    key = key_of(turn.instance)
    intake, file_ids = adopt_files_of(key, Submit(message={**message, "id": turn.input_ids[0], "role": "user"}))
    intake, original_ids = fit_intake(key, intake)
    [said] = resolve(turn.session_id, in_current_zone(intake)).new_messages
    with transaction.atomic():
        if not hold_pending(turn.fiber_id):
            raise TurnConflict(NOT_WAITING)
        if turn.instance.owner_id is not None:
            attachments.bind(turn.instance.owner_id, [*file_ids, *original_ids], turn.instance)
        changed = edit_queued(turn.session_id, said, version=version)
        if changed is None:
            raise TurnConflict("This message has been changed meanwhile. Look at it again.")
        _notify(turn.instance)
        return changed


def order_waiting(key: InstanceKey, turn_ids: Sequence[str]) -> None:
    """Have the turns that wait run in this order. All of them are named, each once.

    Errors: `TurnConflict` where others wait by now than are named; nothing is changed.
    """
    instance = find_instance(key)
    if instance is None:
        raise TurnConflict(NOT_WAITING)
    fibers = _fibers_of(instance, turn_ids)
    with transaction.atomic():
        if not reorder_pending(lane_of(instance.pk), fibers):
            raise TurnConflict(NOT_WAITING)
        hold_instance(instance)
        _fibers_of(instance, turn_ids)
        if instance.session_id is not None:
            order_queue(instance.session_id, turn_ids)
        _notify(instance)


def _fibers_of(instance: AgentInstance, turn_ids: Sequence[str]) -> list[str]:
    waiting = {turn.pk: turn.fiber_id for turn in waiting_turns(instance)}
    if sorted(turn_ids) != sorted(waiting):
        raise TurnConflict("Other messages wait by now. Look at them again.")
    return [waiting[turn_id] for turn_id in turn_ids]


def _notify(instance: AgentInstance) -> None:
    notify_on_commit(group_of(key_of(instance)), {"type": "transcript.changed"})
    notify_conversation(instance.owner_id, instance.pk)
