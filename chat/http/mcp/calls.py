"""Calls of programs. Each is a turn: admitted, limited, run, approved and recorded as any other.

`chat` is a message in a conversation of the caller's. A tool of the agent is called by a turn that makes this one call
instead of asking a model (`chat/llm/direct_call.py`), in a conversation of its own that the person sees. One that waits
for an approval keeps its conversation until it is decided, as a later message there would end the question; calls
beside it use further conversations, with the same files.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import anyio
import mcp_types as types
from django.db import transaction
from django.utils.translation import gettext as _
from mcp.shared.exceptions import MCPError
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from chat.access.oauth.scopes import Scope
from chat.agent.base import InstanceKey
from chat.errors import InputInvalid, QuotaExceeded, TurnConflict
from chat.http.mcp.callers import McpCaller
from chat.http.mcp.cancelling import forget_turn, note_turn
from chat.http.mcp.conf import mcp_server_settings
from chat.http.mcp.following import Followed, follow_turn
from chat.http.mcp.results import answer_result, call_result, error_result, page_of
from chat.http.mcp.tools import CALLS, CHAT, MAX_MESSAGE, ensure_calls, key_named, own_tools
from chat.instances.addresses import is_root_name
from chat.instances.rows import find_instance, hold_if_there, hold_instance
from chat.instances.workspaces import attach_workspace
from chat.models import Turn
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Submit
from chat.turns.admission.stop import cancel_turn
from chat.turns.state.active import active_turns
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, dump
from thinkproject.kernel.phrases import Phrase
from tools_app.calls.selectors import open_calls, questions_in
from tools_app.core.questions import question_of, title_of
from tools_app.errors import WorkspaceExists, WorkspaceNotFound

_SHOWN_INPUT: Final = 4_000
"""Characters of a call's arguments that its conversation shows before the call itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request of a program's. `context`: the protocol's; `left`: set when its connection is gone."""

    caller: McpCaller
    context: Any
    left: asyncio.Event


async def call_tool(request: Request, name: str, arguments: JSONObject) -> types.CallToolResult:
    """Make a call and wait for its end, with reports of progress. What the product refuses is a result, too.

    Errors: `MCPError` for a tool that is none of the caller's.
    """
    caller = request.caller
    try:
        if name == CHAT and Scope.CHAT in caller.scopes:
            return await _chat(request, arguments)
        if Scope.TOOLS in caller.scopes and any(tool.name == name for tool in await own_tools(caller)):
            return await _call(request, name, arguments)
    except ThinkError as error:
        return error_result(error)
    raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {name}")


async def _chat(asked: Request, arguments: JSONObject) -> types.CallToolResult:
    caller = asked.caller
    message, name = _read_message(caller, arguments)
    key = await key_named(caller, name)
    words = {"role": "user", "parts": [{"type": "text", "text": message}]}
    request = TurnRequest(intake=Submit(message=words), via="mcp", actor_id=caller.user.pk)  # type: ignore[arg-type]  # a message

    turn, followed = await _run(asked, partial(_accept_unless_asked, caller, key, request))
    return await db(answer_result, caller, turn.pk, followed)


def _accept_unless_asked(caller: McpCaller, key: InstanceKey, request: TurnRequest) -> Turn:
    """Accept a message. Errors: `TurnConflict` while a person is asked, whose question a message would decide."""
    with transaction.atomic():
        instance = find_instance(key)
        if instance is not None and hold_if_there(instance):
            asked = questions_in(instance.pk).filter(lasting=False).first()
            if asked is not None:
                what, page = title_of(asked.tool_name, question_of(asked.question).title), page_of(caller, instance.pk)
                raise TurnConflict(
                    Phrase(
                        "The person has to decide first, on the page {page}: {what}. The message was not taken.",
                        page=page,
                        what=what,
                    )
                )
        return admit(key, request).turn


def _read_message(caller: McpCaller, arguments: JSONObject) -> tuple[str, str]:
    """The message, and the name of its conversation. Errors: `InputInvalid`."""
    message, name = arguments.get("message"), arguments.get("conversation") or ""
    if not isinstance(message, str) or not 1 <= len(message) <= MAX_MESSAGE or not set(arguments) <= _CHAT_ARGUMENTS:
        raise InputInvalid(
            Phrase("`chat` takes a `message` of at most {limit} characters, and a `conversation`.", limit=MAX_MESSAGE)
        )
    wanted = caller.conversation(name) if isinstance(name, str) else ""
    if not is_root_name(wanted) or (name and not is_root_name(name)):
        raise InputInvalid(Phrase("A conversation cannot be named {name!r:.80}: no address leads there.", name=name))
    return message, wanted


_CHAT_ARGUMENTS: Final = frozenset({"message", "conversation"})


async def _call(asked: Request, name: str, arguments: JSONObject) -> types.CallToolResult:
    caller = asked.caller
    shown = dump(arguments)
    shown = shown if len(shown) <= _SHOWN_INPUT else f"{shown[:_SHOWN_INPUT]}…"
    title = _("%(program)s calls %(tool)s:") % {"program": caller.program, "tool": f"`{name}`"}
    words = {"role": "user", "parts": [{"type": "text", "text": f"{title}\n\n```json\n{shown}\n```"}]}
    request = TurnRequest(
        intake=Submit(message=words, parent_id=None, parent_is_explicit=True),  # type: ignore[arg-type]  # a message
        options={"direct_call": {"tool": name, "input": arguments}},
        via="mcp",
        actor_id=caller.user.pk,
    )
    main = await key_named(caller, CALLS)
    for number in range(1, mcp_server_settings.parallel_calls + 1):
        key = main if number == 1 else await key_named(caller, f"{CALLS}-{number}")
        turn = await _free(asked, key, main, request)
        if turn is not None:
            return await db(call_result, caller, turn[0].pk, turn[1])
    raise QuotaExceeded("Too many calls of your programs run or wait for an approval. Decide some of them first.")


async def _free(
    asked: Request, key: InstanceKey, main: InstanceKey, request: TurnRequest
) -> tuple[Turn, Followed] | None:
    """Run a call in this conversation, if nothing else runs or waits there."""
    accept = partial(_accept_if_free, key, main, request)
    with anyio.CancelScope(shield=True):
        turn = await db(accept)
    return None if turn is None else (turn, await _follow(asked, turn))


def _accept_if_free(key: InstanceKey, main: InstanceKey, request: TurnRequest) -> Turn | None:
    instance = ensure_calls(key)
    with transaction.atomic():
        hold_instance(instance)
        if active_turns(instance.pk).exists() or open_calls(instance.pk).exists():
            return None
        if key != main and instance.turn_count == 0:
            _share_files(key, main)
        return admit(key, request).turn


def _share_files(key: InstanceKey, main: InstanceKey) -> None:
    try:
        attach_workspace(key, main, name="default", can_write=True)
    except (WorkspaceExists, WorkspaceNotFound):  # it has files of its own already
        return


async def _run(asked: Request, accept: Callable[[], Turn]) -> tuple[Turn, Followed]:
    with anyio.CancelScope(shield=True):  # a turn that is accepted is one that can be stopped
        turn: Turn = await db(accept)
    return turn, await _follow(asked, turn)


async def _follow(asked: Request, turn: Turn) -> Followed:
    """Wait for the turn. A client of a revision without a handshake cancels by leaving; others say so.

    A server that stops cancels, too, which is nothing to the turn.
    """
    caller, context = asked.caller, asked.context
    await note_turn(caller, context.request, context.request_id, turn.pk)
    try:
        followed = await follow_turn(turn.pk, report=context.session.report_progress, holds=caller.holds)
    except anyio.get_cancelled_exc_class():
        if asked.left.is_set() and context.protocol_version in MODERN_PROTOCOL_VERSIONS:
            with anyio.CancelScope(shield=True):
                await db(cancel_turn, turn.pk)
        raise
    await forget_turn(caller, context.request, context.request_id)
    return followed
