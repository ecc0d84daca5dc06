"""A program is authorised as people see it: a client of OAuth, the page of consent in a browser, and what follows."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from axe_playwright_python.async_playwright import Axe
from mcp import Client
from mcp.client.auth import OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from playwright.async_api import Page, async_playwright

from tests.acceptance.product import Product
from tests.acceptance.programs.clients import endpoint
from tests.chromium import require_chromium

SECONDS = 120
NO_PROGRAMS = "None so far. A program that wants access asks you in your browser."
PHONE = {"viewport": {"width": 360, "height": 740}}


@dataclass
class Storage:
    """What a program keeps."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@dataclass
class Callback:
    """The program's own small server, to which a browser is sent back."""

    port: int
    answers: "asyncio.Queue[dict[str, str]]" = field(default_factory=asyncio.Queue)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/callback"


@asynccontextmanager
async def listening() -> AsyncIterator[Callback]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line = (await reader.readline()).decode()
        path = line.split(" ")[1]
        if path.startswith("/callback"):
            query = parse_qs(urlsplit(path).query)
            callback.answers.put_nowait({name: values[0] for name, values in query.items()})
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ndone")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    callback = Callback(port=server.sockets[0].getsockname()[1])
    async with server:
        yield callback


@asynccontextmanager
async def browser_of(product: Product, person: str, **options: Any) -> AsyncIterator[Page]:
    """A page of a signed-in person's."""
    name, _, value = product.sign_in(person).partition("=")
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(executable_path=require_chromium(), args=["--no-sandbox"])
        context = await chromium.new_context(**options)
        await context.add_cookies([{"name": name, "value": value, "domain": "127.0.0.1", "path": "/"}])
        yield await context.new_page()
        await chromium.close()


def provider_of(product: Product, storage: Storage, callback: Callback, decide: Any) -> OAuthClientProvider:
    """The client of OAuth, by the protocol's authors. `decide`: called with the address of the consent page."""

    async def come_back() -> AuthorizationCodeResult:
        answer = await callback.answers.get()
        return AuthorizationCodeResult(code=answer["code"], state=answer.get("state"), iss=answer.get("iss"))

    metadata = OAuthClientMetadata(client_name="Acceptance tester", redirect_uris=[callback.url])
    return OAuthClientProvider(
        endpoint(product), metadata, storage, redirect_handler=decide, callback_handler=come_back
    )


@asynccontextmanager
async def using(product: Product, auth: OAuthClientProvider) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(auth=auth, timeout=60) as http,
        Client(streamable_http_client(endpoint(product), http_client=http)) as client,
    ):
        yield client


async def test_a_person_authorises_a_program_in_a_browser_and_ends_it(make_product: Any) -> None:
    product = make_product(environ={"THINK_OAUTH_ACCESS_SECONDS": "1", "THINK_AUTHORITY_SECONDS": "0.2"})
    asked: list[str] = []
    storage = Storage()
    async with asyncio.timeout(SECONDS), listening() as callback, browser_of(product, "alice") as page:

        async def decide(address: str) -> None:
            asked.append(address)
            await page.goto(address)
            assert await page.get_by_role("heading", name="Acceptance tester").is_visible()
            assert "Counter" in await page.inner_text("h1")
            await page.get_by_role("button", name="Allow").click()
            await page.wait_for_url(f"{callback.url}**")

        auth = provider_of(product, storage, callback, decide)
        async with using(product, auth) as client:
            assert "add" in {tool.name for tool in (await client.list_tools()).tools}
            result = await client.call_tool("chat", {"message": "say: hello", "conversation": "by-oauth"})
            assert result.structured_content["answer"] == "hello"
            assert storage.tokens is not None
            first = storage.tokens.refresh_token
            while storage.tokens.refresh_token == first:  # its access token ends after a second
                assert (await client.call_tool("add", {"a": 1, "b": 1})).structured_content == {"sum": 2}
        assert len(asked) == 1  # refreshing asks no person
        assert storage.client is not None
        stolen = {"grant_type": "refresh_token", "client_id": storage.client.client_id, "refresh_token": first}
        async with httpx2.AsyncClient() as http:
            reply = await http.post(product.url("/oauth/token"), data=stolen)
            assert reply.json()["error"] == "invalid_grant"
        await page.goto(product.url("/oauth/programs"))
        await page.get_by_text(NO_PROGRAMS).wait_for()  # a reused token ended the grant
        async with using(product, auth) as client:
            # A call outlives its access token, and not its grant.
            begun = asyncio.Event()
            call = asyncio.create_task(_talk(client, "stream 2000 words at 20/s", begun))
            await begun.wait()
            assert len(asked) == 2
            await page.goto(product.url("/oauth/programs"))
            await page.get_by_role("button", name="End the access of").click()
            await page.get_by_role("dialog").get_by_role("button", name="End").click()
            await page.get_by_text(NO_PROGRAMS).wait_for()
            ended = await call
            assert (ended.is_error, ended.structured_content["error"]) == (True, "unauthenticated")
        async with using(product, auth) as client:
            await client.call_tool("add", {"a": 1, "b": 1})
        assert len(asked) == 3
        logs = product.webs[0].log + product.workers[0].log
        assert "/oauth/token" in logs
        assert not any(secret in logs for secret in (first, storage.tokens.access_token, storage.tokens.refresh_token))


async def _talk(client: Client, message: str, begun: asyncio.Event) -> Any:
    """Talk; `begun` is set once the answer has gone on for longer than an access token works."""
    first: list[float] = []

    async def on_progress(_progress: float, _total: float | None, _message: str | None) -> None:
        now = asyncio.get_running_loop().time()
        first.append(now)
        if now - first[0] > 2:
            begun.set()

    return await client.call_tool("chat", {"message": message}, progress_callback=on_progress)  # type: ignore[arg-type]  # names of parameters


@pytest.mark.smoke("light")
@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_the_consent_page_fits_a_phone_and_denies(shared_product: Product, scheme: str) -> None:
    product = shared_product
    async with (
        asyncio.timeout(SECONDS),
        listening() as callback,
        browser_of(product, "bob", color_scheme=scheme, bypass_csp=True, **PHONE) as page,
        httpx2.AsyncClient() as http,
    ):
        name = "A program with quite-a-long-name-that-has-no-place-to-break-anywhere-at-all-in-it"
        body = {"client_name": name, "redirect_uris": [callback.url]}
        client = (await http.post(product.url("/oauth/register"), json=body)).json()
        query = {
            "client_id": client["client_id"],
            "response_type": "code",
            "redirect_uri": callback.url,
            "code_challenge": "x" * 43,
            "state": "s",
            "resource": endpoint(product),
        }
        await page.goto(str(httpx2.URL(product.url("/oauth/authorize"), params=query)))
        width = await page.evaluate("document.documentElement.scrollWidth")
        assert width <= 360
        found = await Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        await page.get_by_role("button", name="Deny").click()
        assert (await callback.answers.get())["error"] == "access_denied"
