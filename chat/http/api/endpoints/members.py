"""API operations on the people in a conversation: list, add, give a role, remove, leave, invite, accept."""

from typing import Any

from django.http import HttpRequest
from django.urls import NoReverseMatch, reverse
from ninja import Router, Status

from chat.access.auth import open_instance
from chat.http.api.authentication import caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.members import (
    AcceptIn,
    InvitationIn,
    InvitationOut,
    MemberIn,
    MemberOut,
    NewInvitationOut,
    PeopleOut,
    PersonOut,
    RoleIn,
)
from chat.members import selectors, services
from chat.models import AgentInstance, Invitation, Membership, Role

router = Router(tags=["people"])
_PEOPLE = "/instances/{instance_id}/members"
_INVITATIONS = "/instances/{instance_id}/invitations"


@router.get(_PEOPLE, response=PeopleOut, operation_id="list_members")
def member_list(request: HttpRequest, instance_id: str) -> PeopleOut:
    """The people in a conversation. Those of a sub-agent are those of the conversation that it works for."""
    user = caller_of(request).user
    instance = open_instance(user, instance_id, needs=Role.READER)
    people = selectors.people_in(instance)
    return PeopleOut(
        role=next(each.role for each in people if each.user_id == user.pk),
        items=[
            PersonOut(
                id=each.id,
                author="" if each.role is Role.OWNER else str(each.user_id),
                name=each.name,
                role=each.role,
                is_you=each.user_id == user.pk,
                invited_by=each.invited_by,
                since=each.since,
            )
            for each in people
        ],
        former={str(key): name for key, name in selectors.former_in(instance).items()},
    )


@router.post(_PEOPLE, response={201: MemberOut}, operation_id="add_member")
def member_add(request: HttpRequest, instance_id: str, data: MemberIn) -> object:
    """Add a person by name, or give one that is there this role. 422 for a name that is unknown here."""
    user = caller_of(request).user
    row = services.add_member(open_instance(user, instance_id), data.name, Role(data.role), by=user.pk)
    return Status(201, _member(row))


@router.patch(_PEOPLE + "/{member_id}", response=MemberOut, operation_id="change_role")
def member_change(request: HttpRequest, instance_id: str, member_id: str, data: RoleIn) -> MemberOut:
    """Give a member another role. It takes effect at once, on open connections too."""
    return _member(services.change_role(_owned(request, instance_id), member_id, Role(data.role)))


@router.delete(_PEOPLE + "/{member_id}", response={204: None}, operation_id="remove_member")
def member_remove(request: HttpRequest, instance_id: str, member_id: str) -> object:
    """End a membership. Open connections of that person are closed at once."""
    services.remove_member(_owned(request, instance_id), member_id)
    return Status(204, None)


@router.post("/instances/{instance_id}/leave", response={204: None}, operation_id="leave_conversation")
def conversation_leave(request: HttpRequest, instance_id: str) -> object:
    """End your own membership. The owner cannot leave: 404."""
    user = caller_of(request).user
    services.leave(open_instance(user, instance_id, needs=Role.READER), user.pk)
    return Status(204, None)


@router.get(_INVITATIONS, response=list[InvitationOut], operation_id="list_invitations")
def invitation_list(request: HttpRequest, instance_id: str) -> object:
    """Invitations that can be accepted, newest first."""
    return [InvitationOut(**_invitation(row)) for row in selectors.open_invitations(_owned(request, instance_id))]


@router.post(_INVITATIONS, response={201: NewInvitationOut}, operation_id="create_invitation")
def invitation_create(request: HttpRequest, instance_id: str, data: InvitationIn) -> object:
    """Make an invitation: the first person who accepts it gets the role. Its secret is shown this once."""
    user = caller_of(request).user
    row, secret = services.invite(open_instance(user, instance_id), Role(data.role), by=user.pk, days=data.days)
    return Status(201, NewInvitationOut(**_invitation(row), secret=secret, path=_path_to(secret)))


@router.delete(_INVITATIONS + "/{invitation_id}", response={204: None}, operation_id="withdraw_invitation")
def invitation_withdraw(request: HttpRequest, instance_id: str, invitation_id: str) -> object:
    """Take an invitation back."""
    services.withdraw_invitation(_owned(request, instance_id), invitation_id)
    return Status(204, None)


@router.post("/invitations/accept", response=MemberOut, operation_id="accept_invitation", openapi_extra=declares(404))
def invitation_accept(request: HttpRequest, data: AcceptIn) -> MemberOut:
    """Accept an invitation, which works once. A role that you have already is never made less."""
    return _member(services.accept_invitation(caller_of(request).user, data.secret))


def _owned(request: HttpRequest, instance_id: str) -> AgentInstance:
    return open_instance(caller_of(request).user, instance_id)


def _path_to(secret: str) -> str:
    """The page of the web UI that accepts it; empty without the UI."""
    try:
        return reverse("chat:join", args=[secret])
    except NoReverseMatch:
        return ""


def _member(row: Membership) -> MemberOut:
    return MemberOut(id=row.pk, instance_id=row.instance_id, role=Role(row.role))


def _invitation(row: Invitation) -> dict[str, Any]:
    return {
        "id": row.pk,
        "role": Role(row.role),
        "made_by": None if row.made_by is None else row.made_by.get_username(),
        "created_at": row.created_at,
        "expires_at": row.expires_at,
    }
