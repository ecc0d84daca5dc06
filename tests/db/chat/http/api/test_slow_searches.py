"""Searches by rules of `.gitignore` that take long: they end with an error, with their time, or with their client."""

import asyncio
import time
from collections.abc import Callable
from http.cookies import SimpleCookie
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User

from chat.agents import Assistant
from chat.models import AgentInstance
from tests.db.chat.conftest import ApiClient
from thinkproject.asgi import application
from tools_app.core.files.workspace import MakeDirectory, Put
from tools_app.workspace import ignoring
from tools_app.workspace.ignoring import searches
from tools_app.workspace.stores.memory import MemoryWorkspace

pytestmark = pytest.mark.django_db(transaction=True)
RULES = "\n".join(f"*a*{number}*b*" for number in range(20_000)).encode()


@pytest.fixture
def search_address(alice: User, make_instance: Callable[..., AgentInstance], monkeypatch: pytest.MonkeyPatch) -> str:
    """Where the files of one conversation of Alice's are searched; its rules take long."""
    store = MemoryWorkspace()
    puts = [Put(path=f"/d/{'a1b' * 80}{number}", content=b"") for number in range(4_000)]
    async_to_sync(store.apply)([MakeDirectory(path="/d"), Put(path="/.gitignore", content=RULES), *puts])
    monkeypatch.setattr(Assistant, "get_workspace", lambda _self: store)
    return f"/instances/{make_instance(alice, 'talk').pk}/workspace/search"


def test_a_search_that_takes_too_long_says_how_it_can_be_done(search_address: str, as_alice: ApiClient) -> None:
    answer = as_alice.get(f"{search_address}?pattern=**/*")
    assert 400 <= answer.status_code < 500
    assert ".gitignore files here take too long" in answer.content.decode()
    assert as_alice.get(f"{search_address}?pattern=**/*&ignored=true").json()["is_cut"]


async def test_a_search_ends_when_its_client_has_gone(search_address: str, as_alice: ApiClient) -> None:
    cookies: SimpleCookie = as_alice.http.cookies
    header = "; ".join(f"{name}={morsel.value}" for name, morsel in cookies.items())
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": f"/api/v1{search_address}",
        "raw_path": f"/api/v1{search_address}".encode(),
        "query_string": b"pattern=**/*",
        "root_path": "",
        "headers": [(b"host", b"testserver"), (b"cookie", header.encode())],
        "client": ("127.0.0.1", 1),
        "server": ("testserver", 80),
    }
    came: list[dict[str, Any]] = []
    sent = [{"type": "http.request", "body": b"", "more_body": False}]

    async def receive() -> Any:
        if sent:
            return sent.pop()
        await until(True)
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        came.append(message)

    async with asyncio.timeout(30):
        await application(scope, receive, send)
    before = time.process_time()
    await until(False)
    assert time.process_time() - before < ignoring.SECONDS / 2
    assert came == []


async def until(is_searching: bool) -> None:
    async with asyncio.timeout(20):
        while bool(searches._running) is not is_searching:  # noqa: ASYNC110 - of threads
            await asyncio.sleep(0.01)
