"""A conversation of a reader's own that begins with what a link shows, and with nothing else of where it came from."""

from typing import Any

from django.contrib.auth.base_user import AbstractBaseUser
from django.db import transaction

from chat.access.auth import open_agent
from chat.agent.registry import is_served, list_agents
from chat.conversations.changes import create_instance, new_instance_name
from chat.errors import AgentNotFound, AttachmentNotFound, SharedNotFound
from chat.files import attachments
from chat.instances.quota import count_messages, recount_if_due
from chat.instances.rows import ensure_session, hold_instance
from chat.models import AgentInstance, ShareLink
from chat.operations.removal import delete_instance
from chat.shares.projection import STEER, SharedMessage
from chat.shares.reading import open_link, shared_file, shared_view
from sessions_app.core.messages.call_texts import INTERRUPTED
from sessions_app.core.messages.messages import parse_message
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages.services import append_here
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import byte_size
from tools_app.core.guard.rules import SeenText, Spot
from tools_app.core.origins import Origin
from tools_app.guard.standings import GuardScope, see


def continue_shared(user: AbstractBaseUser, secret: str) -> AgentInstance:
    """Make a conversation of what a link shows; files are copied. All of it or nothing.

    With the agent of the link where people are offered that one, else with the first that they are offered. Its text is
    a stranger's to the injection guard. Errors: `SharedNotFound`, `QuotaExceeded`, `AgentNotFound` where there is no
    agent.
    """
    link = open_link(secret)
    view = shared_view(link, str)
    if not view.messages:
        raise SharedNotFound
    opened = open_agent(user, _agent_for(link.instance.agent), new_instance_name())
    instance = create_instance(opened, title=link.title)
    try:
        _fill(instance, link, view.messages)
    except ThinkError:
        delete_instance(instance)
        raise
    return instance


def _agent_for(wanted: str) -> str:
    listed = [each.name for each in list_agents() if each.is_listed and is_served(each.name)]
    if not listed:
        raise AgentNotFound
    return wanted if wanted in listed else listed[0]


def _fill(instance: AgentInstance, link: ShareLink, shown: list[SharedMessage]) -> None:
    owner_id: Any = instance.owner_id
    file_ids: list[str] = []
    messages = [_taken(owner_id, link, each, file_ids) for each in shown]
    recount_if_due(owner_id, messages)
    with transaction.atomic():
        hold_instance(instance)
        session_id = ensure_session(instance)
        attachments.bind(owner_id, file_ids, instance)
        count_messages(owner_id, len(messages), sum(byte_size(each) for each in messages), paced=1)
        append_here(session_id, messages)
        place = GuardScope(session_id=session_id, scope=instance.pk, owner_id=owner_id)
        see(place, [SeenText(Origin.FILE, link.title)], at=Spot(name="share"))


def _taken(owner_id: Any, link: ShareLink, shown: SharedMessage, file_ids: list[str]) -> Message:
    parts = [_part(owner_id, link, part, file_ids) for part in shown.parts]
    kept = [part for part in parts if part is not None]
    return parse_message({"id": new_id("msg"), "role": shown.role, "parts": kept})


def _part(owner_id: Any, link: ShareLink, part: Part, file_ids: list[str]) -> Part | None:
    """A part as it is stored. Calls keep their words; what a client could not have sent is not taken over."""
    kind = part["type"]
    if kind == "dynamic-tool":
        call: Part = {key: value for key, value in part.items() if key != "toolMetadata"}  # type: ignore[assignment]
        call["toolCallId"] = new_id("call")
        call["input"] = part.get("input") or {}
        if part["state"] == "output-available":
            call["output"] = part.get("output")
        elif part["state"] == "output-error":
            call["errorText"] = part.get("errorText") or INTERRUPTED
        return call
    if kind == STEER:
        return _without_files(part)
    return _file(owner_id, link, part, file_ids) if kind == "file" else part


def _without_files(part: Part) -> Part:
    data = part["data"]
    inner = data.get("parts") if isinstance(data, dict) else None
    kept = [each for each in inner or [] if isinstance(each, dict) and each.get("type") != "file"]
    return {"type": STEER, "data": {"parts": kept}}


def _file(owner_id: Any, link: ShareLink, part: Part, file_ids: list[str]) -> Part | None:
    url, name = part["url"], part.get("filename") or "file"
    try:
        if url.startswith("data:"):
            row = attachments.store_data_url(owner_id, url, name=name)
        else:
            source = shared_file(link, attachments.attachment_id(url) or "")
            row = attachments.store_imported(owner_id, attachments.read_bytes(source), name=source.name)
    except AttachmentNotFound:
        return None
    file_ids.append(row.pk)
    return {"type": "file", "url": attachments.url_of(row.pk), "mediaType": row.media_type, "filename": row.name}
