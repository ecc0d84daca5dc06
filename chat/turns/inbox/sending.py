"""Messages to agents of a room: a row in the inbox, and a turn of its agent unless one waits already.

Sync; runs on the database bridge. Rows are locked in the order room, agent: calls of one room are counted one by one.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.agent.registry import get_agent_class
from chat.agent.think import Think
from chat.errors import AgentCallRefused, InputInvalid, TurnConflict
from chat.instances.addresses import INBOX, MAX_HOPS
from chat.instances.rows import ensure_instance, hold_instance, key_of
from chat.members.selectors import user_key
from chat.models import AgentInstance, AgentMessage, Turn, TurnOptions
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Program
from chat.turns.guarding.handed_down import Denied, handed_down_to
from chat.turns.policies import delegating
from chat.turns.state.active import active_turns
from chat.turns.state.deferred_input import change_options
from chat.turns.state.inbox_rows import FROM_INBOX, waiting_messages
from thinkproject.kernel.phrases import Phrase
from tools_app.core.guard.reach import passed_on
from tools_app.core.guard.rules import Spot
from tools_app.guard.standings import GuardScope, see

MAX_TEXT_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A message to write. `sender`: a route name, empty for people and programs. `turn_id`: of the sender's turn.

    `waits`: a call of that turn waits for the reply, so that it is refused where it would wait for itself.
    """

    target: str
    content: str
    sender: str = ""
    request_id: str = ""
    turn_id: str = ""
    waits: bool = False
    chain: tuple[str, ...] = field(default=())


def room_of(key: InstanceKey) -> InstanceKey:
    """The room in which an instance takes part: the one above it where it is a member of that, else itself."""
    return key.parent if key.parent is not None and key.name == INBOX else key


def member_of(room: InstanceKey, agent: str) -> InstanceKey:
    """The address of an agent in a room: the room itself where it is its own agent."""
    return room if agent == room.agent else room.below(agent, INBOX)


def send(room_key: InstanceKey, letter: Letter) -> AgentMessage:
    """Put a message into the inbox of an agent, and have it answered.

    Durability: when this returns, the row is committed with a turn that takes it. The same request id gives the same
    row. Errors: `AgentNotFound`, `TurnConflict` for an agent that does not chat, `InputInvalid`, `AgentCallRefused`,
    those of admission; nothing is stored then.
    """
    if not issubclass(get_agent_class(letter.target), Think):
        raise TurnConflict(Phrase("Agent {agent!r} does not chat.", agent=letter.target))
    if not letter.content.strip() or len(letter.content.encode()) > MAX_TEXT_BYTES:
        raise InputInvalid(Phrase("A message to an agent has 1 to {limit} bytes.", limit=MAX_TEXT_BYTES))
    member_key = member_of(room_key, letter.target)
    if len(member_key.ancestors) > MAX_HOPS:
        raise AgentCallRefused(Phrase("Agents work for each other at most {limit} levels deep.", limit=MAX_HOPS))
    ensure_instance(member_key)  # in a transaction of its own: a new one locks its lineage and its owner
    with transaction.atomic():
        room = ensure_instance(room_key)
        hold_instance(room)
        known = letter.request_id and AgentMessage.objects.filter(room=room, request_id=letter.request_id).first()
        if known:
            return known
        if letter.waits:
            _refuse_loops(room, letter)
        row = AgentMessage.objects.create(
            room=room,
            sender=letter.sender,
            target=letter.target,
            content=letter.content,
            request_id=letter.request_id,
            call_chain=list(letter.chain),
            wait={} if letter.waits else None,
            asked_in_id=letter.turn_id or None,
        )
        member = ensure_instance(member_key)
        asked_in = Turn.objects.filter(pk=letter.turn_id).first() if letter.turn_id else None
        turn = wake(member, denied=handed_down_to(key_of(member)), asked_in=asked_in)
        place = GuardScope(session_id=turn.session_id, scope=member.pk, owner_id=member.owner_id, turn_id=turn.pk)
        see(place, passed_on(turn.session_id), at=Spot(name=f"agent message {row.pk}"))
        return row


def wake(member: AgentInstance, *, denied: Denied = (), asked_in: Turn | None = None) -> Turn:
    """The turn that waits to take the inbox, admitted now where there is none. In the caller's transaction.

    `denied`: lists of tools for it. `asked_in`: the turn whose author it is for. Errors: those of admission.
    """
    hold_instance(member)  # a turn that begins takes its messages with this lock: it has this one, or another comes
    waiting = [turn for turn in active_turns(member.pk).filter(started_at=None) if turn.options.get(FROM_INBOX)]
    if waiting:
        if denied:
            change_options(waiting[0].pk, lambda options: _denying(options, denied))
        return waiting[0]
    options: TurnOptions = {"inbox": True}
    with delegating():
        request = TurnRequest(
            intake=Program(messages=(), enters_at_start=True),
            options=_denying(options, denied),
            actor_id=None if asked_in is None else user_key(asked_in.author),
        )
        return admit(key_of(member), request).turn


def wake_again(instance_id: str) -> None:
    """Have what is left in an inbox answered. Safe to repeat; nothing where there is none."""
    with transaction.atomic():
        member = AgentInstance.objects.filter(pk=instance_id).first()
        if member is not None and waiting_messages(member).exists():
            wake(member)


def chain_of(key: InstanceKey, turn_ids: list[str]) -> tuple[str, ...]:
    """The agents that wait for what a turn does, the first one first, and its own last: also those of rooms above.

    `turn_ids`: the turn, and those that it goes on from.
    """
    room = room_of(key)
    above = [each.agent for each in room.ancestors]
    asked = AgentMessage.objects.filter(turn_id__in=turn_ids, processed_at=None).values_list("call_chain", flat=True)
    return tuple(dict.fromkeys([*above, *(agent for chain in asked for agent in chain), key.agent]))


def _denying(options: TurnOptions, denied: Denied) -> TurnOptions:
    lists = [*options.get("denied", []), *(list(patterns) for patterns in denied)]
    return {**options, "denied": lists} if lists else options


def _refuse_loops(room: AgentInstance, letter: Letter) -> None:
    """Errors: `AgentCallRefused` for a call that would wait, in the end, for the agent that makes it."""
    agent_class: Any = get_agent_class(letter.target)
    if letter.target in letter.chain and not agent_class.allows_recursion:
        raise AgentCallRefused(
            Phrase(
                "Agent {agent!r} waits for this itself ({chain}): that would be a loop.",
                agent=letter.target,
                chain=" → ".join(letter.chain),
            )
        )
    calls = AgentMessage.objects.filter(room=room, processed_at=None, wait__isnull=False)
    waits_for: dict[str, set[str]] = {}
    for sender, target in calls.values_list("sender", "target"):
        waits_for.setdefault(sender, set()).add(target)
    seen, edge = {letter.target}, [letter.target]
    while edge:
        new = waits_for.get(edge.pop(), set()) - seen
        seen |= new
        edge += new
    if letter.sender in seen:
        raise AgentCallRefused(
            Phrase(
                "Agent {agent!r} waits for {sender!r} at this moment: each would wait for the other.",
                agent=letter.target,
                sender=letter.sender,
            )
        )
