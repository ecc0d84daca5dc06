"""Sign-ins where programs cannot register, or issuers do not fit: by hand, and by an administrator's exception."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client

from tests.db.chat.access_rows import all_rows
from tests.mcp.tenants import Tenants, tenants
from thinkproject.kernel.jsonvalue import load
from thinkproject.kernel.secrets import decrypt
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.errors import McpServerInvalid
from tools_app.mcp import rows
from tools_app.mcp.rows import Place, add_server, spec_of
from tools_app.models import McpServer, McpSignIn

pytestmark = pytest.mark.django_db(transaction=True)
SECRET = "canary: s3cret/&%+"
API = "/api/v1/mcp-servers"


@pytest.fixture
def sign_ins(settings: Any) -> Iterator[Tenants]:
    settings.THINK_MCP_PRIVATE_NETWORKS = ["127.0.0.0/8"]
    with tenants() as found:
        found.clients = {"by-hand": SECRET, "public": ""}
        yield found


@pytest.fixture
def applicant(db: None) -> Client:
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_user("alice"))
    return client


@pytest.fixture
def admin(db: None) -> Client:
    client = Client(SERVER_NAME="localhost")
    client.force_login(User.objects.create_superuser("root"))
    return client


def added(client: Client, sign_ins: Tenants, **more: Any) -> str:
    """A server of this person's."""
    sent = {"name": "tickets", "url": sign_ins.url, **more}
    reply = client.post(API, sent, content_type="application/json")
    assert reply.status_code == 200, reply.content
    return str(reply.json()["id"])


def refusal(client: Client, server_id: str) -> str:
    """The words with which a sign-in is refused at its beginning."""
    reply = client.get(f"/mcp/oauth/start/{server_id}")
    assert reply.status_code == 422, reply.content
    return reply.content.decode().replace("&#x27;", "'")


def signed_in(client: Client, server_id: str) -> dict[str, Any]:
    """Sign in; the grant that is kept."""
    reply = client.get(f"/mcp/oauth/start/{server_id}")
    assert reply.status_code == 302, reply.content.decode()
    back = urlsplit(httpx.get(reply["Location"]).headers["Location"])
    reply = client.get(f"{back.path}?{back.query}")
    assert reply.status_code == 302, reply.content.decode()
    kept: dict[str, Any] = load(decrypt(McpSignIn.objects.get(server_id=server_id).grant))
    return kept


def test_where_no_program_registers_the_words_say_what_to_do(applicant: Client, sign_ins: Tenants) -> None:
    words = refusal(applicant, added(applicant, sign_ins))
    assert sign_ins.named in words
    assert "http://localhost/mcp/oauth/callback" in words
    assert "client ID" in words


@pytest.mark.parametrize(
    ("methods", "is_basic"),
    [(None, True), (["client_secret_post", "client_secret_basic"], True), (["client_secret_post"], False)],
    ids=["default", "both", "post"],
)
def test_a_client_by_hand_signs_in_and_its_secret_is_shown_nowhere(
    applicant: Client, sign_ins: Tenants, methods: list[str] | None, is_basic: bool
) -> None:
    sign_ins.metadata = {"token_endpoint_auth_methods_supported": methods}
    server_id = added(applicant, sign_ins)
    change = {"client_id": "by-hand", "client_secret": SECRET}
    reply = applicant.patch(f"{API}/{server_id}", change, content_type="application/json")
    assert reply.status_code == 200
    assert (reply.json()["client_id"], reply.json()["redirect_url"]) == (
        "by-hand",
        "http://localhost/mcp/oauth/callback",
    )
    assert signed_in(applicant, server_id)["tokens"]["access_token"] == "granted-token"
    (asked,) = sign_ins.asked
    assert ("basic_secret" in asked, "client_secret" in asked) == (is_basic, not is_basic)
    assert SECRET not in repr(all_rows())
    for page in (API, f"/admin/think_tools/mcpserver/{quote(server_id)}/change/"):
        assert SECRET not in applicant.get(page).content.decode()


def test_a_public_client_sends_no_secret(applicant: Client, sign_ins: Tenants) -> None:
    signed_in(applicant, added(applicant, sign_ins, client_id="public"))
    (asked,) = sign_ins.asked
    assert asked["client_id"] == "public"
    assert not {"basic_id", "client_secret"} & asked.keys()


def test_a_secret_goes_to_the_authorization_server_that_it_was_entered_for(
    applicant: Client, sign_ins: Tenants
) -> None:
    server_id = added(applicant, sign_ins, client_id="by-hand", client_secret=SECRET)
    signed_in(applicant, server_id)
    with tenants() as thief:
        thief.clients = sign_ins.clients
        sign_ins.resource = {"authorization_servers": [thief.named]}
        words = refusal(applicant, server_id)
        assert sign_ins.named in words
        assert thief.named in words
        assert not thief.asked
        change = {"client_id": "by-hand", "client_secret": SECRET}  # a person says that it is right
        assert applicant.patch(f"{API}/{server_id}", change, content_type="application/json").status_code == 200
        signed_in(applicant, server_id)
        assert len(thief.asked) == 1


def test_a_client_is_changed_and_forgotten(applicant: Client, sign_ins: Tenants) -> None:
    server_id = added(applicant, sign_ins, client_id="by-hand", client_secret=SECRET)
    for change, expected in (
        ({"client_secret": "other"}, ("by-hand", "other")),
        ({"enabled": True}, ("by-hand", "other")),
        ({"client_id": "public"}, ("public", "")),
        ({"client_id": ""}, ("", "")),
    ):
        assert applicant.patch(f"{API}/{server_id}", change, content_type="application/json").status_code == 200
        spec = spec_of(McpServer.objects.get())
        assert (spec.client_id, spec.client_secret) == expected
    for wrong in ({"client_secret": "alone"}, {"client_id": " "}, {"client_id": "ü"}):
        assert applicant.patch(f"{API}/{server_id}", wrong, content_type="application/json").status_code == 422


def test_an_issuer_of_another_name_is_refused_with_the_rule_until_an_administrator_allows_it(
    applicant: Client, admin: Client, sign_ins: Tenants
) -> None:
    sign_ins.issuer = sign_ins.origin
    first = added(applicant, sign_ins, client_id="by-hand", client_secret=SECRET)
    second = added(applicant, sign_ins, name="other", client_id="by-hand", client_secret=SECRET)
    words = refusal(applicant, first)
    assert f"'{sign_ins.named}'" in words
    assert f"'{sign_ins.origin}'" in words
    assert "RFC 8414" in words
    change = f"/admin/think_tools/mcpserver/{quote(first)}/change/"
    assert applicant.post(change, {"allowed_issuer": sign_ins.origin}).status_code in {302, 403}  # she is none
    assert not McpServer.objects.exclude(allowed_issuer="").exists()
    assert "metadata" in admin.get(change).content.decode()
    assert admin.post(change, {"allowed_issuer": "not an issuer", "name": "evil"}).status_code == 200
    assert (
        admin.post(change, {"allowed_issuer": sign_ins.origin, "name": "evil", "url": "https://x.test"}).status_code
        == 302
    )
    row = McpServer.objects.get(pk=first)
    assert (row.allowed_issuer, row.name, row.url) == (sign_ins.origin, "tickets", sign_ins.url)
    assert signed_in(applicant, first)
    refusal(applicant, second)  # the exception is of one server
    assert applicant.get(API).json()[0]["allowed_issuer"] == sign_ins.origin


def test_an_endpoint_of_another_origin_is_refused_with_the_rule_until_it_is_allowed(
    applicant: Client, sign_ins: Tenants
) -> None:
    with tenants() as elsewhere:
        elsewhere.clients = sign_ins.clients
        sign_ins.metadata = {"token_endpoint": f"{elsewhere.origin}/token"}
        server_id = added(applicant, sign_ins, client_id="by-hand", client_secret=SECRET)
        words = refusal(applicant, server_id)
        assert sign_ins.named in words
        assert elsewhere.origin in words
        assert "on its own origin" in words
        rows.allow_issuer(McpServer.objects.get(), elsewhere.origin)
        assert signed_in(applicant, server_id)
        assert (len(sign_ins.asked), len(elsewhere.asked)) == (0, 1)
        sign_ins.metadata = {"token_endpoint": "http://127.0.0.1:9/token"}
        assert "127.0.0.1:9" in refusal(applicant, server_id)  # one issuer is allowed, not all


def test_of_several_authorization_servers_the_allowed_one_is_asked(applicant: Client, sign_ins: Tenants) -> None:
    sign_ins.tenant = ""
    sign_ins.resource = {"authorization_servers": ["http://127.0.0.1:9/first", f"{sign_ins.origin}/"]}
    server_id = added(applicant, sign_ins, client_id="public")
    rows.allow_issuer(McpServer.objects.get(), sign_ins.origin)  # the same as with a slash at its end
    assert signed_in(applicant, server_id)


@pytest.mark.parametrize("status", [401, 400, 200], ids=["as it should", "as many do", "as GitHub does"])
@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("invalid_client", "does not accept the client ID and secret"),
        ("incorrect_client_credentials", "does not accept the client ID and secret"),
        ("bad_verification_code", "does not accept this any more"),
    ],
)
def test_a_refusal_is_told_as_one_whatever_its_status(
    applicant: Client, sign_ins: Tenants, status: int, code: str, words: str
) -> None:
    sign_ins.refusal = (code, status)
    server_id = added(applicant, sign_ins, client_id="by-hand", client_secret="wrong")
    reply = applicant.get(f"/mcp/oauth/start/{server_id}")
    back = urlsplit(httpx.get(reply["Location"]).headers["Location"])
    reply = applicant.get(f"{back.path}?{back.query}")
    assert reply.status_code == 422
    assert words in reply.content.decode()


@pytest.mark.parametrize(
    ("challenge", "resource", "expected"),
    [
        (', scope="read write"', {"scopes_supported": ["all"]}, "read write"),
        ("", {"scopes_supported": ["read", "list"]}, "read list"),
        ("", {}, None),
    ],
    ids=["challenge", "metadata", "none"],
)
def test_scopes_are_those_that_the_resource_asks_for(
    applicant: Client, sign_ins: Tenants, challenge: str, resource: dict[str, Any], expected: str | None
) -> None:
    sign_ins.challenge, sign_ins.resource = challenge, resource
    sign_ins.metadata = {"scopes_supported": ["admin", "offline_access", "read"]}
    server_id = added(applicant, sign_ins, client_id="public")
    reply = applicant.get(f"/mcp/oauth/start/{server_id}")
    assert parse_qs(urlsplit(reply["Location"]).query).get("scope", [None])[0] == expected


def test_code_declares_clients_and_issuers_and_changes_them(db: None) -> None:
    place = Place(owner_id=User.objects.create_user("alice").pk, instance_id="ins_1")
    spec = McpServerSpec(name="a", url="https://a.test/mcp", client_id="one", client_secret=SECRET)
    (row,) = rows.declare_servers([spec], place)
    assert (spec_of(row), SECRET in repr(spec)) == (spec, False)
    for changed in (
        McpServerSpec(name="a", url="https://a.test/mcp", client_id="one", client_secret="two"),
        McpServerSpec(name="a", url="https://a.test/mcp", client_id="one"),
        McpServerSpec(name="a", url="https://a.test/mcp", allowed_issuer="https://b.test/tenant"),
    ):
        rows.declare_servers([changed], place)
        assert spec_of(McpServer.objects.get()) == changed


@pytest.mark.parametrize(
    "wrong",
    [
        {"client_secret": "x"},
        {"client_id": "a\nb"},
        {"client_id": " a"},
        {"allowed_issuer": "auth.test"},
        {"allowed_issuer": "ftp://auth.test"},
        {"allowed_issuer": "https://auth.test/?a"},
        {"allowed_issuer": "https://me@auth.test"},
        {"command": ["x"], "url": "", "client_id": "a"},
        {"command": ["x"], "url": "", "allowed_issuer": "https://auth.test"},
    ],
    ids=str,
)
def test_what_cannot_be_meant_is_refused(db: None, wrong: dict[str, Any]) -> None:
    given: dict[str, Any] = {"name": "a", "url": "https://a.test/mcp", **wrong}
    with pytest.raises(McpServerInvalid):
        add_server(McpServerSpec(**given), Place(is_site=True), allows_programs=True)
