"""Take back what turns did: files as they were, the shown path shorter, and bring it back again.

An undo of a turn is one of all that followed it in its conversation, sub-agents included. Files and path change in one
transaction with the row of the undo (`Revert`): a crash leaves all of it or nothing. Effects of actions are undone one
at a time, by the ledger of actions, each after a person's decision. Nothing is deleted.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction
from django.db.models import Q

from chat.agent.base import InstanceKey
from chat.errors import InputInvalid, UndoBusy, UndoImpossible
from chat.instances.notifications import group_of, notify_conversation, notify_on_commit
from chat.instances.rows import descendants, find_instance, hold_instance, key_of
from chat.models import AgentInstance, AgentRun, Revert, Turn, new_revert_id
from chat.turns.admission.commands import written_text
from chat.turns.state.active import active_turns
from sessions_app.core.messages.messages import MessageRole
from sessions_app.messages import selectors
from sessions_app.messages.services import end_path_at
from tools_app.actions.ledger import effects_of_turns
from tools_app.models import ActionRecord
from tools_app.workspace.turn_files import ChangedFile, changed_files
from tools_app.workspace.undo import Undoable, undo_files, undoable

MAX_LEVELS: Final = 8
MAX_PARENTS: Final = 50
MAX_HIDDEN: Final = 100


_HINDRANCES: Final = {
    "": "another entry is in its place",
    "changed": "it was changed since",
    "too_large": "it was too large to be kept",
    "no_access": "its workspace cannot be changed from here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class UndoPreview:
    """The effect that an undo, or a redo, would have.

    `files`: those that change, and those that cannot, with their hindrance.
    `leaf_id`: the message that would end the shown path, empty for an empty one; `None` where the path cannot follow,
    because another branch is shown. `turn_count`: turns that are taken back. `effects`: of actions, newest first.
    """

    files: Sequence[Undoable]
    leaf_id: str | None
    question: str = ""  # text of the message that is taken back
    turn_count: int = 0
    effects: Sequence[ActionRecord] = field(default_factory=tuple)
    is_busy: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Undone:
    """An undo that was made. `left`: files that stay as they are, each with its hindrance."""

    revert: Revert
    done: Sequence[Undoable]
    left: Sequence[Undoable]


def find_conversation(key: InstanceKey) -> AgentInstance:
    """The row of a conversation. Errors: `UndoImpossible` before its first turn."""
    instance = find_instance(key)
    if instance is None:
        raise UndoImpossible
    return instance


def find_turn(key: InstanceKey, turn_id: str = "") -> Turn:
    """A turn of a conversation; without an id the last one whose question is shown. Errors: `UndoImpossible`."""
    instance = find_conversation(key)
    turns = Turn.objects.filter(instance=instance).select_related("instance").order_by("-position")
    if turn_id:
        found = turns.filter(pk=turn_id).first()
    else:
        recent = turns.filter(session_id=instance.session_id)[:MAX_HIDDEN]
        found = next((turn for turn in recent if _place_before(turn)[0] is not None), None)
    if found is None:
        raise UndoImpossible
    return found


def find_redoable(key: InstanceKey) -> Revert:
    """The undo that a redo takes back. Errors: `UndoImpossible`."""
    found = redoable(find_conversation(key))
    if found is None:
        raise UndoImpossible
    return found


def preview_undo(turn: Turn) -> UndoPreview:
    """Look at what an undo of this turn would do. Nothing is changed."""
    turns = turns_since(turn)
    leaf_id, question = _place_before(turn)
    return UndoPreview(
        files=undoable(kept_since(turn, turns), may_write=may_write(turn.instance)),
        leaf_id=leaf_id,
        question=question,
        turn_count=Turn.objects.filter(instance=turn.instance, position__gte=turn.position).count(),
        effects=_effects(turn, turns),
        is_busy=_is_busy(turn.instance),
    )


def undo_turn(
    turn: Turn, *, files: bool, messages: bool, actor_id: Any, choices: Mapping[int, int] | None = None
) -> Undone:
    """Take a turn back with all that followed it: its files, its messages, or both.

    `choices`: conflicts to overwrite all the same, as `undo_files` takes them. Durability: one transaction. Errors:
    `UndoBusy` while an agent works here, `UndoImpossible` where there is nothing of it, `InputInvalid`.
    """
    if not files and not messages:
        raise InputInvalid("An undo is of files, of messages, or of both.")
    with quiet(turn.instance) as instance:
        leaf_id, _ = _place_before(turn)
        if messages and leaf_id is None and not files:
            raise UndoImpossible
        revert = Revert(
            id=new_revert_id(),
            instance=instance,
            session_id=turn.session_id,
            turn_id=turn.pk,
            includes_files=files,
            includes_messages=messages and leaf_id is not None,
            actor_id=actor_id,
        )
        kept = kept_since(turn, turns_since(turn))
        return _carry_out(revert, kept if files else None, leaf_id if messages else None, choices)


def preview_redo(revert: Revert) -> UndoPreview:
    """Look at what a redo would do. Errors: `UndoImpossible`."""
    _check_newest(revert)
    files = undoable(_kept_by(revert), may_write=may_write(revert.instance)) if revert.includes_files else ()
    return UndoPreview(files=files, leaf_id=_place_again(revert), is_busy=_is_busy(revert.instance))


def redo(revert: Revert, *, actor_id: Any, choices: Mapping[int, int] | None = None) -> Undone:
    """Take an undo back. Only the newest one that still stands, until there is another turn. Errors: as `undo_turn`."""
    with quiet(revert.instance) as instance:
        _check_newest(revert)
        leaf_id = _place_again(revert)
        again = Revert(
            id=new_revert_id(),
            instance=instance,
            session_id=revert.session_id,
            turn_id=revert.turn_id,
            redoes=revert,
            includes_files=revert.includes_files,
            includes_messages=leaf_id is not None,
            actor_id=actor_id,
        )
        return _carry_out(again, _kept_by(revert) if revert.includes_files else None, leaf_id, choices)


def effects_since(turn: Turn) -> list[ActionRecord]:
    """The effects of actions that an undo of this turn is about, newest first."""
    return _effects(turn, turns_since(turn))


def reverts_of(instance: AgentInstance, *, limit: int) -> list[Revert]:
    """Undos and redos of a conversation, newest first. One query."""
    return list(Revert.objects.filter(instance=instance).order_by("-created_at", "-pk")[:limit])


def redoable(instance: AgentInstance) -> Revert | None:
    """The undo that a redo of this conversation would take back. Two queries."""
    undone = Revert.objects.filter(instance=instance, redoes=None, redone_by=None).order_by("-created_at", "-pk")
    newest = undone.select_related("instance").first()
    if newest is None or newest.session_id != instance.session_id:
        return None
    return None if Turn.objects.filter(instance=instance, accepted_at__gt=newest.created_at).exists() else newest


def changed_in_conversation(instance: AgentInstance, *, limit: int) -> list[ChangedFile]:
    """Files that are not as they were before the first turn of the conversation whose backups are still there."""
    first = Turn.objects.filter(instance=instance).order_by("position").first()
    if first is None:
        return []
    return changed_files(kept_since(first, turns_since(first)), limit=limit)


def _carry_out(revert: Revert, kept: Q | None, leaf_id: str | None, choices: Mapping[int, int] | None) -> Undone:
    """Change files and path and store the row, in the caller's transaction."""
    done: list[Undoable] = []
    left: list[Undoable] = []
    if kept is not None:
        writable = may_write(revert.instance)
        done, left = undo_files(kept, undo_id=revert.pk, may_write=writable, choices=choices)
    if leaf_id is not None:
        revert.leaf_before, revert.leaf_after = end_path_at(revert.session_id, leaf_id)
    if not done and revert.leaf_before == revert.leaf_after:
        raise UndoImpossible
    revert.file_count = sum(each.is_file for each in done)
    revert.left_count = sum(each.is_file for each in left)
    store_revert(revert)
    return Undone(revert=revert, done=done, left=left)


def store_revert(revert: Revert) -> None:
    """Insert the row of an undo, in the caller's transaction, and notify open pages after it."""
    revert.save(force_insert=True)
    notify_on_commit(group_of(key_of(revert.instance)), {"type": "transcript.changed"})
    notify_conversation(revert.instance.owner_id, revert.instance_id)


@contextmanager
def quiet(instance: AgentInstance) -> Iterator[AgentInstance]:
    """Open a transaction in which no turn of the conversation runs or begins. Errors: `UndoBusy`."""
    with transaction.atomic():
        hold_instance(instance)
        if _is_busy(instance):
            raise UndoBusy
        yield instance


def _is_busy(instance: AgentInstance) -> bool:
    family = AgentInstance.objects.filter(pk__in=[instance.pk, *descendants(instance.pk)])
    return any(active_turns(each.pk).exists() for each in family)


def turns_since(turn: Turn) -> list[str]:
    """Ids of a turn, of those after it in its conversation, and of those that sub-agents ran for them."""
    level = list(Turn.objects.filter(instance=turn.instance, position__gte=turn.position).values_list("pk", flat=True))
    found = list(level)
    for _ in range(MAX_LEVELS):
        runs = AgentRun.objects.filter(parent_turn__in=level, turn__isnull=False)
        level = list(runs.values_list("turn_id", flat=True))
        if not level:
            break
        found += level
    return found


def kept_since(turn: Turn, turns: Sequence[str]) -> Q:
    """Condition of what was kept for these turns, and for what was undone and redone since."""
    reverts = Revert.objects.filter(instance=turn.instance, created_at__gte=turn.accepted_at)
    return Q(turn_id__in=turns) | Q(turn_id__in=list(reverts.values_list("pk", flat=True)))


def _kept_by(revert: Revert) -> Q:
    """Condition of what an undo replaced, and of what was undone and redone after it."""
    since = Revert.objects.filter(instance_id=revert.instance_id, created_at__gte=revert.created_at)
    return Q(turn_id__in=list(since.values_list("pk", flat=True)))


def _effects(turn: Turn, turns: Sequence[str]) -> list[ActionRecord]:
    return effects_of_turns([turn.instance_id, *descendants(turn.instance_id)], turns)


def may_write(instance: AgentInstance) -> Q:
    """Condition of workspaces: the owner's, shared ones that the conversation may write to, directories on the disk."""
    family = [instance.pk, *descendants(instance.pk)]
    is_attached = Q(owner=None, attachments__scope__in=family, attachments__can_write=True)
    return Q(owner_id=instance.owner_id, owner__isnull=False) | is_attached | ~Q(root="")


def _place_before(turn: Turn) -> tuple[str | None, str]:
    """The message before the question of a turn, where the question is shown, and the text of the question."""
    instance = turn.instance
    if instance.session_id is None or instance.session_id != turn.session_id:
        return None, ""
    ids = [*turn.input_ids[:1], turn.assistant_id, *([turn.base_id] if turn.base_id else [])]
    found = selectors.find_messages(turn.session_id, ids)
    message = next((found[each] for each in ids if each in found and found[each].placed), None)
    for _ in range(MAX_PARENTS):
        if message is None or message.role == MessageRole.USER or message.parent_id is None:
            break
        message = selectors.get_message(turn.session_id, message.parent_id)
    if message is None or not selectors.is_on_path(turn.session_id, message.id):
        return None, ""
    return message.parent_id or "", written_text(message)


def _place_again(revert: Revert) -> str | None:
    """The message that ended the path before an undo, unless another one ends it by now."""
    if not revert.includes_messages or revert.instance.session_id != revert.session_id:
        return None
    if revert.leaf_before and not selectors.known_ids(revert.session_id, [revert.leaf_before]):
        return None  # it was deleted meanwhile
    shown = selectors.leaf_id(revert.session_id) or ""
    return revert.leaf_before if shown == revert.leaf_after else None


def _check_newest(revert: Revert) -> None:
    newest = redoable(revert.instance)
    if newest is None or newest.pk != revert.pk:
        raise UndoImpossible


def sentences_of(undone: Undone, word: str) -> list[str]:
    """Say in English what was done, and which files stay as they are. `word`: Undone, Redone."""
    count = undone.revert.file_count
    done = [f"{count} file{'' if count == 1 else 's'}"] if count else []
    done += ["the messages"] if undone.revert.includes_messages else []
    left = [each for each in undone.left if each.is_file]
    return [
        f"{word}: {' and '.join(done) or 'nothing'}.",
        *(f"{each.path} stays as it is: {_HINDRANCES[each.hindrance]}." for each in left),
    ]
