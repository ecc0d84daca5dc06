"""API operations on links for readers: make, list, revoke; and for readers who go on in a conversation of their own."""

from typing import Any, Final

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from ninja import Router, Status

from chat.access.auth import open_instance
from chat.conversations.continuing import continue_shared
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.shares import ContinuedOut, NewShareOut, SharedSecretIn, ShareIn, ShareOut
from chat.http.request_counts import count_request
from chat.models import ShareLink
from chat.shares import services
from chat.shares.projection import Ticked

CONTINUED_PER_MINUTE: Final = 10
"""Conversations that one person may begin from links within a minute: each copies what a link shows, files too."""

router = Router(tags=["people"])


@router.get("/shares", response=list[ShareOut], operation_id="list_all_shares")
def share_list_all(request: HttpRequest) -> object:
    """Your links for readers that work, of all your conversations, newest first: at most 500."""
    return [ShareOut(**_share(row)) for row in services.links_of_owner(caller_of(request).user.pk)]


@router.get("/instances/{instance_id}/shares", response=list[ShareOut], operation_id="list_shares")
def share_list(request: HttpRequest, instance_id: str) -> object:
    """Links for readers of a conversation that work, newest first."""
    return [ShareOut(**_share(row)) for row in services.links_of(open_instance(caller_of(request).user, instance_id))]


@router.post("/instances/{instance_id}/shares", response={201: NewShareOut}, operation_id="create_share")
def share_create(request: HttpRequest, instance_id: str, data: ShareIn) -> object:
    """Make a link by which anybody who has it reads the shown path up to a message. Its secret is shown this once.

    Later messages and other branches are never seen. Without `tools`, `files` and `reasoning` there are only words and
    the names of tools.
    """
    ticked = Ticked(tools=data.tools, files=data.files, reasoning=data.reasoning)
    wanted = services.NewShare(days=data.days, message_id=data.message_id, ticked=ticked)
    row, secret = services.make_link(open_instance(caller_of(request).user, instance_id), wanted)
    return Status(201, NewShareOut(**_share(row), secret=secret, path=_path_to(secret)))


@router.post(  # before the ids of links
    "/shares/continue",
    response={201: ContinuedOut},
    operation_id="continue_share",
    openapi_extra=declares(404, 429),
)
def share_continue(request: HttpRequest, data: SharedSecretIn) -> object:
    """Begin a conversation of your own with what a link shows. Its agent is the same where you are offered that one."""
    user = caller_of(request).user
    count_request("shares", user.pk, CONTINUED_PER_MINUTE)
    return Status(201, ContinuedOut(instance_id=continue_shared(user, data.secret).pk))


@router.delete("/shares/{share_id}", response={204: None}, operation_id="revoke_share")
def share_revoke(request: HttpRequest, share_id: str) -> object:
    """Take a link back. It ends at once."""
    services.revoke_link(caller_of(request).user.pk, share_id)
    return Status(204, None)


def _path_to(secret: str) -> str:
    """The page of the web UI that shows it; empty without the UI."""
    try:
        return reverse("chat:shared", args=[secret])
    except NoReverseMatch:
        return ""


def _share(row: ShareLink) -> dict[str, Any]:
    return {
        "id": row.pk,
        "instance_id": row.instance_id,
        "message_id": row.message_id,
        "title": row.title,
        "tools": row.shows_tools,
        "files": row.shows_files,
        "reasoning": row.shows_reasoning,
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }
