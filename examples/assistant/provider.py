"""A small OpenID provider for trying the example out: visitors pick who they are. Never let strangers reach it.

`python -m assistant.provider --port 9000`, with `ASSISTANT_CLIENT_ID` and `ASSISTANT_CLIENT_SECRET` in the environment.
"""

import argparse
import base64
import contextlib
import hashlib
import hmac
import html
import json
import os
import secrets
import threading
import time
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

from joserfc import jwt
from joserfc.jwk import RSAKey

CODE_SECONDS = 60
BODY_BYTES = 100_000
PEOPLE: dict[str, dict[str, Any]] = {
    "ada": {"name": "Ada Lovelace", "preferred_username": "ada", "email": "ada@example.com", "email_verified": True},
    "grace": {
        "name": "Grace Hopper",
        "preferred_username": "grace",
        "email": "grace@example.com",
        "email_verified": False,
    },
}
"""What is known of each person; the key is the subject."""

Answer = tuple[int, str, bytes, dict[str, str]]


@dataclass(frozen=True)
class Grant:
    """A code that was given out: for whom, and the request that it answers."""

    subject: str
    request: dict[str, str]
    expires_at: float


@dataclass
class Provider:
    """The answers of a provider with one client. `address`: the issuer."""

    address: str
    client_id: str
    client_secret: str
    key: RSAKey = field(
        default_factory=lambda: RSAKey.generate_key(2048, {"use": "sig", "alg": "RS256"}, auto_kid=True)
    )
    grants: dict[str, Grant] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def metadata(self) -> Answer:
        """Say where things are."""
        return _json(
            {
                "issuer": self.address,
                "authorization_endpoint": f"{self.address}/authorize",
                "token_endpoint": f"{self.address}/token",
                "jwks_uri": f"{self.address}/keys",
                "response_types_supported": ["code"],
                "subject_types_supported": ["public"],
                "id_token_signing_alg_values_supported": ["RS256"],
                "code_challenge_methods_supported": ["S256"],
            }
        )

    def keys(self) -> Answer:
        """Give the key that signs."""
        return _json({"keys": [self.key.as_dict(private=False)]})

    def authorize(self, request: dict[str, str]) -> Answer:
        """Ask who it is, or send the person back with a code."""
        if request.get("client_id") != self.client_id or not _is_local(request.get("redirect_uri", "")):
            return _page("<h1>Unknown program</h1>", status=400)
        if request.get("response_type") != "code" or request.get("code_challenge_method") != "S256":
            return _page("<h1>Code flow with PKCE only</h1>", status=400)
        subject = request.pop("person", "")
        if subject not in PEOPLE:
            return _page("<h1>Who are you?</h1><p>A provider for trying things out.</p>" + _choices(request))
        code = secrets.token_urlsafe(24)
        with self.lock:
            self.grants[code] = Grant(subject, request, time.monotonic() + CODE_SECONDS)
        query = urlencode({"code": code, "state": request.get("state", ""), "iss": self.address})
        return 302, "text/plain", b"", {"Location": f"{request['redirect_uri']}?{query}"}

    def token(self, form: dict[str, str], authorization: str) -> Answer:
        """Give the tokens for a code, once, to the client that has the verifier."""
        expected = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        if not hmac.compare_digest(authorization.encode(), f"Basic {expected}".encode()):
            return _json({"error": "invalid_client"}, status=401)
        with self.lock:
            grant = self.grants.pop(form.get("code", ""), None)
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).decode().rstrip("=")
        is_good = (
            grant is not None
            and grant.expires_at > time.monotonic()
            and form.get("redirect_uri") == grant.request["redirect_uri"]
            and hmac.compare_digest(challenge, grant.request.get("code_challenge", ""))
        )
        if grant is None or not is_good:
            return _json({"error": "invalid_grant"}, status=400)
        signed = jwt.encode({"alg": "RS256", "kid": self.key.kid}, self.claims(grant), self.key)
        access = secrets.token_urlsafe(24)
        return _json({"access_token": access, "token_type": "Bearer", "expires_in": 60, "id_token": signed})

    def claims(self, grant: Grant) -> dict[str, Any]:
        """Give what the ID token says."""
        now = int(time.time())
        return {
            "iss": self.address,
            "sub": grant.subject,
            "aud": self.client_id,
            "iat": now,
            "exp": now + 60,
            "nonce": grant.request.get("nonce", ""),
            **PEOPLE[grant.subject],
        }


def serve(provider: Provider, server: ThreadingHTTPServer) -> None:
    """Answer requests until the process ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            address = urlsplit(self.path)
            match address.path:
                case "/.well-known/openid-configuration":
                    self._send(provider.metadata())
                case "/keys":
                    self._send(provider.keys())
                case "/authorize":
                    self._send(provider.authorize(dict(parse_qsl(address.query))))
                case _:
                    self._send(_page("<h1>Nothing here</h1>", status=404))

        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("Content-Length") or 0), BODY_BYTES)).decode()
            if urlsplit(self.path).path == "/token":
                self._send(provider.token(dict(parse_qsl(body)), self.headers.get("Authorization", "")))
            else:
                self._send(_page("<h1>Nothing here</h1>", status=404))

        def _send(self, answer: Answer) -> None:
            status, kind, body, headers = answer
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(body)), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *arguments: object) -> None:
            """Say nothing: codes stand in addresses."""

    server.RequestHandlerClass = Handler
    server.serve_forever()


def main(kind: type[Provider] = Provider) -> None:
    """Serve on this machine until a signal."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, required=True)
    port: int = parser.parse_args().port
    server = ThreadingHTTPServer(("127.0.0.1", port), BaseHTTPRequestHandler)
    client = os.environ["ASSISTANT_CLIENT_ID"], os.environ["ASSISTANT_CLIENT_SECRET"]
    with contextlib.suppress(KeyboardInterrupt):
        serve(kind(f"http://127.0.0.1:{port}", *client), server)


def _choices(request: dict[str, str]) -> str:
    addresses = {each: html.escape("?" + urlencode({**request, "person": each})) for each in PEOPLE}
    links = [f'<p><a href="{addresses[each]}">{html.escape(known["name"])}</a></p>' for each, known in PEOPLE.items()]
    return "".join(links)


def _is_local(address: str) -> bool:
    return urlsplit(address).hostname in {"127.0.0.1", "localhost"}


def _json(value: dict[str, Any], *, status: int = 200) -> Answer:
    return status, "application/json", json.dumps(value).encode(), {"Cache-Control": "no-store"}


def _page(body: str, *, status: int = 200) -> Answer:
    head = '<!doctype html><html lang="en"><meta name="viewport" content="width=device-width"><title>Provider</title>'
    return status, "text/html; charset=utf-8", f"{head}<main>{body}</main></html>".encode(), {}


if __name__ == "__main__":
    main()
