"""The part of a message that a link for readers shows: a list of what is let through, never of what is taken out.

Nothing of a message goes out as it is stored. Each kind of part names the fields that it keeps, and a kind that is not
named here is not shown. So the authors of messages, instructions, signatures of providers, decisions about calls, and
what a later version adds to a part stay inside. Ids of messages and calls are replaced by their places. Pure.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from sessions_app.core.messages.messages import MessageRole, StoredMessage
from sessions_app.core.messages.parts import is_settled, is_tool, state_of, tool_name
from sessions_app.core.messages.shapes import OURS, Part
from sessions_app.core.messages.tool_states import ToolState
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

PRIVATE_TOOLS: Final = frozenset({"set_context", "load_context", "unload_context", "search_context"})
"""Tools whose arguments and results are memory and instructions: shown by name alone."""
STEER: Final = "data-think-steer"
_INNER: Final = 1
"""Levels of parts within parts: a message that an answer took in."""

FileUrl = Callable[[str], str]
"""The address of an attached file for readers, by the one that the message has; empty for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ticked:
    """The kinds of content that the owner has chosen to show besides the words."""

    tools: bool = False
    files: bool = False
    reasoning: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedMessage:
    """A message as readers get it. `id`: its place, from `m1`."""

    id: str
    role: str
    parts: list[Part]
    created_at: str


def shared_messages(messages: Iterable[StoredMessage], ticked: Ticked, file_url: FileUrl) -> list[SharedMessage]:
    """The messages of a path for readers, root first; those that have nothing to show are left out."""
    calls: dict[str, str] = {}
    shown: list[SharedMessage] = []
    for message in messages:
        if message.role not in (MessageRole.USER, MessageRole.ASSISTANT):
            continue
        parts = _parts(message.parts, ticked, file_url, calls)
        if any(part["type"] != "step-start" for part in parts):
            created_at = message.created_at.isoformat()
            place = f"m{len(shown) + 1}"
            shown.append(SharedMessage(id=place, role=message.role, parts=parts, created_at=created_at))
    return shown


def _parts(
    parts: Iterable[Mapping[str, Any]], ticked: Ticked, file_url: FileUrl, calls: dict[str, str], level: int = 0
) -> list[Part]:
    found: list[Part] = []
    for part in parts:
        if is_tool(part):
            found.append(_call(part, ticked, file_url, calls))
        elif part.get("type") == STEER:
            if level < _INNER and (steered := _steered(part, ticked, file_url, calls)) is not None:
                found.append(steered)
        elif (kept := _plain(part, ticked, file_url)) is not None:
            found.append(kept)
    return found


def _plain(part: Mapping[str, Any], ticked: Ticked, file_url: FileUrl) -> Part | None:
    kind = part.get("type")
    if kind == "text":
        return _text(part)
    if kind == "reasoning" and ticked.reasoning:
        return {"type": "reasoning", "text": _words(part.get("text")), "state": "done"}
    if kind == "file" and ticked.files:
        return _file(part, file_url)
    if kind == "source-url":
        return {"type": "source-url", **_texts(part, "sourceId", "url", "title")}
    return {"type": "step-start"} if kind == "step-start" else None


def _text(part: Mapping[str, Any]) -> Part:
    text: Part = {"type": "text", "text": _words(part.get("text")), "state": "done"}
    places = [_citation(each) for each in part.get("citations") or [] if isinstance(each, dict)]
    if cited := [each for each in places if each is not None]:
        text["citations"] = cited
    return text


def _citation(citation: Mapping[str, Any]) -> JSONObject | None:
    """The place of a page of the web in a text; one of a file would name it."""
    source = citation.get("source")
    known = source if isinstance(source, dict) else citation
    url = known.get("url")
    if not isinstance(url, str):
        return None
    return {"endIndex": citation.get("endIndex"), "source": {"url": url, "title": _words(known.get("title"))}}


def _file(part: Mapping[str, Any], file_url: FileUrl) -> Part | None:
    url = _words(part.get("url"))
    address = url if url.startswith("data:") else file_url(url)
    if not address:
        return None
    return {"type": "file", "url": address, **_texts(part, "mediaType", "filename")}


def _call(part: Mapping[str, Any], ticked: Ticked, file_url: FileUrl, calls: dict[str, str]) -> Part:
    """A call of a tool: its name and how it ended, and where that is ticked what it was given and returned."""
    name = tool_name(part)
    state = state_of(part)
    is_over = is_settled(part) and state is not None
    call_id = _words(part.get("toolCallId"))
    call: Part = {
        "type": "dynamic-tool",
        "toolName": name,
        "toolCallId": calls.setdefault(call_id, f"c{len(calls) + 1}"),
        "state": state.value if is_over and state is not None else ToolState.OUTPUT_ERROR.value,
    }
    if not ticked.tools or name in PRIVATE_TOOLS:
        return call
    call["input"] = cast("JSONValue", part.get("input"))
    if isinstance(part.get("title"), str):
        call["title"] = _words(part.get("title"))
    if "output" in part:
        call["output"] = cast("JSONValue", part["output"])
    if isinstance(part.get("errorText"), str):
        call["errorText"] = _words(part["errorText"])
    if ticked.files and (made := _made_files(part, file_url)):
        call["toolMetadata"] = {OURS: {"attachments": made}}
    return call


def _made_files(part: Mapping[str, Any], file_url: FileUrl) -> list[JSONValue]:
    ours = (part.get("toolMetadata") or {}).get(OURS) or {}
    attached = ours.get("attachments") if isinstance(ours, dict) else None
    files = [_file(each, file_url) for each in attached or [] if isinstance(each, dict)]
    return [cast("JSONValue", {**each}) for each in files if each is not None]


def _steered(part: Mapping[str, Any], ticked: Ticked, file_url: FileUrl, calls: dict[str, str]) -> Part | None:
    data = part.get("data")
    inner = data.get("parts") if isinstance(data, dict) else None
    parts = _parts([each for each in inner or [] if isinstance(each, dict)], ticked, file_url, calls, _INNER)
    if not parts:
        return None
    return {"type": STEER, "data": {"parts": cast("JSONValue", parts)}}


def _texts(part: Mapping[str, Any], *names: str) -> Part:
    return cast("Part", {name: part[name] for name in names if isinstance(part.get(name), str)})


def _words(value: object) -> str:
    return value if isinstance(value, str) else ""
