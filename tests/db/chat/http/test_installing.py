"""The page as an installed program: what browsers fetch for it holds nothing of a person, and nothing that changes."""

import json
import re

import pytest
from django.contrib.auth.models import User
from django.test import Client

from chat.http import assets

pytestmark = pytest.mark.django_db


def test_manifest_names_icons_that_are_there() -> None:
    reply = Client().get("/manifest.webmanifest")
    assert reply.headers["Content-Type"] == "application/manifest+json"
    manifest = json.loads(reply.content)
    assert (manifest["start_url"], manifest["scope"], manifest["display"]) == ("/", "/", "standalone")
    assert {icon["sizes"] for icon in manifest["icons"]} == {"any", "192x192", "512x512"}
    for icon in manifest["icons"]:
        assert (assets.MANIFEST.parent / icon["src"].rpartition("/")[2]).exists()


def test_worker_names_one_build_and_only_what_belongs_to_nobody(alice: User) -> None:
    signed_in = Client()
    signed_in.force_login(alice)
    reply = signed_in.get("/worker.js")
    assert reply.headers["Content-Type"].startswith("text/javascript")
    assert "no-cache" in reply.headers["Cache-Control"]
    text = reply.content.decode()
    found = re.match(r"self\.BUILT=(\{.*?\});\n", text)
    assert found is not None
    built = json.loads(found[1])
    assert built["offline"] == "/offline"
    assert all(re.search(r"\.[0-9a-f]{12}\.\w+$", each) for each in built["offlineFiles"])
    assert Client().get("/worker.js").content == reply.content
    assert "connect-src 'self'" in reply.headers["Content-Security-Policy"]


def test_page_without_a_line_is_the_same_for_all(alice: User) -> None:
    signed_in = Client()
    signed_in.force_login(alice)
    nonce = re.compile(r' nonce="[^"]*"')
    pages = {nonce.sub("", each.get("/offline").content.decode()) for each in (signed_in, Client())}
    assert len(pages) == 1
    assert "csrf" not in pages.pop()


def test_pages_name_the_manifest_and_let_one_script_become_a_worker(alice: User) -> None:
    signed_in = Client()
    signed_in.force_login(alice)
    reply = signed_in.get("/c/new")
    assert '<link rel="manifest" href="/manifest.webmanifest">' in reply.content.decode()
    assert "trusted-types dompurify think-worker" in reply.headers["Content-Security-Policy"]
