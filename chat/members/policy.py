"""The roles of a conversation, and what each may see and do: the one policy of every door.

API operations name the role that they need where they open a thing, sockets by `FRAMES`. What names none needs the
owner. A reader sees the messages of a conversation and of its sub-agents, and everything in them; a writer asks, stops
and answers what clients are asked for; an approver decides about calls as well. All else is the owner's: memory, files
of the workspace, servers, schedules, rules, budgets, who is a member.
"""

from collections.abc import Mapping
from typing import Final

from chat.core.wire import frames, sdk_frames
from chat.errors import AnswerDenied, InstanceNotFound, RoleNeeded
from chat.models import Role
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.phrases import Phrase

_ORDER: Final = (Role.READER, Role.WRITER, Role.APPROVER, Role.OWNER)

FRAMES: Final[Mapping[type, Role]] = {
    frames.ResumeRequest: Role.READER,
    frames.ResumeAck: Role.READER,
    frames.Ping: Role.READER,
    frames.PushMessages: Role.READER,  # ignored
    frames.ChatRequest: Role.WRITER,
    frames.Cancel: Role.WRITER,
    frames.ToolResult: Role.WRITER,
    frames.ToolApproval: Role.APPROVER,
    sdk_frames.Resume: Role.READER,
    sdk_frames.Send: Role.WRITER,  # what it answers needs the role for that answer
    sdk_frames.Abort: Role.WRITER,
}
"""Role that a frame of a client needs; the owner's where it is not here."""


def allows(role: Role | None, needs: Role) -> bool:
    """Whether a role is enough. None: of a stranger."""
    return role is not None and _ORDER.index(role) >= _ORDER.index(needs)


def require(role: Role | None, needs: Role, missing: type[ThinkError] = InstanceNotFound) -> None:
    """Errors: `missing` for a stranger, who learns no more than of what does not exist; `RoleNeeded` for a member."""
    if role is None:
        raise missing
    if not allows(role, needs):
        raise role_needed(needs)


def role_needed(needs: Role) -> RoleNeeded:
    """The error of a member whose role is not enough."""
    if needs is Role.OWNER:
        return RoleNeeded("Only the owner of this conversation can do this.", needs=needs.value)
    return RoleNeeded(
        Phrase("Your role in this conversation does not let you do this. Ask its owner for another one."),
        needs=needs.value,
    )


ANY_APPROVER: Final = "approver"
REQUESTER: Final = "requester"
ANOTHER: Final = "another"
"""The approvers who may answer a question: any, the one who asked for the turn, or one who did not."""


def require_answerer(rule: str, *, is_requester: bool) -> None:
    """Hold an approver to the rule of the agent's class. Errors: `AnswerDenied`."""
    if rule == REQUESTER and not is_requester:
        raise AnswerDenied("Only the person who asked for this turn may answer this question.")
    if rule == ANOTHER and is_requester:
        raise AnswerDenied("You asked for this turn: another approver has to answer this question.")


def role_for_frame(frame: object) -> Role:
    """The role that a frame needs."""
    return FRAMES.get(type(frame), Role.OWNER)
