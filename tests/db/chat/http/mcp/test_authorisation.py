"""Programs are authorised: registration, consent, codes, refresh, reuse and revocation, over HTTP."""

import asyncio
import json
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.test import AsyncClient
from django.utils import timezone

from chat.access.oauth import clients, grants
from chat.models import OAuthClient, OAuthGrant, OAuthToken
from tests.db.chat.access_rows import all_rows
from tests.db.chat.http.mcp.flows import (
    CHALLENGE,
    ORIGIN,
    RESOURCE,
    Program,
    authorised,
    call,
    make_user,
    names,
    post,
)

pytestmark = pytest.mark.django_db(transaction=True)


async def test_metadata_says_where_and_how() -> None:
    http = AsyncClient()
    resource = (await http.get("/.well-known/oauth-protected-resource/mcp/assistant")).json()
    assert (resource["resource"], resource["authorization_servers"]) == (RESOURCE, [ORIGIN])
    server = (await http.get("/.well-known/oauth-authorization-server")).json()
    assert server["issuer"] == ORIGIN
    assert server["code_challenge_methods_supported"] == ["S256"]
    assert server["token_endpoint_auth_methods_supported"] == ["none"]


async def test_metadata_of_an_agent_that_is_not_offered_is_unknown() -> None:
    assert (await AsyncClient().get("/.well-known/oauth-protected-resource/mcp/nobody")).status_code == 404


async def test_a_program_is_authorised_and_uses_its_token(alice: User) -> None:
    program, tokens = await authorised(alice)
    assert tokens["token_type"] == "Bearer"
    assert await names(tokens["access_token"]) == {"chat", "current_time", "read"}
    registered = await program.register(token_endpoint_auth_method="client_secret_post")
    assert registered.json()["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in registered.json()


async def test_the_consent_page_names_program_agent_and_scope_and_changes_nothing(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register(client_name="<b>Evil</b>")
    page = (await program.authorize(scope="history"))["Location"]
    before = await sync_to_async(all_rows)()
    response = await program.browser.get(page)
    text = response.content.decode()
    assert "&lt;b&gt;Evil&lt;/b&gt;" in text
    assert "<b>Evil" not in text
    assert "Assistant" in text
    assert "read your conversations with it" in text
    assert "send messages" not in text
    assert response["X-Frame-Options"] == "DENY"
    assert "form-action 'self' http://127.0.0.1:33418" in response["Content-Security-Policy"]
    assert "no-store" in response["Cache-Control"]
    assert await sync_to_async(all_rows)() == before


async def test_consent_needs_a_session_and_a_csrf_token(alice: User) -> None:
    program = Program()
    await program.register()
    page = (await program.authorize())["Location"]
    assert (await program.browser.get(page))["Location"].startswith("/sign-in/")
    strict = AsyncClient(enforce_csrf_checks=True)
    await strict.aforce_login(alice)
    assert (await strict.post(page, {"decision": "allow"})).status_code == 403
    assert not await OAuthGrant.objects.aexists()


async def test_denying_tells_the_program_and_stores_nothing(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    answer = await program.decide((await program.authorize())["Location"], "deny")
    assert answer == {"error": "access_denied", "state": "a state & more", "iss": ORIGIN}
    assert not await OAuthGrant.objects.aexists()


async def test_a_request_that_was_changed_or_is_old_is_refused(alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    page = (await program.authorize())["Location"]
    assert (await program.browser.post(page[:-4] + "AAAA", {"decision": "allow"})).status_code == 400
    monkeypatch.setattr("chat.http.oauth.consent.REQUEST_SECONDS", -1)
    assert (await program.browser.post(page, {"decision": "allow"})).status_code == 400
    assert not await OAuthGrant.objects.aexists()


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge_method": "plain", "code_challenge": CHALLENGE}, "invalid_request"),
        ({"resource": None}, "invalid_target"),
        ({"resource": f"{ORIGIN}/mcp/nobody"}, "invalid_target"),
        ({"resource": "https://elsewhere.example/mcp/assistant"}, "invalid_target"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"scope": "everything"}, "invalid_scope"),
    ],
)
async def test_what_a_program_may_not_ask_is_answered_to_it_once_a_person_agrees(
    alice: User, changes: Any, error: str
) -> None:
    program = Program()
    await program.register()
    page = (await program.authorize(**changes))["Location"]
    assert page.startswith("/oauth/consent?request=")
    for answer in (await program.browser.get(page), await program.browser.post(page, {"decision": "back"})):
        assert (answer.status_code, answer["Location"].partition("?")[0]) == (302, "/sign-in/")
    await program.sign_in(alice)
    shown = await program.browser.get(page)
    assert (shown.status_code, "Location" in shown) == (400, False)
    assert "127.0.0.1:33418" in shown.content.decode()
    answered = await program.decide(page, "back")
    assert (answered["error"], answered["state"]) == (error, "a state & more")


async def test_a_long_request_that_is_wrong_is_refused(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    response = await program.authorize(scope="everything", state="x" * 5_000)
    assert (response.status_code, "Location" in response) == (400, False)


@pytest.mark.parametrize("redirect", ["http://127.0.0.1:33418/callback/", "https://elsewhere.example/callback"])
async def test_nobody_is_sent_to_an_address_that_was_not_registered(alice: User, redirect: str) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    response = await program.authorize(redirect_uri=redirect)
    assert (response.status_code, "Location" in response) == (400, False)
    unknown = Program(client_id="nobody")
    assert (await unknown.authorize()).status_code == 400


@pytest.mark.parametrize(
    "redirect",
    [
        "javascript:alert(1)",
        "data:text/html,x",
        "http://elsewhere.example/callback",
        "http://127.0.0.1.elsewhere.example/",
        "https://user@elsewhere.example/",
        "https://elsewhere.example/#x",
        "file:///etc/passwd",
    ],
)
async def test_a_harmful_redirect_is_not_registered(redirect: str) -> None:
    response = await Program().register(redirect)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_redirect_uri")


async def test_an_apps_own_scheme_is_a_redirect(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register("cursor://anysphere.cursor-mcp/oauth/callback")
    page = (await program.authorize(redirect_uri="cursor://anysphere.cursor-mcp/oauth/callback"))["Location"]
    assert "form-action 'self' cursor:" in (await program.browser.get(page))["Content-Security-Policy"]
    response = await program.browser.post(page, {"decision": "allow"})
    assert response["Location"].startswith("cursor://anysphere.cursor-mcp/oauth/callback?code=")


async def test_a_code_is_used_once_and_a_stolen_one_ends_the_grant(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    code = await program.code()
    tokens = (await program.exchange(code)).json()
    again = await program.exchange(code)
    assert (again.status_code, again.json()["error"]) == (400, "invalid_grant")
    assert await _is_refused(tokens["access_token"])
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


@pytest.mark.parametrize(
    "changes",
    [
        {"code_verifier": "b" * 43},
        {"redirect_uri": "http://127.0.0.1:33418/other"},
        {"resource": f"{ORIGIN}/mcp/other"},
        {"client_id": "other"},
    ],
)
async def test_a_code_is_nothing_to_who_lacks_the_rest(alice: User, changes: dict[str, str]) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    code = await program.code()
    if changes.get("client_id"):
        other = Program()
        await other.register()
        changes = {"client_id": other.client_id}
    assert (await program.exchange(code, **changes)).status_code == 400
    assert not await OAuthToken.objects.aexists()
    assert (await program.exchange(code)).status_code == 200


async def test_a_code_ends_within_a_minute(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    code = await program.code()
    grant = await OAuthGrant.objects.aget()
    assert grant.code_expires_at - grant.created_at < timedelta(seconds=61)
    await OAuthGrant.objects.aupdate(code_expires_at=timezone.now())
    assert (await program.exchange(code)).json()["error"] == "invalid_grant"


async def test_refreshing_replaces_the_token_and_reuse_ends_the_grant(alice: User) -> None:
    program, first = await authorised(alice)
    second = (await program.refresh(first["refresh_token"])).json()
    assert await names(second["access_token"]) == {"chat", "current_time", "read"}
    assert (await program.refresh(first["refresh_token"])).json()["error"] == "invalid_grant"
    assert await _is_refused(second["access_token"])
    assert (await program.refresh(second["refresh_token"])).json()["error"] == "invalid_grant"


async def test_a_program_that_was_not_used_for_long_is_authorised_again(alice: User, settings: Any) -> None:
    settings.THINK_OAUTH_REFRESH_DAYS = 0
    program, tokens = await authorised(alice)
    assert (await program.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"


@pytest.mark.own_sql
async def test_of_two_at_the_same_moment_one_gets_tokens_at_most(alice: User) -> None:
    program, first = await authorised(alice)
    replies = await asyncio.gather(*[program.refresh(first["refresh_token"]) for _ in range(4)])
    assert sum(reply.status_code == 200 for reply in replies) <= 1
    assert not await sync_to_async(grants.live_grants(alice).exists)()
    code = await program.code()
    replies = await asyncio.gather(*[program.exchange(code) for _ in range(4)])
    assert sum(reply.status_code == 200 for reply in replies) <= 1
    assert not await sync_to_async(grants.live_grants(alice).exists)()


async def test_another_program_cannot_refresh_or_revoke(alice: User) -> None:
    program, tokens = await authorised(alice)
    other = Program()
    await other.register()
    assert (await other.refresh(tokens["refresh_token"])).json()["error"] == "invalid_grant"
    assert (await other.revoke(tokens["refresh_token"])).status_code == 200
    assert await names(tokens["access_token"])
    assert (await program.revoke(tokens["access_token"])).status_code == 200
    assert await _is_refused(tokens["access_token"])


async def test_a_person_ends_a_grant_and_nobody_elses(alice: User) -> None:
    _, tokens = await authorised(alice)
    grant = await OAuthGrant.objects.aget()
    bob = await Program().sign_in(await make_user("bob"))
    assert (await bob.browser.get("/api/v1/programs")).json() == []
    assert (await bob.browser.delete(f"/api/v1/programs/{grant.pk}")).status_code == 404
    assert await names(tokens["access_token"])


async def test_the_former_list_leads_to_the_settings(alice: User) -> None:
    hers = await Program().sign_in(alice)
    reply = await hers.browser.get("/oauth/programs")
    assert (reply.status_code, reply["Location"]) == (302, "/settings/tokens")


async def test_the_api_lists_grants_and_ends_them(alice: User) -> None:
    program, tokens = await authorised(alice, scope="chat")
    [listed] = (await program.browser.get("/api/v1/programs")).json()
    assert (listed["program"], listed["agent"], listed["scopes"]) == ("Tester", "assistant", ["chat"])
    assert (await program.browser.delete(f"/api/v1/programs/{listed['id']}")).status_code == 204
    assert await _is_refused(tokens["access_token"])
    assert (await program.browser.get("/api/v1/programs")).json() == []
    assert (await program.browser.delete(f"/api/v1/programs/{listed['id']}")).status_code == 404


async def test_staff_end_grants_in_the_admin_and_see_no_secret(alice: User) -> None:
    _, tokens = await authorised(alice)
    staff = await sync_to_async(User.objects.create_superuser)("root", password="x")
    browser = AsyncClient()
    await browser.aforce_login(staff)
    text = (await browser.get("/admin/think_chat/oauthgrant/")).content.decode()
    grant = await OAuthGrant.objects.aget()
    page = (await browser.get(f"/admin/think_chat/oauthgrant/{grant.pk}/change/", follow=True)).content.decode()
    assert "Tester" in text
    assert "Tester" in page
    assert grant.code_hash not in text + page
    chosen = {"action": "revoke_grants", "_selected_action": grant.pk}
    await browser.post("/admin/think_chat/oauthgrant/", chosen)
    assert await names(tokens["access_token"])  # asked first
    await browser.post("/admin/think_chat/oauthgrant/", {**chosen, "confirmed": "yes", "post": "yes"})
    assert await _is_refused(tokens["access_token"])


async def test_a_person_who_may_no_longer_sign_in_has_no_programs(alice: User) -> None:
    _, tokens = await authorised(alice)
    await User.objects.filter(pk=alice.pk).aupdate(is_active=False)
    assert await _is_refused(tokens["access_token"])


async def test_the_database_has_no_secret(alice: User) -> None:
    program = await Program().sign_in(alice)
    await program.register()
    code = await program.code()
    tokens = (await program.exchange(code)).json()
    rows = json.dumps(await sync_to_async(all_rows)(), default=str)
    assert "Tester" in rows
    assert not any(secret in rows for secret in (code, tokens["access_token"], tokens["refresh_token"]))


async def test_registration_is_limited_and_what_is_unused_goes(alice: User, settings: Any) -> None:
    settings.THINK_OAUTH_REGISTRATIONS_PER_HOUR = 2
    statuses = [(await Program().register()).status_code for _ in range(3)]
    assert statuses == [201, 201, 429]
    settings.THINK_OAUTH_REGISTRATIONS_PER_HOUR = 0
    settings.THINK_OAUTH_CLIENTS = 2
    assert (await Program().register()).status_code == 429
    await OAuthClient.objects.aupdate(created_at=timezone.now() - timedelta(hours=25))
    used = OAuthClient.objects.order_by("pk")
    program = await Program(client_id=(await used.afirst()).pk).sign_in(alice)  # type: ignore[union-attr]  # there is
    await program.code()
    settings.THINK_OAUTH_CLIENTS = 1
    assert (await Program().register()).status_code == 201
    assert await OAuthClient.objects.acount() == 2


async def test_a_user_has_so_many_grants_and_old_ones_go(alice: User, settings: Any) -> None:
    settings.THINK_OAUTH_GRANTS_PER_USER = 1
    program, _ = await authorised(alice)
    page = (await program.authorize())["Location"]
    assert (await program.browser.post(page, {"decision": "allow"})).status_code == 429
    await OAuthToken.objects.aupdate(expires_at=timezone.now())
    await OAuthGrant.objects.aupdate(exchanged_at=timezone.now() - timedelta(days=2))
    assert await sync_to_async(grants.prune_grants)() == 1
    assert not await OAuthToken.objects.aexists()
    await OAuthClient.objects.aupdate(created_at=timezone.now() - timedelta(days=2))
    assert await sync_to_async(clients.prune_clients)() == 1


async def _is_refused(token: str) -> bool:
    return (await post(call("tools/list"), token=token)).status_code == 401
