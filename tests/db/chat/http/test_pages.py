"""The pages of the web UI: what is embedded in each, and how many queries that takes."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from chat.models import AgentInstance
from tests.db.chat.conftest import say
from tests.db.chat.http.api.questions import ask

Make = Callable[..., AgentInstance]
BOOT = re.compile(r'<script id="boot" type="application/json">(.*?)</script>', re.DOTALL)


@pytest.fixture
def alices_browser(alice: User) -> Client:
    """A browser that Alice is signed in with."""
    made = Client()
    made.force_login(alice)
    return made


def boot_of(client: Client, path: str) -> dict[str, Any]:
    """What is embedded in a page."""
    reply = client.get(path)
    assert reply.status_code == 200
    found = BOOT.search(reply.content.decode())
    assert found is not None
    embedded: dict[str, Any] = json.loads(found[1])
    return embedded


def test_approvals_page_embeds_what_waits(alices_browser: Client, conversation: AgentInstance) -> None:
    ask(conversation, "c1")
    ask(conversation, "c2")
    boot = boot_of(alices_browser, "/approvals")
    assert (boot["page"], boot["instance"], boot["messages"]) == ("approvals", None, None)
    assert [item["call_id"] for item in boot["approvals"]["items"]] == ["c2", "c1"]
    assert boot["approvals"]["count"] == 2
    page = alices_browser.get("/approvals").content.decode()
    assert "<title>Approvals · Think</title>" in page
    assert 'data-view="approvals"' in page


def test_other_pages_embed_how_many_wait(alices_browser: Client, conversation: AgentInstance) -> None:
    for number in range(3):
        ask(conversation, f"c{number}")
    for path in ("/", "/c/new", f"/c/{conversation.id}"):
        assert boot_of(alices_browser, path)["approvals"]["count"] == 3, path


def test_person_and_way_out_are_embedded(alices_browser: Client, alice: User) -> None:
    boot = boot_of(alices_browser, "/c/new")
    assert boot["user"] == alice.get_username()
    assert alices_browser.post(boot["urls"]["logout"]).status_code in {200, 302}
    assert alices_browser.get("/c/new").status_code == 302, "signed out"


def test_questions_do_not_add_queries(alices_browser: Client, alice: User, make_instance: Make) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            alices_browser.get("/approvals")
        return len(captured)

    first = make_instance(alice, "first")
    say(first, "q", "a1")
    ask(first, "c0")
    alices_browser.get("/approvals")
    few = queries()
    for number in range(1, 8):
        other = make_instance(alice, f"other-{number}")
        say(other, f"q{number}", f"b{number}")
        ask(other, f"c{number}")
    assert queries() == few
