"""API operations on the caller's API tokens."""

from typing import Any

from django.http import HttpRequest
from ninja import Router, Status

from chat.access import api_tokens
from chat.http.api.authentication import browser_caller_of, caller_of
from chat.http.api.error_responses import declares
from chat.http.api.schemas.account import NewTokenOut, TokenIn, TokenOut
from chat.models import ApiToken

router = Router(tags=["account"])


@router.get("/tokens", response=list[TokenOut], operation_id="list_tokens")
def token_list(request: HttpRequest) -> list[TokenOut]:
    """Your tokens that work, the newest first. Their secrets are not stored."""
    tokens = api_tokens.live_tokens(caller_of(request).user)
    return [TokenOut(**_facts(token)) for token in tokens[: api_tokens.MAX_LIVE]]


@router.post("/tokens", response={201: NewTokenOut}, operation_id="create_token", openapi_extra=declares(403, 429))
def token_create(request: HttpRequest, data: TokenIn) -> object:
    """Make a token. The answer has its secret, this once. Only with a browser: a token makes no other token."""
    user = browser_caller_of(request).user
    token, secret = api_tokens.make_own_token(user, name=data.name, days=data.days, scopes=data.scopes)
    return Status(201, NewTokenOut(secret=secret, **_facts(token)))


@router.delete("/tokens/{token_id}", response={204: None}, operation_id="revoke_token")
def token_revoke(request: HttpRequest, token_id: int) -> object:
    """Revoke a token for good. What uses it is refused at once."""
    api_tokens.revoke_own_token(caller_of(request).user, token_id)
    return Status(204, None)


def _facts(token: ApiToken) -> dict[str, Any]:
    names = ("name", "prefix", "scopes", "created_at", "used_at", "expires_at")
    return {"id": token.pk, **{name: getattr(token, name) for name in names}}
