"""Who may use the addresses of `useChat`, from where, and what is said to everybody else."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.contrib.sessions.backends.db import SessionStore
from django.http import HttpRequest
from django.test import AsyncRequestFactory

from chat.access import api_tokens
from chat.http.usechat.views import chat, chat_stream
from chat.instances.rows import key_of
from chat.models import AgentInstance, Turn
from chat.reads.snapshots import current_transcript
from chat.streams.logs.log import close_logs
from tests.db.chat.access_rows import all_rows
from tests.db.chat.use_chat import API, HERE, STREAM, Page, asks, assistant, problem_of, user

pytestmark = pytest.mark.django_db(transaction=True)
Make = Callable[..., AgentInstance]


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"Origin": "https://evil.example"}, 403), ({"Origin": "http://testserver:81"}, 403), ({"Origin": ""}, 403),
     ({"Origin": "null"}, 403), ({}, 200), ({"Origin": "http://localhost:5173"}, 200)],
)  # fmt: skip
async def test_a_cookie_changes_something_only_from_a_page_of_ours(
    alice: User, settings: Any, headers: dict[str, str], status: int
) -> None:
    settings.THINK_ALLOWED_ORIGINS = ["http://localhost:5173"]
    page = await Page(alice, **headers).sign_in()
    before = await sync_to_async(all_rows)()
    assert (await page.stop()).status_code == status
    response = await page.say("u1")
    assert response.status_code == status
    if status == 403:
        assert problem_of(response)[1] == "origin_denied"
        assert await sync_to_async(all_rows)() == before
        assert (await page.resume()).status_code == 204  # it only reads
    await close_logs()


async def test_csrf_no_form_of_another_site_can_post(page: Page) -> None:
    text = json.dumps(asks([user("u1")]))
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", ""):
        response = await page.http.generic("POST", API, text, content_type=kind, headers=page.headers)
        assert problem_of(response)[:2] == (422, "input_invalid")
    assert not await Turn.objects.aexists()


async def test_strangers_and_wrong_tokens_are_refused(alice: User) -> None:
    for page in (Page(), Page(Authorization="Bearer think_x"), await Page(alice, Authorization="Bearer x").sign_in()):
        for response in (await page.say("u1"), await page.resume(), await page.stop()):
            assert problem_of(response)[:2] == (401, "unauthenticated")
    assert not await AgentInstance.objects.aexists()


@pytest.mark.parametrize("where", ["header", "query"])
async def test_a_token_needs_no_origin(alice: User, where: str) -> None:
    _row, secret = await sync_to_async(api_tokens.create_token)(alice, name="t")
    page = Page(Origin="https://anywhere.example", Authorization=f"Bearer {secret}" if where == "header" else "")
    path = API if where == "header" else f"{API}?token={secret}"
    assert (await page.post(asks([user("u1")]), path)).status_code == 200
    await close_logs()


async def test_names_are_the_askers_own(page: Page, bob: User, talk: AgentInstance) -> None:
    await page.say("u1")
    other = await Page(bob).sign_in()
    before = await sync_to_async(all_rows)()
    assert (await other.resume()).status_code == 204
    assert json.loads((await other.stop()).content) == {"stopped": 0}
    assert await sync_to_async(all_rows)() == before
    await other.say("u1")
    theirs = await AgentInstance.objects.aget(owner_id=bob.pk)
    assert [m["id"] for m in await sync_to_async(current_transcript)(key_of(theirs))] == ["u1"]
    await close_logs()


@pytest.mark.parametrize(
    "body",
    ["", "[]", "{",
     '{"messages": 3}', '{"messages": [{"id": "u1"}]}', '{"messages": [7]}', '{"messages": [], "x": NaN}',
     json.dumps(asks([assistant("unknown")])),
     json.dumps(asks([{**user("u1"), "id": "x" * 200}])), "{" + '"a":[' * 200 + "]" * 200 + "}"],
)  # fmt: skip
async def test_bad_bodies_say_what_is_wrong_and_change_nothing(page: Page, talk: AgentInstance, body: str) -> None:
    before = await sync_to_async(all_rows)()
    status, code, detail = problem_of(await page.post(body))
    assert (status, code in {"frame_invalid", "input_invalid"}) == (422, True)
    assert detail.endswith(".")
    assert "frame" not in detail
    assert await sync_to_async(all_rows)() == before


async def test_413_a_body_that_is_too_large(page: Page, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 1000
    assert problem_of(await page.say("u1", "x" * 2000))[:2] == (413, "too_large")
    assert not await Turn.objects.aexists()


async def test_429_a_limit_is_sent_before_the_stream(page: Page, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 1
    await page.say("u1")
    status, code, _ = problem_of(await page.say("u2"))
    assert (status, code) == (429, "quota_exceeded")


@pytest.mark.parametrize(
    "path",
    ["/agents/nobody/talk/chat", "/agents/assistant/chat", "/agents/assistant/talk/sub/child/x/chat",
     "/agents/assistant/talk/more/chat"],
)  # fmt: skip
async def test_other_addresses_are_unknown(page: Page, path: str) -> None:
    assert problem_of(await page.post(asks([user("u1")]), path))[:2] == (404, "agent_not_found")
    assert problem_of(await page.resume(f"{path}/x/stream"))[:2] == (404, "agent_not_found")


async def test_names_and_chats_may_hold_slashes(alice: User) -> None:
    def ask(method: str, raw: str) -> HttpRequest:
        made = AsyncRequestFactory().generic(
            method, raw, json.dumps(asks([user("u1")])), content_type="application/json"
        )
        made.META["HTTP_ORIGIN"] = HERE
        vars(made)["scope"]["raw_path"] = raw.encode()  # as a server gives it
        made.user, made.session = alice, SessionStore()
        return made

    assert (await chat(ask("POST", "/agents/assistant/a%2Fchat/chat"))).status_code == 200
    assert (await AgentInstance.objects.aget()).name == "a/chat"
    assert (await chat_stream(ask("GET", "/agents/assistant/a%2Fchat/chat/x%2Fy/stream"))).status_code == 200
    await close_logs()


async def test_other_methods(page: Page) -> None:
    assert (await page.http.get(API)).status_code == 405
    assert (await page.http.post(STREAM)).status_code == 405
    for path, allowed in ((API, "POST, OPTIONS"), (STREAM, "GET, DELETE, OPTIONS")):
        response = await page.http.options(path)
        assert (response.status_code, response["Allow"]) == (204, allowed)
