"""The document inside a preview's frame: it holds nothing, and its policy isolates it whatever is written into it."""

import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.http.preview_frame import RENDERED, policy

pytestmark = pytest.mark.django_db


def directives(text: str) -> dict[str, str]:
    return dict(part.split(" ", 1) for part in text.split("; "))


@pytest.fixture
def framing(alice: User) -> Client:
    client = Client()
    client.force_login(alice)
    return client


@pytest.mark.parametrize("kind", ["html", *RENDERED])
def test_nothing_is_reached_and_the_origin_is_opaque(framing: Client, kind: str) -> None:
    reply = framing.get(f"/preview/{kind}")
    found = directives(reply["Content-Security-Policy"])
    assert found["sandbox"] == "allow-scripts"
    assert (found["default-src"], found["form-action"], found["base-uri"]) == ("'none'",) * 3
    assert (found["frame-ancestors"], reply["X-Frame-Options"]) == ("'self'", "SAMEORIGIN")
    assert "connect-src" not in found
    assert "https:" not in reply["Content-Security-Policy"]
    assert holds_no_person(reply.content.decode())


def holds_no_person(document: str) -> bool:
    """Whether nothing of a person is in a document."""
    return not any(word in document for word in ("alice", "csrf", "session"))


@pytest.mark.parametrize("kind", RENDERED)
def test_only_our_script_runs_where_we_draw(framing: Client, kind: str) -> None:
    reply = framing.get(f"/preview/{kind}")
    nonces = set(re.findall(r'<script src="[^"]+" nonce="([^"]+)"', reply.content.decode()))
    assert len(nonces) == 1
    assert directives(reply["Content-Security-Policy"])["script-src"] == f"'nonce-{nonces.pop()}'"
    again = framing.get(f"/preview/{kind}")
    assert reply["Content-Security-Policy"] != again["Content-Security-Policy"]


def test_the_network_is_allowed_by_kind_and_by_https_alone(framing: Client) -> None:
    found = directives(framing.get("/preview/html?network=1")["Content-Security-Policy"])
    assert found["connect-src"] == "https: wss:"
    assert (found["sandbox"], found["default-src"], found["form-action"]) == ("allow-scripts", "'none'", "'none'")
    assert "https:" in framing.get("/preview/svg?network=1")["Content-Security-Policy"]
    for kind in ("markdown", "mermaid", "csv", "chart"):
        assert "https:" not in framing.get(f"/preview/{kind}?network=1")["Content-Security-Policy"]
    assert "script-src 'nonce-" in policy("svg", nonce="n", is_networked=True)


def test_strangers_and_unknown_kinds_get_nothing(framing: Client) -> None:
    assert Client().get("/preview/html").status_code == 302
    assert framing.get("/preview/exe").status_code == 404
    assert framing.post("/preview/html").status_code == 405
