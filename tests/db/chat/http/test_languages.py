"""The language of a page, an answer of the API and a socket is that of the person who asks, and costs no query."""

import asyncio
import html
import json
import re
from collections.abc import AsyncIterator, Mapping
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from channels.routing import URLRouter
from channels.testing import WebsocketCommunicator
from django.conf import global_settings
from django.conf import settings as django_settings
from django.contrib.auth.models import User
from django.test import AsyncClient, Client
from django.urls import reverse

from chat.http.languages import offered_languages
from chat.routing import websocket_urlpatterns
from tests.db.chat.sockets import cookie_of, frames_until
from tests.db.statements import statements
from thinkproject.catalogues.templates import find_loose
from thinkproject.web.body_limits import BodyLimits
from thinkproject.web.languages import made_up

pytestmark = pytest.mark.django_db(transaction=True)
ENGLISH = re.compile(r"[A-Za-z]{3}")


@pytest.fixture
def visitor() -> User:
    return User.objects.create_user("ann")


@pytest.mark.parametrize("language", ["en-xa", "ar-xb"])
@pytest.mark.parametrize("path", ["/sign-in/", "/nowhere/", "/sign-in/link/unknown/"])
def test_every_sentence_of_a_page_is_translated(client: Client, language: str, path: str) -> None:
    page = client.get(path, headers={"Accept-Language": language}, REMOTE_ADDR="127.0.0.1", SERVER_NAME="127.0.0.1")
    text = page.content.decode()
    assert f'<html lang="{language}" dir="{"rtl" if language == "ar-xb" else "ltr"}">' in text
    assert page.headers["Content-Language"] == language
    own_names = {each.name for each in offered_languages()}
    texts = [said.replace("Think", "") for _, said in find_loose(text) if said not in own_names]
    assert len(texts) > 3
    assert [text for text in texts if language == "en-xa" and ENGLISH.search(text)] == []
    assert [text for text in texts if language == "ar-xb" and ENGLISH.search(text) and "\u202e" not in text] == []


def test_a_person_without_a_wish_gets_english(client: Client) -> None:
    page = client.get("/sign-in/")
    assert '<html lang="en" dir="ltr">' in page.content.decode()
    assert "Sign in" in page.content.decode()


@pytest.mark.parametrize(("language", "title"), [("de", "Anmelden"), ("es", "Iniciar sesión"), ("ar", "تسجيل الدخول")])
def test_a_language_is_chosen_on_the_sign_in_page(client: Client, language: str, title: str) -> None:
    page = client.get("/sign-in/?next=/c/new").content.decode()
    for name in ("English", "Deutsch", "Español", "العربيّة"):
        assert re.search(rf'<button type="submit" name="language"[^>]*>{name}</button>', page), name
    address = html.unescape(re.findall(r'name="next" value="(/sign-in/[^"]*)"', page)[0])
    answer = client.post("/language/", {"language": language, "next": address}, follow=True)
    assert client.cookies[django_settings.LANGUAGE_COOKIE_NAME].value == language
    assert answer.redirect_chain == [("/sign-in/?next=/c/new", 302)]
    assert f"<h1>{title}</h1>" in answer.content.decode()


def test_a_choice_of_a_language_leads_to_no_other_site(client: Client) -> None:
    answer = client.post("/language/", {"language": "de", "next": "https://example.com/"})
    assert answer.headers["Location"] == "/"
    client.post("/language/", {"language": "xx", "next": "/"})
    assert client.cookies[django_settings.LANGUAGE_COOKIE_NAME].value == "de"


def test_a_project_offers_its_own_languages(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def offer(name: str, value: object) -> None:
        monkeypatch.setattr(django_settings, name, value)  # without a signal: Django would forget made-up languages

    offer("LANGUAGES", [("en", "English"), ("pt-br", "Portuguese"), ("x-own", "Ours")])
    assert [each.name for each in offered_languages()] == ["English", "Português Brasileiro", "Ours"]
    assert "language-menu" in client.get("/sign-in/").content.decode()
    offer("LANGUAGES", global_settings.LANGUAGES)
    assert {each.code for each in offered_languages()} == {"en", "de", "es", "ar"}
    offer("LANGUAGES", [("en", "English")])
    assert "language-menu" not in client.get("/sign-in/").content.decode()
    offer("LANGUAGES", [("en", "English"), ("de", "Deutsch")])
    offer("MIDDLEWARE", [path for path in django_settings.MIDDLEWARE if "LanguageMiddleware" not in path])
    assert offered_languages() == []


def test_the_language_costs_no_query(client: Client) -> None:
    client.get("/sign-in/")
    with statements() as plain:
        client.get("/sign-in/")
    client.cookies[django_settings.LANGUAGE_COOKIE_NAME] = "ar-xb"
    with statements() as chosen:
        page = client.get("/sign-in/", headers={"Accept-Language": "en-xa"})
    assert 'dir="rtl"' in page.content.decode()
    assert chosen == plain


async def test_requests_at_the_same_time_keep_their_languages() -> None:
    async def ask(language: str) -> bool:
        page = await AsyncClient().get("/sign-in/", headers={"Accept-Language": language})
        return made_up("Sign in", language) in page.content.decode() and f'lang="{language}"' in page.content.decode()

    assert all(await asyncio.gather(*(ask(("en-xa", "ar-xb")[number % 2]) for number in range(12))))


def test_a_problem_of_the_api_is_translated_and_its_code_is_not(client: Client, visitor: User) -> None:
    client.force_login(visitor)
    path = reverse("think-api:instance_detail", kwargs={"instance_id": "none"})
    body = client.get(path, headers={"Accept-Language": "en-xa"}).json()
    assert body["code"] == "instance_not_found"
    assert body["detail"] == made_up("There is no such conversation.", "en-xa")
    assert client.get(path).json()["detail"] == "There is no such conversation."


async def test_a_body_that_is_too_large_is_refused_in_the_language_of_the_request() -> None:
    sent: list[Mapping[str, Any]] = []

    async def send(message: Mapping[str, Any]) -> None:
        sent.append(message)

    async def receive() -> Mapping[str, Any]:
        return {"type": "http.disconnect"}

    headers = [(b"content-length", b"999999999"), (b"accept-language", b"en-xa")]
    scope = {"type": "http", "method": "POST", "path": "/nowhere/", "headers": headers}
    await BodyLimits(send)(scope, receive, send)  # type: ignore[arg-type]  # the application is not asked
    assert json.loads(sent[1]["body"])["detail"].startswith("[Ŧĥíš íš ɱóŕé")


@pytest.fixture
async def sockets(visitor: User) -> AsyncIterator[list[Any]]:
    """Two sockets of one person, in different languages."""
    cookie = await sync_to_async(cookie_of)(visitor)
    found = []
    for language in (b"en-xa", b"en"):
        headers = [
            (b"host", b"testserver"),
            (b"origin", b"http://testserver"),
            (b"cookie", f"{django_settings.SESSION_COOKIE_NAME}={cookie}".encode()),
            (b"accept-language", language),
        ]
        made = WebsocketCommunicator(URLRouter(websocket_urlpatterns), "/agents/assistant/talk", headers)
        made.scope["raw_path"] = b"/agents/assistant/talk"
        assert (await made.connect(timeout=15))[0]
        await frames_until(made, "cf_agent_mcp_servers")
        found.append(made)
    yield found
    for made in found:
        await made.disconnect()


async def test_a_socket_has_the_language_of_its_connection(sockets: list[Any]) -> None:
    english = "The message to continue is not known."
    for number, (socket, text) in enumerate(zip(sockets * 2, [made_up(english, "en-xa"), english] * 2, strict=True)):
        request = {"method": "POST", "body": json.dumps({"messages": [{"id": "m1", "role": "assistant", "parts": []}]})}
        await socket.send_json_to({"type": "cf_agent_use_chat_request", "id": f"req{number}", "init": request})
        frame = (await frames_until(socket, "cf_agent_use_chat_response"))[-1]
        assert (frame["error"], frame["body"]) == (True, text)
