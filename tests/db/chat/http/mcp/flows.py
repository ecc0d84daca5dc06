"""A program that is authorised, step by step, over HTTP; and requests to the endpoint of an agent."""

import base64
import hashlib
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx2
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient

from thinkproject.asgi import application

ORIGIN = "http://testserver"
RESOURCE = f"{ORIGIN}/mcp/assistant"
REDIRECT = "http://127.0.0.1:33418/callback"
VERIFIER = "a-verifier-that-is-long-enough-to-be-one-of-pkce-43"
CHALLENGE = base64.urlsafe_b64encode(hashlib.sha256(VERIFIER.encode()).digest()).decode().rstrip("=")


@dataclass
class Program:
    """A program and the browser of a person."""

    browser: AsyncClient = field(default_factory=AsyncClient)
    http: AsyncClient = field(default_factory=AsyncClient)
    client_id: str = ""

    async def sign_in(self, user: User) -> "Program":
        await self.browser.aforce_login(user)
        return self

    async def register(self, *redirects: str, **more: Any) -> Any:
        body = {"client_name": "Tester", "redirect_uris": list(redirects or [REDIRECT]), **more}
        response = await self.http.post("/oauth/register", json.dumps(body), content_type="application/json")
        if response.status_code == 201:
            self.client_id = response.json()["client_id"]
        return response

    async def authorize(self, **changes: str | None) -> Any:
        asked = {
            "client_id": self.client_id,
            "response_type": "code",
            "redirect_uri": REDIRECT,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "a state & more",
            "resource": RESOURCE,
            **changes,
        }
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        return await self.browser.get(f"/oauth/authorize?{query}")

    async def decide(self, page: str, decision: str = "allow") -> dict[str, str]:
        """Decide on the consent page; what the program is sent."""
        response = await self.browser.post(page, {"decision": decision})
        assert response.status_code == 303, response.content
        assert response["Location"].startswith(REDIRECT)
        return query_of(response["Location"])

    async def code(self, **changes: str | None) -> str:
        return (await self.decide((await self.authorize(**changes))["Location"]))["code"]

    async def token(self, **fields: str) -> Any:
        return await self.http.post("/oauth/token", urlencode(fields), content_type="application/x-www-form-urlencoded")

    async def exchange(self, code: str, **changes: str) -> Any:
        fields = {
            "grant_type": "authorization_code",
            "client_id": self.client_id,
            "code": code,
            "redirect_uri": REDIRECT,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
        }
        return await self.token(**{**fields, **changes})

    async def refresh(self, secret: str, **changes: str) -> Any:
        fields = {"grant_type": "refresh_token", "client_id": self.client_id, "refresh_token": secret}
        return await self.token(**{**fields, **changes})

    async def tokens(self, **changes: str | None) -> dict[str, Any]:
        """Authorise all the way."""
        response = await self.exchange(await self.code(**changes))
        assert response.status_code == 200, response.content
        answer: dict[str, Any] = response.json()
        return answer

    async def revoke(self, secret: str) -> Any:
        fields = urlencode({"client_id": self.client_id, "token": secret})
        return await self.http.post("/oauth/revoke", fields, content_type="application/x-www-form-urlencoded")


async def authorised(user: User, **changes: str | None) -> tuple[Program, dict[str, Any]]:
    """A program that a person has authorised, and its tokens."""
    program = await Program().sign_in(user)
    await program.register()
    return program, await program.tokens(**changes)


def query_of(url: str) -> dict[str, str]:
    """The query of an address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


async def post(
    body: Any, *, token: str = "", agent: str = "assistant", method: str = "POST", **headers: str
) -> httpx2.Response:
    """One request to an endpoint, through the whole ASGI application."""
    given = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        **({"Authorization": f"Bearer {token}"} if token else {}),
        **{name.replace("_", "-"): value for name, value in headers.items()},
    }
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    transport = httpx2.ASGITransport(app=application)
    async with httpx2.AsyncClient(transport=transport, base_url=ORIGIN) as http:
        return await http.request(method, f"/mcp/{agent}", content=content, headers=given)


def call(method: str, **params: Any) -> dict[str, Any]:
    """A request of the protocol."""
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def answer_of(response: httpx2.Response) -> dict[str, Any]:
    """The one answer in a response, be it JSON or an event."""
    text = response.text
    if response.headers["content-type"].startswith("text/event-stream"):
        text = next(line for line in text.splitlines() if line.startswith("data: {")).removeprefix("data: ")
    found: dict[str, Any] = json.loads(text)
    return found


async def names(token: str, agent: str = "assistant") -> set[str]:
    """The names of the tools that a token may use."""
    answer = answer_of(await post(call("tools/list"), token=token, agent=agent))
    return {tool["name"] for tool in answer["result"]["tools"]}


make_user = sync_to_async(User.objects.create_user)
