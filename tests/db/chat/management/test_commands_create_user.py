"""`create_user`: an ordinary user, by a password from a pipe or by a sign-in link."""

import sys
from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.test import Client

pytestmark = pytest.mark.django_db

PASSWORD = "a long enough one"


def run(monkeypatch: pytest.MonkeyPatch, *args: str, typed: str = f"{PASSWORD}\n") -> str:
    monkeypatch.setattr(sys, "stdin", StringIO(typed))
    out = StringIO()
    call_command("create_user", *args, stdout=out, stderr=StringIO())
    return out.getvalue()


def test_an_ordinary_user_signs_in_and_is_not_staff(monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "carol", "--email", "carol@example.com")
    made = User.objects.get(username="carol")
    assert (made.is_staff, made.is_superuser, made.is_active, made.email) == (False, False, True, "carol@example.com")
    reply = Client().post("/sign-in/", {"username": "carol", "password": PASSWORD})
    assert (reply.status_code, reply["Location"]) == (302, "/")


def test_staff_may_enter_the_admin_and_has_no_rights_yet(monkeypatch: pytest.MonkeyPatch) -> None:
    run(monkeypatch, "dora", "--staff")
    made = User.objects.get(username="dora")
    assert (made.is_staff, made.is_superuser) == (True, False)


def test_a_link_takes_the_place_of_a_password(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.IS_PRODUCTION = False
    address = run(monkeypatch, "carol", "--link", typed="").split()[-1]
    client = Client()
    path = address.partition("127.0.0.1")[2].partition("/")[2]
    local: dict[str, Any] = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "localhost:8000"}
    assert client.post(f"/{path}", **local).status_code == 302
    assert not User.objects.get(username="carol").has_usable_password()


@pytest.mark.parametrize(
    ("args", "typed", "said"),
    [
        (["alice"], f"{PASSWORD}\n", "already exists"),
        (["a b!"], f"{PASSWORD}\n", "username"),
        (["carol", "--email", "nonsense"], f"{PASSWORD}\n", "email"),
        (["carol"], "short\n", "too short"),
        (["carol"], "", "no password"),
    ],
)
def test_an_error_is_one_line_and_creates_no_user(
    alice: User, monkeypatch: pytest.MonkeyPatch, args: list[str], typed: str, said: str
) -> None:
    with pytest.raises(CommandError, match=said):
        run(monkeypatch, *args, typed=typed)
    assert list(User.objects.all()) == [alice]


def test_a_production_server_makes_no_links(monkeypatch: pytest.MonkeyPatch, settings: Any) -> None:
    settings.IS_PRODUCTION = True
    with pytest.raises(CommandError, match="ALLOWED_HOSTS"):
        run(monkeypatch, "carol", "--link")
    assert not User.objects.exists()
