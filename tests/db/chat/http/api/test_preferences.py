"""What a person chooses: field by field, checked, one's own alone, and in cookies for the next page."""

from typing import Any

import pytest
from django.conf import settings
from django.contrib.auth.models import User
from django.test import Client

from chat.models import PersonPreferences
from chat.people.preferences import MAX_INSTRUCTION_TOKENS, change_preferences
from tests.db.chat.conftest import ApiClient
from tests.db.chat.turns.agents.everyday import Typed

NOTHING = {
    **dict.fromkeys(("name", "language", "zone", "theme", "text_size", "about_me", "how_to_answer"), ""),
    **dict.fromkeys(("about_me_tokens", "how_to_answer_tokens"), 0),
    "read_by": None,
    "max_tokens": MAX_INSTRUCTION_TOKENS,
}


AGENTS = ("plain", Typed.route_name())  # served by the module of the latter
JSON = "application/json"


def chosen(found: dict[str, Any]) -> dict[str, Any]:
    """What differs from a person who has chosen nothing."""
    assert found.keys() == NOTHING.keys() | {"languages"}
    return {name: value for name, value in found.items() if name != "languages" and value != NOTHING[name]}


def test_nothing_is_chosen_at_first_and_nothing_is_stored(as_alice: ApiClient) -> None:
    found = as_alice.get("/preferences").json()
    assert chosen(found) == {}
    assert found["languages"][0] == {"code": "en", "name": "English"}
    assert [item["code"] for item in found["languages"]] == [code for code, _ in settings.LANGUAGES]
    assert not PersonPreferences.objects.exists()


def test_each_field_is_changed_by_itself(as_alice: ApiClient, as_bob: ApiClient) -> None:
    changes: list[dict[str, Any]] = [
        {"name": "  Alice   A. "},
        {"zone": "Europe/Vienna"},
        {"theme": "dark"},
        {"text_size": "large"},
        {"language": "en-xa"},
        {"about_me": "I bake bread.\n"},
        {"how_to_answer": "Briefly."},
        {"read_by": [AGENTS[1], "plain", "typed"]},
    ]
    for change in changes:
        assert as_alice.send("PATCH", "/preferences", change).status_code == 200
    wanted = {name: value for change in changes for name, value in change.items()}
    wanted |= {"name": "Alice A.", "about_me": "I bake bread.", "about_me_tokens": 4, "how_to_answer_tokens": 2}
    wanted["read_by"] = ["plain", "typed"]
    assert chosen(as_alice.get("/preferences").json()) == wanted
    assert chosen(as_bob.get("/preferences").json()) == {}
    taken_back = as_alice.send("PATCH", "/preferences", {"theme": "", "read_by": None, "about_me": ""}).json()
    assert chosen(taken_back).keys() == wanted.keys() - {"theme", "read_by", "about_me", "about_me_tokens"}


@pytest.mark.parametrize(
    ("change", "field", "words"),
    [
        ({"language": "xx"}, "language", "The language “xx” is not offered here."),
        ({"zone": "Europe/Wien"}, "zone", "Did you mean Europe/Vienna?"),
        ({"zone": "Mars/Base One"}, "zone", "There is no time zone “Mars/Base One”."),
        ({"about_me": "word " * 1_000}, "about_me", "This text has 1300 tokens. Up to 1000 fit"),
        ({"how_to_answer": "x" * 5_000}, "how_to_answer", "This text has 1250 tokens. Up to 1000 fit"),
        ({"read_by": ["plain", "nothing"]}, "read_by", "There is no agent 'nothing'."),
        ({"read_by": []}, "read_by", "Choose at least one agent, or all of them."),
    ],
)
def test_what_is_not_possible_changes_nothing(
    as_alice: ApiClient, change: dict[str, Any], field: str, words: str
) -> None:
    as_alice.send("PATCH", "/preferences", {"name": "Alice"})
    reply = as_alice.send("PATCH", "/preferences", {"name": "Bob", **change})
    problem = reply.json()
    assert (reply.status_code, problem["code"]) == (422, "preference_invalid")
    assert problem["data"] == {"field": field}
    assert words in problem["detail"]
    assert chosen(as_alice.get("/preferences").json()) == {"name": "Alice"}


@pytest.mark.parametrize("change", [{"theme": "pink"}, {"text_size": "huge"}, {"nick": "a"}, {"name": "\0"}])
def test_what_has_another_form_is_refused(as_alice: ApiClient, change: dict[str, Any]) -> None:
    assert as_alice.send("PATCH", "/preferences", change).status_code == 422
    assert not PersonPreferences.objects.exists()


def test_strangers_have_none(as_nobody: ApiClient) -> None:
    assert as_nobody.get("/preferences").status_code == 401


def test_an_agent_that_is_gone_may_stay_chosen(as_alice: ApiClient, alice: User) -> None:
    PersonPreferences.objects.create(pk=alice.pk, read_by=["gone"])
    assert as_alice.send("PATCH", "/preferences", {"read_by": ["gone", "plain"]}).status_code == 200
    assert as_alice.send("PATCH", "/preferences", {"read_by": ["lost", "plain"]}).status_code == 422


def test_a_choice_sets_the_cookies_that_the_next_page_needs(alice: User) -> None:
    client = Client()
    client.force_login(alice)
    client.patch("/api/v1/preferences", {"language": "ar-xb", "zone": "Asia/Tokyo", "theme": "dark"}, content_type=JSON)
    page = client.get("/settings/you", headers={"Accept-Language": "en"}).content.decode()
    assert '<html lang="ar-xb" dir="rtl" data-theme="dark">' in page
    assert client.cookies["think_zone"].value == "Asia/Tokyo"
    client.patch("/api/v1/preferences", {"language": "", "zone": "", "text_size": "larger"}, content_type=JSON)
    page = client.get("/settings/you", headers={"Accept-Language": "en"}).content.decode()
    assert '<html lang="en" dir="ltr" data-theme="dark" data-text="larger">' in page
    assert client.cookies["think_zone"].value == ""


def test_signing_in_brings_what_was_chosen_elsewhere(alice: User) -> None:
    alice.set_password("alice-password")
    alice.save()
    change_preferences(alice.pk, {"language": "en-xa", "theme": "light", "zone": "Europe/Vienna"})
    client = Client()
    client.cookies["think_zone"] = "Asia/Tokyo"
    client.post("/sign-in/", {"username": "alice", "password": "alice-password"})
    found = {name: client.cookies[name].value for name in (settings.LANGUAGE_COOKIE_NAME, "think_theme", "think_zone")}
    assert list(found.values()) == ["en-xa", "light", "Europe/Vienna"]


def test_a_deleted_person_leaves_no_preferences(alice: User) -> None:
    change_preferences(alice.pk, {"about_me": "I bake bread."})
    alice.delete()
    assert not PersonPreferences.objects.exists()
