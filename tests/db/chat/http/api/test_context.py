"""The API on contexts and memory: people see, edit and delete what is remembered (U2.38)."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from chat.agents import Assistant
from chat.models import AgentInstance
from chat.think import SessionSetup, StoredSearch, StoredSkills
from sessions_app.context import store
from sessions_app.context.history import MODEL, ContextOwner
from sessions_app.core.context.context_blocks import Entry
from sessions_app.messages.services import freeze_prompt
from tests.db.chat.conftest import ApiClient

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[SessionSetup], SessionSetup]], None]:
    """Have the shipped agent declare other blocks."""

    def declare(make: Callable[[SessionSetup], SessionSetup]) -> None:
        monkeypatch.setattr(Assistant, "configure_session", lambda _agent, session: make(session))

    return declare


@pytest.fixture
def url(conversation: AgentInstance) -> str:
    return f"/sessions/{conversation.session_id}"


def test_the_context_is_what_the_next_turn_reads(as_alice: ApiClient, alice: User, url: str) -> None:
    store.write_text(ContextOwner(owner_id=alice.pk), "memory", lambda _: "Likes tea.", by=MODEL)
    found = as_alice.get(f"{url}/context").json()
    assert [(block["label"], block["of"], block["writable"]) for block in found["blocks"]] == [
        ("instructions", "agent", False),
        ("memory", "user", True),
    ]
    assert "Likes tea." in found["system_prompt"]
    assert (found["is_kept"], found["is_outdated"], found["loaded"]) == (False, False, [])
    assert found["prompt_tokens"] > found["blocks"][0]["tokens"] > 0


def test_a_block_is_edited_and_forgotten(as_alice: ApiClient, url: str) -> None:
    written = as_alice.send("PUT", f"{url}/context/memory", {"content": "Likes tea."})
    assert (written.status_code, written.json()["content"], written.json()["tokens"]) == (200, "Likes tea.", 3)
    assert [memory["content"] for memory in as_alice.get("/memory").json()] == ["Likes tea."]
    assert as_alice.send("DELETE", f"{url}/context/memory?history=true").status_code == 204
    assert as_alice.get("/memory").json() == []
    changes = as_alice.get("/memory-changes").json()["items"]
    assert [(c["subject"], c["action"], c["before"], c["via"]) for c in changes] == [
        ("block:memory", "delete", "", "api"),
        ("block:memory", "set", "", "api"),
    ]


def test_a_persons_changes_are_in_the_session_diff(
    as_alice: ApiClient,
    alice: User,
    url: str,
    shown: Callable[[Callable[[SessionSetup], SessionSetup]], None],
) -> None:
    shown(lambda session: session.with_memory().with_context("facts", provider=StoredSearch(of="user")))
    mine = ContextOwner(owner_id=alice.pk)
    store.write_text(mine, "memory", lambda _: "Likes tea.", by=MODEL)
    store.put_entry(mine, "facts", Entry(key="cake", content="Likes cake."), by=MODEL)
    assert as_alice.get(f"{url}/summary").json()["documents"] == []
    assert as_alice.send("DELETE", f"{url}/context/memory").status_code == 204
    assert as_alice.send("DELETE", f"{url}/context/facts/entries/cake").status_code == 204
    sent = as_alice.get(f"{url}/summary").json()["documents"]
    assert [(each["label"], each["key"], each["of"], each["status"]) for each in sent] == [
        ("facts", "cake", "user", "deleted"),
        ("memory", None, "user", "deleted"),
    ]
    assert as_alice.send("PUT", f"{url}/context/facts/entries/milk", {"content": "No."}).status_code == 204
    assert as_alice.get(f"{url}/summary").json()["additions"] == 1


@pytest.mark.parametrize(
    ("path", "content", "status", "code"),
    [
        ("instructions", "evil", 409, "block_not_writable"),
        ("gone", "x", 404, "block_not_found"),
        ("memory", "x" * 4000, 422, "block_too_large"),
        ("memory", "a\0b", 422, "context_invalid"),
    ],
)
def test_what_does_not_fit_is_refused_and_changes_nothing(
    as_alice: ApiClient, url: str, path: str, content: str, status: int, code: str
) -> None:
    reply = as_alice.send("PUT", f"{url}/context/{path}", {"content": content})
    assert (reply.status_code, reply.json()["code"]) == (status, code)
    assert as_alice.get("/memory").json() == []
    assert as_alice.get("/memory-changes").json()["items"] == []


def test_a_frozen_prompt_is_shown_and_rendered_again(as_alice: ApiClient, url: str, shown: Any) -> None:
    shown(lambda session: session.with_context("notes").with_cached_prompt())
    session_id = url.rpartition("/")[2]
    freeze_prompt(session_id, "Old.")
    found = as_alice.get(f"{url}/context").json()
    assert (found["system_prompt"], found["is_kept"], found["is_outdated"]) == ("Old.", True, True)
    found = as_alice.send("POST", f"{url}/prompt").json()
    assert (found["is_kept"], found["is_outdated"]) == (True, False)
    as_alice.send("PUT", f"{url}/context/notes", {"content": "One."})  # a person's edit shows at once
    found = as_alice.get(f"{url}/context").json()
    assert "One." in found["system_prompt"]
    assert [c["after"] for c in as_alice.get(f"{url}/changes").json()["items"]] == ["One."]


@pytest.mark.parametrize("provider", [StoredSkills(), StoredSearch()])
def test_entries_of_a_session(as_alice: ApiClient, url: str, shown: Any, provider: Any) -> None:
    shown(lambda session: session.with_context("docs", provider=provider))
    for key in ("b", "a", "c"):
        body = {"content": f"text of {key}", "description": f"about {key}"}
        assert as_alice.send("PUT", f"{url}/context/docs/entries/{key}", body).status_code == 204
    page = as_alice.get(f"{url}/context/docs/entries?limit=2").json()
    assert ([entry["key"] for entry in page["items"]], page["next_after"]) == (["a", "b"], "b")
    page = as_alice.get(f"{url}/context/docs/entries?after=b").json()
    assert ([entry["key"] for entry in page["items"]], page["next_after"]) == (["c"], None)
    assert as_alice.send("DELETE", f"{url}/context/docs/entries/a").status_code == 204
    assert as_alice.send("DELETE", f"{url}/context/docs/entries/a").json()["code"] == "entry_not_found"
    assert as_alice.send("DELETE", f"{url}/context/docs").status_code == 204
    assert as_alice.get(f"{url}/context/docs/entries").json()["items"] == []
    changes = as_alice.get(f"{url}/changes?limit=2").json()
    assert [c["subject"] for c in changes["items"]] == ["entry:docs/c", "entry:docs/b"]
    older = as_alice.get(f"{url}/changes?before={changes['next_before']}&subject=entry:docs/b").json()
    assert [(c["action"], c["after"]) for c in older["items"]] == [("set", "text of b")]


def test_a_block_of_another_users_provider(as_alice: ApiClient, url: str, shown: Any) -> None:
    held = {"text": "old", "entries": {}}

    class Book:
        def get(self) -> str:
            return str(held["text"])

        def set(self, text: str) -> None:
            held["text"] = text

    class Shelf(Book):
        def load(self, key: str) -> None:
            """Nothing is there."""

    shown(lambda session: session.with_context("book", provider=Book()).with_context("shelf", provider=Shelf()))
    assert as_alice.send("DELETE", f"{url}/context/book").status_code == 204
    assert held["text"] == ""
    assert as_alice.send("DELETE", f"{url}/context/shelf").json()["code"] == "block_not_writable"
    assert as_alice.get(f"{url}/context/shelf/entries").json()["code"] == "block_not_writable"


def test_a_failing_provider_is_reported_without_its_exception(as_alice: ApiClient, url: str, shown: Any) -> None:
    def broken() -> str:
        raise RuntimeError("the shelf is locked")

    shown(lambda session: session.with_context("shelf", provider=broken))
    reply = as_alice.get(f"{url}/context")
    assert (reply.json()["code"], reply.json()["detail"]) == ("agent_code_failed", "The agent's own code failed.")


def test_an_agent_that_is_gone_still_shows_what_was_added(
    as_alice: ApiClient, alice: User, make_instance: Callable[..., AgentInstance]
) -> None:
    instance = make_instance(alice, "old", agent="gone-agent")
    assert instance.session_id is not None
    store.add_block(instance.session_id, "notes", store.Shape(description="Scratch"))
    found = as_alice.get(f"/sessions/{instance.session_id}/context").json()
    assert [block["label"] for block in found["blocks"]] == ["notes"]


def test_memory_of_a_person(as_alice: ApiClient, as_bob: ApiClient) -> None:
    assert as_alice.send("PUT", "/memory/about", {"content": "Lives in Berlin."}).json()["label"] == "about"
    assert as_alice.send("PUT", "/memory/facts/entries/tea", {"content": "Green.", "title": "Tea"}).status_code == 204
    sent = [(m["label"], m["content"], m["entry_count"]) for m in as_alice.get("/memory").json()]
    assert sent == [("about", "Lives in Berlin.", 0), ("facts", "", 1)]
    assert as_alice.get("/memory/facts/entries").json()["items"][0]["title"] == "Tea"
    assert as_bob.get("/memory").json() == []
    assert as_alice.send("DELETE", "/memory/facts/entries/tea").status_code == 204
    assert as_alice.send("DELETE", "/memory/facts").json()["code"] == "block_not_found"
    assert as_alice.send("PUT", "/memory/bad label", {"content": "x"}).json()["code"] == "context_invalid"
