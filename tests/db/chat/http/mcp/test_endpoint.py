"""The endpoint of an agent: who may ask for what, by which token, from where, and how often."""

import asyncio
import json
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from chat.access import api_tokens
from chat.access.auth import open_agent
from chat.agents import Assistant
from chat.errors import QuotaExceeded
from chat.http.mcp.endpoint import McpEndpoint
from chat.instances.rows import ensure_instance
from chat.models import AgentInstance, Turn
from chat.turns.admission.admit import TurnRequest, admit
from chat.turns.admission.intake import Submit
from tests.db.chat.http.mcp.flows import (
    ORIGIN,
    Program,
    answer_of,
    authorised,
    call,
    make_user,
    names,
    post,
)

pytestmark = pytest.mark.django_db(transaction=True)
SCOPES = {
    "chat": {"chat"},
    "tools": {"current_time", "read"},
    "history": set(),
    "chat tools": {"chat", "current_time", "read"},
}


async def token_of(user: User) -> str:
    """An API token of a user's."""
    _, secret = await sync_to_async(api_tokens.create_token)(user, name="tests")
    return secret


async def test_without_a_token_a_program_learns_where_to_ask_for_one() -> None:
    response = await post(call("tools/list"))
    assert response.status_code == 401
    header = response.headers["www-authenticate"]
    assert f'resource_metadata="{ORIGIN}/.well-known/oauth-protected-resource/mcp/assistant"' in header
    assert "error=" not in header
    wrong = await post(call("tools/list"), token="think_wrong")
    assert 'error="invalid_token"' in wrong.headers["www-authenticate"]


async def test_an_api_token_may_do_everything_and_a_cookie_nothing(alice: User) -> None:
    assert await names(await token_of(alice)) == {"chat", "current_time", "read"}
    program = await Program().sign_in(alice)
    cookie = f"{program.browser.cookies.output(header='', sep=';')}"
    assert (await post(call("tools/list"), Cookie=cookie)).status_code == 401


@pytest.mark.parametrize("scope", SCOPES)
async def test_a_program_sees_and_calls_what_its_scopes_allow(alice: User, scope: str) -> None:
    _, tokens = await authorised(alice, scope=scope)
    token = tokens["access_token"]
    assert tokens["scope"] == scope
    assert await names(token) == SCOPES[scope]
    for name in {"chat", "current_time"} - SCOPES[scope]:
        refused = answer_of(await post(call("tools/call", name=name, arguments={"message": "hi"}), token=token))
        assert "Unknown tool" in refused["error"]["message"]
    resources = answer_of(await post(call("resources/list"), token=token))
    assert ("error" in resources) == (scope != "history")
    assert not await Turn.objects.aexists()


async def test_a_token_works_at_its_own_endpoint_only(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    _, tokens = await authorised(alice)
    token = tokens["access_token"]
    elsewhere = await post(call("tools/list"), token=token, Host="127.0.0.1")
    assert elsewhere.status_code == 401
    api = await Program().http.get("/api/v1/instances", headers={"Authorization": f"Bearer {token}"})
    assert api.status_code == 401
    refresh = await post(call("tools/list"), token=tokens["refresh_token"])
    assert refresh.status_code == 401
    monkeypatch.setattr(Assistant, "mcp_server", False)
    assert (await post(call("tools/list"), token=token)).status_code == 404


async def test_an_agent_that_offers_nothing_is_not_there(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "mcp_server", False)
    assert (await post(call("tools/list"), token=await token_of(alice))).status_code == 404
    assert (await post(call("tools/list"), agent="nobody")).status_code == 404


async def test_an_agent_may_offer_itself_alone(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "mcp_server", True)
    assert await names(await token_of(alice)) == {"chat"}
    assert not await AgentInstance.objects.aexists()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "testserver.evil.example"}, 421),
        ({"Host": "169.254.169.254"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://testserver.evil.example"}, 403),
        ({"Origin": "http://testserver:81"}, 403),
        ({"Origin": "http://testserver"}, 200),
        ({}, 200),
    ],
)
async def test_a_foreign_host_or_origin_is_refused(alice: User, headers: dict[str, str], status: int) -> None:
    response = await post(call("tools/list"), token=await token_of(alice), **headers)
    assert response.status_code == status


async def test_pages_of_listed_origins_may_ask(alice: User, settings: Any) -> None:
    settings.THINK_ALLOWED_ORIGINS = ["https://app.example"]
    response = await post(call("tools/list"), token=await token_of(alice), Origin="https://app.example")
    assert response.status_code == 200
    assert response.headers["access-control-allow-origin"] == "https://app.example"
    refused = await post(call("tools/list"), Origin="https://app.example")
    assert (refused.status_code, refused.headers["access-control-allow-origin"]) == (401, "https://app.example")
    asked = {"Origin": "https://app.example", "Access-Control-Request-Method": "POST"}
    preflight = await post(b"", method="OPTIONS", **asked)
    assert preflight.status_code == 204
    assert "Authorization" in preflight.headers["access-control-allow-headers"]
    foreign = await post(b"", method="OPTIONS", Origin="https://evil.example")
    assert foreign.status_code == 403
    assert "access-control-allow-origin" not in foreign.headers


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT", "HEAD"])
async def test_requests_are_posted(alice: User, method: str) -> None:
    response = await post(b"", token=await token_of(alice), method=method)
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


DEEP = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}"


@pytest.mark.parametrize("version", ["2025-06-18", "2026-07-28", "1999-01-01", "\u00e9"])
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b"\xff\xfe",
        b'"text"',
        b"[" * 50_000,
        DEEP,
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
        b'{"jsonrpc":"2.0","id":1,"method":"no/such"}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chat","arguments":[]}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"think://assistant/\\u0000"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"think://[x/"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"resources/list","params":{"cursor":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\u0000","arguments":{}}}',
        b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":{"a":1}}}',
    ],
)
async def test_malformed_requests_are_answered(alice: User, version: str, body: bytes) -> None:
    token = await token_of(alice)
    response = await post(body, token=token, **{"MCP-Protocol-Version": version.encode("latin-1")})  # type: ignore[arg-type]  # bytes
    assert response.status_code < 500
    assert await names(token)
    assert not await Turn.objects.aexists()


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25"])
async def test_the_text_of_an_exception_stays_on_the_server(
    alice: User, monkeypatch: pytest.MonkeyPatch, version: str
) -> None:
    def fail(*_arguments: Any) -> None:
        raise RuntimeError("a path, a query, a secret")

    token = await token_of(alice)
    monkeypatch.setattr("chat.http.mcp.resources._page", fail)
    listed = await post(call("resources/list"), token=token, MCP_Protocol_Version=version)
    assert answer_of(listed)["error"]["message"] == "Something went wrong."
    monkeypatch.setattr(Assistant, "get_tools", fail)
    tools = await post(call("tools/list"), token=token, MCP_Protocol_Version=version)
    assert answer_of(tools)["error"]["data"] == {"error": "agent_code_failed"}
    assert "secret" not in listed.text + tools.text


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"message": ""},
        {"message": 7},
        {"message": "x" * 100_001},
        {"message": "hi", "conversation": "sub"},
        {"message": "hi", "conversation": "a\0b"},
        {"message": "hi", "conversation": 7},
        {"message": "hi", "other": 1},
    ],
)
async def test_a_message_that_is_none_is_refused_with_words(alice: User, arguments: dict[str, Any]) -> None:
    request = call("tools/call", name="chat", arguments=arguments)
    result = answer_of(await post(request, token=await token_of(alice)))["result"]
    assert (result["isError"], result["structuredContent"]["error"]) == (True, "input_invalid")
    assert not await Turn.objects.aexists()


async def test_a_body_is_limited_as_those_of_the_api(alice: User, settings: Any) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 2 * 1024 * 1024
    token = await token_of(alice)
    fits = json.dumps(call("tools/list", filler="x" * 1_500_000)).encode()
    assert (await post(fits, token=token)).status_code == 200
    assert (await post(fits + b" " * 1_000_000, token=token)).status_code == 413


async def test_requests_of_one_user_are_limited_over_all_endpoints(alice: User, settings: Any) -> None:
    settings.THINK_MCP_SERVER_REQUESTS_PER_MINUTE = 3
    token = await token_of(alice)
    statuses = {(await post(call("ping"), token=token)).status_code for _ in range(8)}
    assert 429 in statuses  # a minute may have begun in between
    refused = await post(call("ping"), token=await token_of(alice))
    if refused.status_code == 429:
        assert int(refused.headers["retry-after"]) > 0
    assert (await post(call("ping"), token=await token_of(await make_user("bob")))).status_code == 200


async def test_turns_of_programs_and_of_the_api_count_together(alice: User, settings: Any) -> None:
    settings.THINK_TURNS_PER_MINUTE = 2
    key = (await sync_to_async(open_agent)(alice, "assistant", "talk")).key
    for _ in range(2):
        message: Any = {"role": "user", "parts": [{"type": "text", "text": "hi"}]}
        await sync_to_async(admit)(key, TurnRequest(intake=Submit(message=message)))
    token = await token_of(alice)
    for name, arguments in (("chat", {"message": "hi"}), ("current_time", {})):
        refused = answer_of(await post(call("tools/call", name=name, arguments=arguments), token=token))["result"]
        assert (refused["isError"], refused["structuredContent"]["error"]) == (True, "quota_exceeded")
    assert await Turn.objects.acount() == 2


async def test_conversations_of_programs_count_as_any(alice: User, settings: Any) -> None:
    settings.THINK_INSTANCES_PER_USER = 1
    await sync_to_async(ensure_instance)((await sync_to_async(open_agent)(alice, "assistant", "talk")).key)
    request = call("tools/call", name="chat", arguments={"message": "hi"})
    refused = answer_of(await post(request, token=await token_of(alice)))["result"]
    assert refused["structuredContent"]["error"] == QuotaExceeded.code
    assert await AgentInstance.objects.acount() == 1


async def test_two_people_see_their_own_conversations_alone(alice: User) -> None:
    bob = await make_user("bob")
    for user, name in ((alice, "hers"), (bob, "his"), (alice, "both"), (bob, "both")):
        await sync_to_async(ensure_instance)(
            (await sync_to_async(open_agent)(user, "assistant", name)).key, title=f"{user.username}s-title"
        )
    _, tokens = await authorised(bob)
    for token in (tokens["access_token"], await token_of(bob)):
        listed = answer_of(await post(call("resources/list"), token=token))["result"]["resources"]
        assert {item["uri"] for item in listed} == {"think://assistant/his", "think://assistant/both"}
        assert {item["title"] for item in listed} == {"bobs-title"}
        hers = answer_of(await post(call("resources/read", uri="think://assistant/hers"), token=token))
        nobodys = answer_of(await post(call("resources/read", uri="think://assistant/none"), token=token))
        assert hers == nobodys
        assert "error" in hers
        both = answer_of(await post(call("resources/read", uri="think://assistant/both"), token=token))
        assert json.loads(both["result"]["contents"][0]["text"])["title"] == "bobs-title"


async def test_a_name_leads_to_ones_own_conversation(alice: User) -> None:
    bob = await make_user("bob")
    hers = await sync_to_async(ensure_instance)((await sync_to_async(open_agent)(alice, "assistant", "hers")).key)
    request = call("tools/call", name="chat", arguments={"message": "hi", "conversation": "hers"})
    token = await token_of(bob)
    sent = asyncio.create_task(post(request, token=token))
    async with asyncio.timeout(20):
        while (turn := await Turn.objects.select_related("instance").afirst()) is None:  # noqa: ASYNC110 - rows publish nothing
            await asyncio.sleep(0.02)
    sent.cancel()
    await asyncio.gather(sent, return_exceptions=True)
    assert (turn.instance.owner_id, turn.instance_id == hers.pk) == (bob.pk, False)


async def test_a_list_of_conversations_has_pages(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.http.mcp.resources.PAGE", 2)
    for number in range(5):
        await sync_to_async(ensure_instance)(
            (await sync_to_async(open_agent)(alice, "assistant", f"talk-{number}")).key
        )
    token = await token_of(alice)
    seen: list[str] = []
    cursor: dict[str, str] = {}
    for _ in range(3):
        page = answer_of(await post(call("resources/list", **cursor), token=token))["result"]
        seen += [item["name"] for item in page["resources"]]
        cursor = {"cursor": page.get("nextCursor", "")}
    assert sorted(seen) == [f"talk-{number}" for number in range(5)]
    assert not cursor["cursor"]


async def test_the_list_of_tools_is_bounded(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("chat.http.mcp.tools.MAX_TOOLS", 2)
    assert len(await names(await token_of(alice))) == 2


async def test_pages_of_sign_ins_at_servers_are_not_an_agent() -> None:
    passed: list[str] = []

    async def pages(scope: Any, _receive: Any, _send: Any) -> None:
        passed.append(scope["path"])

    async def nothing(*_: Any) -> Any:
        return {"type": "http.disconnect"}

    paths = ["/mcp/oauth/start/docs", "/mcp/oauth/callback"]
    for path in paths:
        await McpEndpoint(pages)({"type": "http", "path": path, "headers": []}, nothing, nothing)
    assert passed == paths
