"""The login page and the one-time link: a GET burns nothing, a POST works once, on this machine only."""

import html
import os
import re
import subprocess
import sys
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from chat.access import sign_in
from chat.models import SignInLink
from tests.house.repository import ROOT

LOCAL: dict[str, Any] = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost:8000"}


@pytest.fixture(autouse=True)
def _at_home(settings: Any) -> None:
    settings.IS_PRODUCTION = False


def is_signed_in(client: Client) -> bool:
    return "_auth_user_id" in client.session


def test_a_get_shows_a_button_and_consumes_nothing(alice: User) -> None:
    path = f"/sign-in/{sign_in.create_link(alice)}"
    client = Client()
    for _ in range(3):
        reply = client.get(path, **LOCAL)
        assert reply.status_code == 200
        assert b"<button" in reply.content
    assert not is_signed_in(client)
    assert SignInLink.objects.get().used_at is None
    assert reply["Referrer-Policy"] == "no-referrer"
    assert "no-store" in reply["Cache-Control"]


def test_a_post_signs_in_once(alice: User) -> None:
    path = f"/sign-in/{sign_in.create_link(alice)}"
    client, second = Client(), Client()
    reply = client.post(path, **LOCAL)
    assert (reply.status_code, reply["Location"]) == (302, "/")
    assert is_signed_in(client)
    refused = second.post(path, **LOCAL)
    assert refused.status_code == 403
    assert b"This link no longer works" in refused.content
    assert b"Welcome" not in refused.content
    assert not is_signed_in(second)


def test_a_post_needs_the_csrf_token(alice: User) -> None:
    client = Client(enforce_csrf_checks=True)
    assert client.post(f"/sign-in/{sign_in.create_link(alice)}", **LOCAL).status_code == 403
    assert SignInLink.objects.get().used_at is None


@pytest.mark.parametrize(
    "place",
    [
        {"REMOTE_ADDR": "10.0.0.5"},
        {"REMOTE_ADDR": ""},
        {"HTTP_HOST": "testserver"},
        {"HTTP_HOST": "evil.example"},
        {"HTTP_HOST": "localhost.evil.example"},
        {"HTTP_X_FORWARDED_FOR": "127.0.0.1"},
        {"HTTP_FORWARDED": "for=127.0.0.1"},
    ],
)
@pytest.mark.parametrize("method", ["get", "post"])
def test_a_stranger_is_refused_and_burns_nothing(
    alice: User, place: dict[str, str], method: str, settings: Any
) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    path = f"/sign-in/{sign_in.create_link(alice)}"
    client = Client()
    assert getattr(client, method)(path, **(LOCAL | place)).status_code == 403
    assert SignInLink.objects.get().used_at is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.1:8123", "localhost", "[::1]:8000"])
def test_this_machine_has_several_names(alice: User, host: str, settings: Any) -> None:
    settings.ALLOWED_HOSTS = ["*"]
    path = f"/sign-in/{sign_in.create_link(alice)}"
    assert Client().get(path, **(LOCAL | {"HTTP_HOST": host})).status_code == 200


def test_a_production_server_has_no_links(alice: User, settings: Any) -> None:
    secret = sign_in.create_link(alice)
    settings.IS_PRODUCTION = True
    assert Client().post(f"/sign-in/{secret}", **LOCAL).status_code == 403
    with pytest.raises(CommandError):
        call_command("sign_in_link", "alice")


@pytest.mark.parametrize("change", ["expire", "deactivate", "newer"])
def test_a_link_that_ended_is_refused(alice: User, change: str) -> None:
    path = f"/sign-in/{sign_in.create_link(alice)}"
    match change:
        case "expire":
            SignInLink.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
        case "deactivate":
            User.objects.update(is_active=False)
        case "newer":
            sign_in.create_link(alice)
    client = Client()
    assert client.get(path, **LOCAL).status_code == 403
    assert client.post(path, **LOCAL).status_code == 403
    assert not is_signed_in(client)


def test_only_its_hash_is_stored(alice: User) -> None:
    secret = sign_in.create_link(alice)
    assert secret not in str(SignInLink.objects.values_list()[0])
    lifetime = SignInLink.objects.get().expires_at - timezone.now()
    assert timedelta(minutes=14) < lifetime <= timedelta(minutes=15)


def test_the_time_of_a_link_is_a_setting(alice: User, settings: Any) -> None:
    settings.THINK_SIGN_IN_LINK_MINUTES = 60
    sign_in.create_link(alice)
    lifetime = SignInLink.objects.get().expires_at - timezone.now()
    assert timedelta(minutes=59) < lifetime <= timedelta(minutes=60)


def test_the_command_prints_a_link_that_works(alice: User) -> None:
    out = StringIO()
    call_command("sign_in_link", "alice", port=8123, stdout=out)
    url = out.getvalue().strip().splitlines()[-1]
    assert url.startswith("http://127.0.0.1:8123/sign-in/")
    client = Client()
    client.post(url.removeprefix("http://127.0.0.1:8123"), **LOCAL)
    assert is_signed_in(client)


def test_the_command_knows_the_port_of_the_running_server(alice: User, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path
    (tmp_path / "run.lock").write_text("process 17, port 8765", encoding="utf-8")
    out = StringIO()
    call_command("sign_in_link", "alice", stdout=out)
    assert "http://127.0.0.1:8765/sign-in/" in out.getvalue()


@pytest.mark.long
def test_the_command_on_the_sign_in_page_runs(db: None, settings: Any, tmp_path: Path) -> None:
    settings.DATA_DIR = tmp_path / "var"
    page = html.unescape(
        Client().get("/sign-in/", headers={"host": "127.0.0.1:8765"}, SERVER_PORT="8765").content.decode()
    )
    [command] = re.findall(r"<code[^>]*>([^<]*sign_in_link[^<]*)</code>", page)
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("THINK_", "DJANGO", "DATABASE"))
    }
    ran = subprocess.run(command, shell=True, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    assert (ran.returncode, "Traceback" in ran.stderr) == (1, False)
    assert f"There is no database with users in {tmp_path / 'var'}" in ran.stderr  # it is asked in the right place
    assert command.endswith("--port 8765")


def test_a_python_without_django_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-I", str(ROOT / "manage.py"), "sign_in_link"]
    ran = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr.count("\n")) == (1, 1)
    assert ".venv/bin/python manage.py" in ran.stderr


def test_the_command_takes_the_only_user(alice: User, bob: User) -> None:
    with pytest.raises(CommandError):
        call_command("sign_in_link")
    bob.delete()
    out = StringIO()
    call_command("sign_in_link", stdout=out)
    assert "/sign-in/" in out.getvalue()


def test_the_login_page_signs_in_and_refuses(alice: User) -> None:
    client = Client()
    assert client.post("/sign-in/", {"username": "alice", "password": "wrong"}).status_code == 200
    assert not is_signed_in(client)
    reply = client.post("/sign-in/", {"username": "alice", "password": "alice-password", "next": "//evil.example"})
    assert (reply.status_code, reply["Location"]) == (302, "/")
    assert is_signed_in(client)


def test_signing_out_needs_a_post(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    assert client.get("/sign-out/").status_code == 405
    assert is_signed_in(client)
    client.post("/sign-out/")
    assert not is_signed_in(client)


@pytest.mark.parametrize("is_production", [False, True])
def test_the_sign_in_page_explains_where_the_link_is(db: None, settings: Any, is_production: bool) -> None:
    settings.IS_PRODUCTION = is_production
    page = Client().get("/sign-in/").content
    assert (b"sign_in_link" in page) is not is_production
    assert (b"make run" in page) is not is_production
