"""Results of turns for programs: text for a model, and the same as data. Read from what is stored."""

from dataclasses import dataclass
from typing import Any, Final

import mcp_types as types
from django.urls import NoReverseMatch, reverse
from django.utils.translation import gettext as _

from chat.core.wire.accumulator import tool_name
from chat.http.mcp.callers import McpCaller
from chat.http.mcp.following import Followed
from chat.models import Turn
from chat.turns.state.status import TurnStatus, turn_status
from sessions_app.core.messages.shapes import Part
from sessions_app.core.messages.tool_states import SETTLED, ToolState
from sessions_app.core.messages.truncation import cut_text
from sessions_app.messages import selectors
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, dump
from thinkproject.kernel.languages import translate
from tools_app.calls.selectors import questions_in
from tools_app.core.questions import question_of, title_of
from tools_app.core.tool_calls import details_in

MAX_TEXT: Final = 400_000
"""Characters of a result at most; the whole is in the conversation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ended:
    """A turn as it was left: its answer's parts and where people see it."""

    turn: Turn
    status: TurnStatus
    parts: list[Part]
    waits_for: list[str]
    page: str


def error_result(error: ThinkError) -> types.CallToolResult:
    """A refusal of the product, as a model can read it."""
    data: JSONObject = {"error": error.code, **error.data}
    return _result(translate(error.phrase), data, is_error=True)


def answer_result(caller: McpCaller, turn_id: str, followed: Followed) -> types.CallToolResult:
    """The answer of a turn of `chat`."""
    ended = _ended(caller, turn_id, followed)
    answer = "".join(str(part.get("text", "")) for part in ended.parts if part.get("type") == "text")
    status, words = _status(ended)
    data: JSONObject = {"status": status, "answer": cut_text(answer, MAX_TEXT), **_place(ended)}
    text = "\n\n".join(piece for piece in (answer, words) if piece)
    return _result(text, data, is_error=status in {"failed", "stopped"})


def call_result(caller: McpCaller, turn_id: str, followed: Followed) -> types.CallToolResult:
    """The result of the one call of a turn."""
    ended = _ended(caller, turn_id, followed)
    part: Any = next((part for part in ended.parts if tool_name(part)), {})
    state = part.get("state")
    if ended.waits_for:
        status, words = _status(ended)
        return _result(words, {"status": status, **_place(ended)})
    if state == ToolState.OUTPUT_AVAILABLE:
        return _output(caller, part)
    if state == ToolState.OUTPUT_ERROR:
        return _result(str(part.get("errorText", "")), None, is_error=True)
    return _result(_status(ended)[1] or _("The call gave no result."), None, is_error=True)


def _output(caller: McpCaller, part: Part) -> types.CallToolResult:
    output: JSONValue = part.get("output")
    text = output if isinstance(output, str) else dump(output)
    result = _result(text, output if isinstance(output, dict) else None)
    given = details_in(part).get("attachments")
    for entry in given if isinstance(given, list) else ():
        if isinstance(entry, dict):
            url, name = str(entry.get("url", "")), str(entry.get("filename") or entry.get("name") or "file")
            uri = caller.origin + url if url.startswith("/") else url
            kind = str(entry.get("mediaType") or "application/octet-stream")
            result.content.append(types.ResourceLink(type="resource_link", uri=uri, name=name, mime_type=kind))
    return result


def _ended(caller: McpCaller, turn_id: str, followed: Followed) -> _Ended:
    turn = Turn.objects.select_related("fiber", "instance").get(pk=turn_id)
    message = selectors.get_message(turn.session_id, turn.assistant_id)
    questions = [title_of(row.tool_name, question_of(row.question).title) for row in _questions(turn)]
    status = turn_status(turn.fiber.status, turn.fiber.reason)
    parts: list[Part] = [] if message is None else list(message.parts)
    return _Ended(
        turn=turn,
        status=status,
        parts=parts,
        waits_for=questions or list(followed.waits_for) or (_open(parts) if status is TurnStatus.COMPLETED else []),
        page=page_of(caller, turn.instance_id),
    )


def _open(parts: list[Part]) -> list[str]:
    """The tools of calls that have no result yet: a page of the person's runs them, or they were just approved."""
    return [title_of(name) for part in parts if (name := tool_name(part)) and part.get("state") not in SETTLED]


def _questions(turn: Turn) -> list[Any]:
    return [row for row in questions_in(turn.instance_id) if row.turn_id == turn.pk]


def _status(ended: _Ended) -> tuple[str, str]:
    """The word of the protocol's data, and the sentence for models and people."""
    if ended.waits_for:
        what = ", ".join(ended.waits_for)
        words = _("This waits for the person, on the page %(page)s: %(what)s") % {
            "page": ended.page,
            "what": what,
        }
        return "waiting", words
    if ended.status is TurnStatus.ERROR:
        return "failed", ended.turn.error_text or _("The turn failed.")
    if ended.status is TurnStatus.COMPLETED:
        return "completed", ""
    return "stopped", _("The turn was stopped.")


def _place(ended: _Ended) -> JSONObject:
    instance = ended.turn.instance
    data: JSONObject = {
        "conversation": instance.name,
        "conversation_id": instance.pk,
        "turn_id": ended.turn.pk,
        "page": ended.page,
    }
    return {**data, "waits_for": ended.waits_for} if ended.waits_for else data


def page_of(caller: McpCaller, instance_id: str) -> str:
    """The address of a conversation's page; empty in a project without the pages."""
    try:
        return caller.origin + reverse("chat:conversation", kwargs={"instance_id": instance_id})
    except NoReverseMatch:
        return ""


def _result(text: str, data: JSONObject | None, *, is_error: bool = False) -> types.CallToolResult:
    content: list[Any] = [types.TextContent(type="text", text=cut_text(text, MAX_TEXT))]
    return types.CallToolResult(content=content, structured_content=data, is_error=is_error)
