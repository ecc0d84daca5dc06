"""The caller of a request: a person's program, by API token or by a token of a grant. Never by cookie."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from django.contrib.auth.base_user import AbstractBaseUser

from chat.access import api_tokens
from chat.access.auth import bearer, recheck, token_credential
from chat.access.oauth import grants
from chat.access.oauth.scopes import ALL, Scope, known_scopes
from chat.http.oauth.addresses import resource_of
from thinkproject.kernel.ids import new_id


@dataclass(frozen=True, slots=True, kw_only=True)
class McpCaller:
    """A program that acts for a person on one agent. `holds` says, sync, whether it still may.

    `origin`: ours, as the program reached it. `program`: its name, for people. `grant_id`: empty with an API token.
    """

    user: AbstractBaseUser
    agent: str
    origin: str
    scopes: frozenset[Scope]
    program: str
    holds: Callable[[], bool]
    grant_id: str = ""

    def conversation(self, name: str) -> str:
        """The name of the conversation that the program means; of a new one for an empty name.

        A program that may not read the person's history has names of its own, which no other program's lead to and no
        conversation of the person's has: what it can enter is what its grant began.
        """
        wanted = name or new_id("mcp")
        own = f"{self.grant_id}-"
        return wanted if Scope.HISTORY in self.scopes or wanted.startswith(own) else own + wanted


def find_caller(authorization: str, *, origin: str, agent: str) -> McpCaller | None:
    """The caller of an `Authorization` header; nothing for a token that is unknown, ended, or for another endpoint."""
    secret = bearer(authorization) or ""
    if secret.startswith(grants.ACCESS_PREFIX):
        access = grants.find_access(secret)
        if access is None or access.grant.resource != resource_of(origin, agent):
            return None
        return McpCaller(
            user=access.grant.user,
            agent=agent,
            origin=origin,
            scopes=frozenset(known_scopes(access.grant.scopes)),
            program=str(access.grant.client),
            holds=partial(grants.grant_holds, access.grant_id),
            grant_id=access.grant_id,
        )
    token = api_tokens.find_token(secret)
    if token is None:
        return None
    credential = token_credential(token)
    return McpCaller(
        user=token.user,
        agent=agent,
        origin=origin,
        scopes=ALL,
        program=token.name,
        holds=partial(recheck, credential),
    )
