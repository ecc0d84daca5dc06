"""People sign in at servers: registration, consent, refresh, revocation, and codes and states of others."""

import asyncio
import json
import logging
import os
import sys
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import httpx
import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone
from mcp.shared.auth import OAuthMetadata

from fibers.testing import run_until_idle
from tests.db.chat.access_rows import all_rows
from tests.db.chat.mcp_servers.conftest import only_server, tools_offered, until
from tests.db.chat.turns.conftest import Room, status_of
from tests.mcp.guarded import Consent, guarded_server
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import dump, load
from thinkproject.kernel.secrets import decrypt
from tools_app.core.mcp.catalogue import tool_name
from tools_app.errors import McpSignInFailed
from tools_app.mcp import tokens
from tools_app.mcp.oauth_client import _check_metadata
from tools_app.mcp.pool import McpPool
from tools_app.models import McpServer, McpSignIn

pytestmark = pytest.mark.django_db(transaction=True)
MakeRoom = Callable[..., Room]


@pytest.fixture
def consent(settings: Any) -> Iterator[Consent]:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    with guarded_server() as found:
        yield found


def browser(username: str = "alice") -> Client:
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.get(username=username))
    return client


def to_consent(client: Client, server: McpServer) -> str:
    """Begin: the address of the authorization server's page."""
    reply = client.get(f"/mcp/oauth/start/{server.pk}")
    assert reply.status_code == 302, reply.content
    return str(reply["Location"])


def consented(url: str) -> str:
    """A person agrees at the authorization server: the address that it leads back to, without our host."""
    reply = httpx.get(url, follow_redirects=False)
    assert reply.status_code == 302, reply.text
    parts = urlsplit(reply.headers["Location"])
    assert parts.netloc == "localhost"
    return f"{parts.path}?{parts.query}"


async def added(room: Room, consent: Consent) -> McpServer:
    """A server that turns out to want a sign-in."""
    await room.say("say: hi")

    async def work() -> None:
        while not (await only_server()).needs_sign_in:
            await run_until_idle(skip_delays=True)
            await asyncio.sleep(0.05)

    adding = asyncio.create_task(room.handle.add_mcp_server("guarded", consent.url))
    await _row_is_there()
    async with asyncio.timeout(30):
        await work()
    view = await adding
    assert (view.state, view.auth_url) == ("authenticating", f"/mcp/oauth/start/{view.id}")
    return await only_server()


async def _row_is_there() -> None:
    await until(lambda: db(McpServer.objects.exists))


async def signed_in(server: McpServer, client: Client | None = None) -> None:
    client = client or await sync_to_async(browser)()
    url = await sync_to_async(to_consent)(client, server)
    back = await asyncio.to_thread(consented, url)
    reply = await sync_to_async(client.get)(back)
    assert reply.status_code == 302, reply.content
    await run_until_idle(skip_delays=True)


async def say_secret(room: Room) -> Any:
    server = await only_server()
    turn = await room.say(f"call tool {tool_name(server.pk, 'secret')} {{}}\nsay: done")
    assert status_of(turn) == "completed"
    return next(part for part in (await room.transcript())[-1]["parts"] if "toolCallId" in part)


async def test_a_person_signs_in_and_the_tools_are_there(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    room = make_connected_room()
    server = await added(room, consent)
    await room.say("say: hi")
    assert not any(name.startswith("tool_") for name in tools_offered(room))
    await signed_in(server)
    (view,) = await room.handle.list_mcp_servers()
    assert (view.state, view.auth_url) == ("ready", None)
    part = await say_secret(room)
    assert "the secret of the guarded server" in dump(part["output"])
    (client,) = consent.clients.values()
    assert client.token_endpoint_auth_method == "none"
    assert str((client.redirect_uris or [])[0]) == "http://localhost/mcp/oauth/callback"


async def test_the_request_has_pkce_and_names_the_server(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    server = await added(make_connected_room(), consent)
    client = await sync_to_async(browser)()
    query = parse_qs(urlsplit(await sync_to_async(to_consent)(client, server)).query)
    assert query["code_challenge_method"] == ["S256"]
    assert query["resource"] == [consent.url]
    assert len(query["state"][0]) >= 32


async def test_tokens_are_in_no_row_no_log_and_no_answer(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent, caplog: pytest.LogCaptureFixture
) -> None:
    room = make_connected_room()
    with caplog.at_level(logging.DEBUG):
        server = await added(room, consent)
        await signed_in(server)
        await say_secret(room)
    secrets = [*consent.access, *consent.refresh]
    assert len(secrets) == 2
    stored = await db(lambda: repr(all_rows()))
    client = await sync_to_async(browser)()
    answer = (await sync_to_async(client.get)("/api/v1/mcp-servers")).content.decode()
    listed = (await sync_to_async(client.get)(f"/api/v1/instances/{server.instance_id}/mcp-servers")).content.decode()
    said = "\n".join(record.getMessage() + repr(vars(record)) for record in caplog.records)
    for secret in secrets:
        assert secret not in stored
        assert secret not in answer + listed
        assert secret not in said


async def test_a_code_or_state_of_others_is_of_no_use(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    server = await added(make_connected_room(), consent)
    await db(lambda: User.objects.create_user("mallory"))
    alice, mallory = await sync_to_async(browser)(), await sync_to_async(browser)("mallory")
    back = await asyncio.to_thread(consented, await sync_to_async(to_consent)(alice, server))
    # the state of another user, and that of another browser of the same user
    assert (await sync_to_async(mallory.get)(back)).status_code == 422
    assert (await sync_to_async((await sync_to_async(browser)()).get)(back)).status_code == 422
    # a stolen code within a flow of its thief: the verifier is another one
    code = parse_qs(urlsplit(back).query)["code"][0]
    own = await asyncio.to_thread(consented, await sync_to_async(to_consent)(alice, server))
    state = parse_qs(urlsplit(own).query)["state"][0]
    forged = f"/mcp/oauth/callback?{urlencode({'code': code, 'state': state})}"
    assert (await sync_to_async(alice.get)(forged)).status_code == 422
    assert not await db(lambda: McpSignIn.objects.exclude(grant="").exists())
    # and a server of another user
    assert (await sync_to_async(mallory.get)(f"/mcp/oauth/start/{server.pk}")).status_code == 404


async def test_an_answer_counts_once(make_connected_room: MakeRoom, connections: McpPool, consent: Consent) -> None:
    server = await added(make_connected_room(), consent)
    client = await sync_to_async(browser)()
    back = await asyncio.to_thread(consented, await sync_to_async(to_consent)(client, server))
    assert (await sync_to_async(client.get)(back)).status_code == 302
    assert (await sync_to_async(client.get)(back)).status_code == 422
    assert len(consent.access) == 1


async def test_who_refuses_is_not_signed_in_and_may_try_again(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    server = await added(make_connected_room(), consent)
    client = await sync_to_async(browser)()
    consent.refuses = True
    back = await asyncio.to_thread(consented, await sync_to_async(to_consent)(client, server))
    assert (await sync_to_async(client.get)(back)).status_code == 422
    consent.refuses = False
    await signed_in(server, client)
    assert await db(lambda: McpSignIn.objects.exclude(grant="").exists())


async def test_a_token_is_refreshed_before_its_end_by_one_process(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    room = make_connected_room()
    server = await added(room, consent)
    await signed_in(server)
    ends = timezone.now() + timedelta(seconds=5)
    await db(lambda: McpSignIn.objects.update(expires_at=ends))
    grants = await asyncio.gather(*(tokens.fresh_grant(server.pk, room.key.owner_id) for _ in range(8)))
    assert consent.refreshed == 1
    assert len({grant.access_token for grant in grants if grant is not None}) == 1
    part = await say_secret(room)
    assert part["state"] == "output-available"


async def test_a_token_that_was_revoked_there_asks_for_a_sign_in_here(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    room = make_connected_room()
    server = await added(room, consent)
    await signed_in(server)
    consent.forget_tokens()
    part = await say_secret(room)
    assert part["state"] == "output-error"
    assert "Sign in" in part["errorText"]
    (view,) = await room.handle.list_mcp_servers()
    assert view.state == "authenticating"
    await signed_in(await only_server())
    assert (await say_secret(room))["state"] == "output-available"


async def test_a_server_that_wants_more_rights_for_a_call_is_asked_for_them(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    room = make_connected_room()
    server = await added(room, consent)
    await signed_in(server)
    for wanted in ("secrets:read", "secrets:read vault"):  # the second time both are asked for
        consent.wanted = wanted.split()[-1]
        part = await say_secret(room)
        assert "Sign in" in part["errorText"]
        (view,) = await room.handle.list_mcp_servers()
        assert view.state == "authenticating"
        url = await sync_to_async(to_consent)(await sync_to_async(browser)(), await only_server())
        assert parse_qs(urlsplit(url).query)["scope"] == [wanted]
        await signed_in(await only_server())
        assert (await say_secret(room))["state"] == "output-available"


async def test_removing_a_server_revokes_its_tokens(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    consent.gives_secrets = True  # the package's own server wants one to revoke
    room = make_connected_room()
    server = await added(room, consent)
    await signed_in(server)
    assert await room.handle.remove_mcp_server(server.pk)
    assert consent.revoked == 1
    assert not await db(lambda: McpSignIn.objects.exists() or McpServer.objects.exists())


async def test_endpoints_of_other_origins_are_refused(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    room = make_connected_room()
    server = await added(room, consent)
    await signed_in(server)
    row = await db(McpSignIn.objects.get)
    kept = load(decrypt(row.grant))
    assert set(kept) == {"server_url", "resource", "scope", "metadata", "client", "tokens"}
    issuer = kept["metadata"]["issuer"]
    for wrong in ("https://elsewhere.example/token", "http://127.0.0.1:1/token"):
        metadata = OAuthMetadata.model_validate({**kept["metadata"], "revocation_endpoint": wrong})
        with pytest.raises(McpSignInFailed, match="on its own origin"):
            _check_metadata(metadata, issuer, "")


REFRESHER = """
import asyncio, json, os, sys
os.environ["DJANGO_SETTINGS_MODULE"] = "thinkproject.settings_test"
import django
from django.conf import settings
settings.DATABASES["default"] = json.loads(os.environ["OF_THE_TEST"])
settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
django.setup()
from tools_app.mcp.tokens import fresh_grant
print("ready", flush=True)
sys.stdin.readline()
grant = asyncio.run(fresh_grant(sys.argv[1], int(sys.argv[2])))
print(grant.access_token if grant else "", flush=True)
"""


@pytest.mark.long
async def test_two_worker_processes_refresh_a_token_once(
    make_connected_room: MakeRoom, connections: McpPool, consent: Consent
) -> None:
    room = make_connected_room()
    server = await added(room, consent)
    await signed_in(server)
    await db(lambda: McpSignIn.objects.update(expires_at=timezone.now() + timedelta(seconds=5)))
    plain = {name: value for name, value in connection.settings_dict.items() if name != "TEST"}
    plain["OPTIONS"] = {name: value for name, value in plain["OPTIONS"].items() if isinstance(value, str)}
    environ = {**os.environ, "OF_THE_TEST": json.dumps(plain, default=str), "PYTHONPATH": os.getcwd()}
    arguments = [sys.executable, "-c", REFRESHER, server.pk, str(room.key.owner_id)]
    pipe = asyncio.subprocess.PIPE
    processes = [
        await asyncio.create_subprocess_exec(*arguments, env=environ, stdin=pipe, stdout=pipe) for _ in range(2)
    ]
    async with asyncio.timeout(60):
        for process in processes:
            assert process.stdout is not None
            assert await process.stdout.readline() == b"ready\n"
        answers = await asyncio.gather(*(process.communicate(b"go\n") for process in processes))
    given = {answer.decode().strip() for answer, _ in answers}
    assert consent.refreshed == 1
    assert len(given) == 1
    assert given <= set(consent.access)
