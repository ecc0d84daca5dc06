"""API operations on the caller's grants to programs, which use agents over MCP."""

from django.http import HttpRequest
from ninja import Router, Status

from chat.access.oauth import grants
from chat.access.oauth.scopes import known_scopes
from chat.http.api.authentication import caller_of
from chat.http.api.schemas.programs import ProgramOut
from chat.models import OAuthGrant

router = Router(tags=["programs"])
MOST = 200


@router.get("/programs", response=list[ProgramOut], operation_id="list_programs")
def program_list(request: HttpRequest) -> list[ProgramOut]:
    """Programs that you have authorised to use agents in your name, the newest grant first; at most 200."""
    return [_program(grant) for grant in grants.live_grants(caller_of(request).user)[:MOST]]


@router.delete("/programs/{grant_id}", response={204: None}, operation_id="revoke_program")
def program_revoke(request: HttpRequest, grant_id: str) -> object:
    """End a grant. The program's tokens stop at once."""
    grants.revoke(grants.open_grant(caller_of(request).user, grant_id).pk)
    return Status(204, None)


def _program(grant: OAuthGrant) -> ProgramOut:
    return ProgramOut(
        id=grant.pk,
        program=grant.client.name,
        agent=grant.agent,
        scopes=[scope.value for scope in known_scopes(grant.scopes)],
        created_at=grant.created_at,
        used_at=grant.used_at,
    )
