"""The example of an assistant, by its one command: sign-in at a provider, shared files and memory, MCP, recovery."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import httpx
import pytest
from playwright.sync_api import Browser, expect

from tests.acceptance.product import ROOT, wait_for
from tests.browser.accessibility import check
from tests.browser.chat_page import ChatPage, id_of
from tests.browser.example_runs import Examples, running_examples
from tests.browser.live_product import free_port
from tests.browser.looks import SCHEMES, SIZES, look
from tests.browser.servers_panel import accept, add

NEW = "/c/new?agent=personal-assistant"
START, BACK = "/sign-in/provider/", "/sign-in/provider/back/"
CLIENT = {"ASSISTANT_CLIENT_ID": "assistant", "ASSISTANT_CLIENT_SECRET": "of the test"}


@dataclass
class Site:
    """The running example and the provider."""

    examples: Examples
    url: str
    issuer: str


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The example, with a provider in a process of its own that can be made to lie."""
    folder, port = tmp_path_factory.mktemp("assistant"), free_port()
    issuer = f"http://127.0.0.1:{port}"
    environ = {**CLIENT, "ASSISTANT_ISSUER": issuer, "ASSISTANT_PROVIDER_NAME": "Test Company"}
    environ |= {"THINK_FIBER_LEASE_SECONDS": "4", "THINK_FIBER_HEARTBEAT_SECONDS": "1"}  # takes over sooner
    command = [sys.executable, "-m", "tests.browser.odd_provider", "--port", str(port)]
    with (folder / "provider.log").open("w") as log:
        provider = subprocess.Popen(command, cwd=ROOT, env={**os.environ, **environ}, stdout=log, stderr=log)
    try:
        with running_examples(folder, **environ) as examples:
            yield Site(examples, examples.start("assistant").rstrip("/"), issuer)
    finally:
        provider.terminate()
        provider.wait(15)


@pytest.fixture
def person(shared_chromium: Browser, example: Site) -> Iterator[Callable[[str], ChatPage]]:
    """Sign a person in, in a profile of their own, as people do."""
    tabs = []

    def make(name: str) -> ChatPage:
        context = shared_chromium.new_context(viewport=SIZES["desktop"], locale="en-GB")
        tab = ChatPage(context.new_page(), example.url)
        tabs.append(tab)
        tab.page.goto(example.url + NEW)
        tab.page.get_by_role("link", name="Sign in with Test Company").click()
        tab.page.get_by_role("link", name=name).click()
        tab.page.wait_for_selector("html[data-ready]", state="attached")
        assert tab.page.url == example.url + NEW  # where the person wanted to go
        return tab

    yield make
    for tab in tabs:
        tab.page.context.close()
        assert not tab.errors, tab.errors


@pytest.fixture
def http(example: Site) -> Iterator[httpx.Client]:
    """A browser without a window, which follows nothing by itself."""
    with httpx.Client(base_url=example.url, timeout=20) as client:
        yield client


def to_provider(client: httpx.Client, **query: str) -> str:
    """Begin to sign in; returns the address at the provider."""
    answer = client.get(START, params=query)
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def from_provider(address: str, person: str = "ada", *, fault: str = "") -> str:
    """Say at the provider who one is; returns the address that leads back."""
    answer = httpx.get(with_query(address, person=person, **({"fault": fault} if fault else {})))
    assert answer.status_code == 302, answer.text
    return answer.headers["location"]


def with_query(address: str, **changed: str) -> str:
    """The address with these parameters."""
    parts = urlsplit(address)
    return urlunsplit(parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), **changed})))


def name_of(client: httpx.Client) -> str | None:
    """Who is signed in."""
    answer = client.get("/c/new")
    if answer.status_code != 200:
        return None
    found = re.search(r'"user": ?"([^"]+)"', answer.text)
    assert found is not None
    return found.group(1)


def sign_in(client: httpx.Client, person: str = "ada", *, fault: str = "") -> httpx.Response:
    return client.get(from_provider(to_provider(client), person, fault=fault))


def sign_out(client: httpx.Client) -> httpx.Response:
    token = next(value for name, value in client.cookies.items() if name.startswith("think_csrf"))
    return client.post("/sign-out/", headers={"X-CSRFToken": token})


def test_the_request_has_state_nonce_and_a_challenge_that_are_new_each_time(http: httpx.Client, example: Site) -> None:
    first, second = (dict(parse_qsl(urlsplit(to_provider(http)).query)) for _ in range(2))
    assert first["redirect_uri"] == example.url + BACK
    assert first["code_challenge_method"] == "S256"
    assert all(first[name] != second[name] for name in ("state", "nonce", "code_challenge"))


def test_an_account_is_made_once_and_found_by_its_subject(http: httpx.Client, example: Site) -> None:
    assert name_of(http) is None
    answer = sign_in(http)
    assert (answer.status_code, answer.headers["location"]) == (302, "/")
    ada = name_of(http)
    assert ada is not None
    assert ada.startswith("ada-")
    with httpx.Client(base_url=example.url) as elsewhere:
        sign_in(elsewhere)
        assert name_of(elsewhere) == ada
        sign_in(elsewhere, "grace")
        assert name_of(elsewhere) not in {ada, None}
    with httpx.Client(base_url=example.url) as mallory:  # whose provider says that Ada's name and address are hers
        assert sign_in(mallory, fault="takeover").status_code == 302
        assert name_of(mallory) not in {ada, None}


def test_a_wrong_state_signs_no_one_in(http: httpx.Client) -> None:
    back = from_provider(to_provider(http))
    for wrong in (with_query(back, state="made-up"), with_query(back, state="")):
        assert http.get(wrong).status_code == 403
    assert name_of(http) is None


def test_an_answer_to_another_browser_signs_no_one_in(http: httpx.Client, example: Site) -> None:
    back = from_provider(to_provider(http))
    with httpx.Client(base_url=example.url) as victim:
        to_provider(victim)
        assert victim.get(back).status_code == 403
        assert name_of(victim) is None


def test_an_answer_is_taken_once(http: httpx.Client) -> None:
    back = from_provider(to_provider(http))
    assert http.get(back).status_code == 302
    assert sign_out(http).status_code in {200, 302}
    assert name_of(http) is None
    assert http.get(back).status_code == 403
    assert name_of(http) is None
    other = dict(parse_qsl(urlsplit(to_provider(http)).query))  # a used code with a state of today
    assert http.get(with_query(back, state=other["state"])).status_code == 403
    assert name_of(http) is None


@pytest.mark.parametrize("fault", ["nonce", "issuer", "audience", "expiry", "subject", "key"])
def test_an_id_token_with_a_fault_signs_no_one_in(http: httpx.Client, fault: str) -> None:
    assert sign_in(http, fault=fault).status_code == 403
    assert name_of(http) is None


def test_refusals_say_so_and_lead_nowhere_else(http: httpx.Client, example: Site) -> None:
    state = dict(parse_qsl(urlsplit(to_provider(http)).query))["state"]
    refused = http.get(BACK, params={"error": "access_denied", "error_description": "<b>No</b>", "state": state})
    assert refused.status_code == 403
    assert "You are not signed in" in refused.text
    assert "<b>No</b>" not in refused.text
    for stranger in ("https://evil.example/", "//evil.example/", "javascript:alert(1)"):
        back = from_provider(to_provider(http, next=stranger))
        assert http.get(back).headers["location"] == "/"
    assert example.url  # the example's own


@pytest.mark.timeout(300)
def test_chats_of_a_person_share_files_and_memory_and_those_of_others_do_not(
    person: Callable[[str], ChatPage],
) -> None:
    ada = person("Ada Lovelace")
    memory = json.dumps({"label": "memory", "content": "Lives in Leipzig."})
    ada.ask(f"call tool set_context {memory}\nsay: Noted.")
    ada.ask('call tool write {"path": "/packing.md", "content": "A tent."}\nsay: Written.')
    first = ada.page.url
    ada.open(NEW)
    ada.ask('call tool read {"path": "/packing.md"}\nsay: It says {result}')
    assert ada.page.url != first
    assert "A tent." in ada.text_of_last()
    seen = "async () => (await (await fetch('/api/v1/memory')).text())"
    assert "Leipzig" in ada.page.evaluate(seen)
    look(ada, "example-assistant-chats")
    check(ada.page)
    grace = person("Grace Hopper")
    grace.ask('call tool read {"path": "/packing.md"}\nsay: It says {result}')
    assert "A tent." not in grace.text_of_last()
    assert "Leipzig" not in grace.page.evaluate(seen)


@pytest.mark.timeout(300)
def test_a_server_that_a_person_adds_is_used(person: Callable[[str], ChatPage], odd_address: str) -> None:
    tab = person("Ada Lovelace")
    tab.ask("say: Hello.")
    shown = add(tab, "odd", odd_address)
    expect(shown.get_by_role("status").last).to_have_text("Ready")
    accept(shown)
    read = f"async () => (await (await fetch('/api/v1/instances/{id_of(tab)}/mcp-servers')).json())"
    [server] = [each["id"] for each in tab.page.evaluate(read) if each["name"] == "odd"]  # there may be a clock
    tab.ask(f'call tool tool_{server}_echo {{"text": "heard"}}\nsay: It said {{result}}.')
    expect(tab.answers.last.locator(".md").last).to_contain_text("heard")


@pytest.mark.timeout(300)
def test_an_answer_goes_on_when_its_worker_is_killed(person: Callable[[str], ChatPage], example: Site) -> None:
    tab = person("Ada Lovelace")
    tab.write("stream 60 words at 12/s\nmarker: killed")
    expect(tab.answers.last).to_contain_text(re.compile(r"[a-z]3 "))
    assert example.examples.kill_workers("assistant") > 0
    wait_for(lambda: len(tab.text_of_last().split()) >= 60, seconds=60, what="the rest of the answer")
    tab.rest()
    assert len(tab.text_of_last().split()) == 60


@pytest.mark.timeout(300)
def test_pages_of_the_sign_in_are_fit_to_be_seen(shared_chromium: Browser, example: Site) -> None:
    context = shared_chromium.new_context(viewport=SIZES["desktop"], locale="en-GB")
    page = context.new_page()
    for name, path in (("sign-in", NEW), ("refused", f"{BACK}?code=x&state=y")):
        page.goto(example.url + path)
        for size, shape in SIZES.items():
            page.set_viewport_size(shape)
            for scheme in SCHEMES:
                page.emulate_media(color_scheme=scheme)
                check(page)
                if folder := os.environ.get("SHOTS"):
                    page.screenshot(path=f"{folder}/example-assistant-{name}-{size}-{scheme}.png")
            assert page.evaluate("document.scrollingElement.scrollWidth - innerWidth") <= 0
    context.close()
