"""Facts about a turn, read once per attempt."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from chat.agent.base import InstanceKey
from chat.core.context.person_instructions import NO_INSTRUCTIONS, PersonInstructions
from chat.core.context.project_instructions import NO_PROJECT, ProjectContext
from chat.core.loop.request_records import NOTHING_SENT, ChainEnd, SentRequest
from chat.instances.rows import key_of
from chat.members.selectors import user_key
from chat.models import AgentInstance, Turn, TurnTrigger
from chat.turns.background.costs import usage_of_turn
from chat.turns.background.titles import needs_title
from chat.turns.guarding.handed_down import Denied
from sessions_app.core.messages.forms import NO_FORMS, KeptForms
from sessions_app.core.messages.parts import is_tool
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.usage import SessionUsage
from thinkproject.kernel.jsonvalue import JSONObject


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """A runner's facts about its turn. Read once per attempt."""

    turn_id: str
    request_id: str
    key: InstanceKey
    author: str = ""  # the member who asked; empty: the owner
    session_id: str
    generation: int  # at its begin; one of the instance's other sessions may be cleared since
    trigger: TurnTrigger
    assistant_id: str
    leaf_id: str | None  # the message that the answer hangs below
    parent_id: str | None = None  # the turn that this one goes on from by itself
    goes_on_from: tuple[str, ...] = ()  # the turns of the same answer before this one, oldest first
    body: JSONObject
    accepted_at: datetime
    history: list[Message] | None = None  # the path to the leaf, where the begin has just read it
    forms: KeptForms = NO_FORMS  # of its messages, where they stay in the worker
    is_untitled: bool = False  # its conversation has no title but its first words
    client_tools: tuple[JSONObject, ...] = ()  # as the last request of a client gave them
    caller_tools: tuple[JSONObject, ...] = ()  # of the program that asked for this turn
    model_choice: JSONObject | None = None  # of the conversation when the turn began
    denied: Denied = ()  # patterns of tools that the turn which has started this one denies
    is_of_inbox: bool = False  # it answers messages of agents, or goes on from a turn that does
    direct_call: JSONObject | None = None  # the one call that the turn makes instead of asking a model
    opening: JSONObject | None = None  # of a command: the calls before the answer, the line after them, the model
    instance: AgentInstance  # as the begin has read it
    spent: SessionUsage  # by earlier attempts; the session's usage has it
    is_skipped: bool = False  # the turn is over without having begun
    has_mcp_servers: bool = False  # there may be some for the conversation
    has_extensions: bool = True  # any is stored that may concern the conversation
    has_guard: bool = False  # text of others was in the conversation
    instructions: PersonInstructions = NO_INSTRUCTIONS  # of the person who asked
    project: ProjectContext = NO_PROJECT  # that the conversation is in, where its owner asked
    has_rules: bool = False  # a rule about calls is stored that may concern it
    position: int = 0  # in the conversation
    last_request: ChainEnd | None = None  # the record of the last request before this turn
    sent_before: SentRequest = NOTHING_SENT  # the whole of it, where an earlier attempt has gone on from it

    @property
    def user_id(self) -> Any:
        """Key of who asked: calls run with the rights of that person, however they are approved."""
        return user_key(self.author) or self.key.owner_id

    @property
    def is_continuation(self) -> bool:
        """Whether the turn goes on without a new message."""
        return self.trigger is TurnTrigger.CONTINUE


def facts_of(
    turn: Turn,
    leaf_id: str | None,
    *,
    is_skipped: bool = False,
) -> TurnFacts:
    """Facts about a turn whose answer hangs below this message. Needs its instance loaded."""
    return TurnFacts(
        turn_id=turn.pk,
        request_id=turn.request_id,
        key=key_of(turn.instance),
        author=turn.author,
        session_id=turn.session_id,
        generation=turn.generation,
        trigger=TurnTrigger(turn.trigger),
        assistant_id=turn.assistant_id,
        leaf_id=leaf_id,
        parent_id=turn.parent_id,
        goes_on_from=tuple(turn.options.get("goes_on_from", ())),
        body=turn.body,
        accepted_at=turn.accepted_at,
        is_untitled=needs_title(turn.instance),
        client_tools=tuple(turn.instance.client_tools),
        caller_tools=tuple(turn.options.get("caller_tools", ())),
        model_choice=turn.options.get("model_choice"),
        denied=tuple(tuple(patterns) for patterns in turn.options.get("denied", ())),
        is_of_inbox="inbox" in turn.options,
        direct_call=turn.options.get("direct_call"),
        opening=turn.options.get("opening"),
        instance=turn.instance,
        spent=usage_of_turn(turn),
        is_skipped=is_skipped,
        position=turn.position,
    )


def has_content(message: Message) -> bool:
    """Whether there is anything to store: a part that is more than the beginning of a step."""
    return any(part.get("type") != "step-start" for part in message["parts"])


def has_calls(message: Message) -> bool:
    """Whether a message has tool calls, answered or not."""
    return any(is_tool(part) for part in message["parts"])
