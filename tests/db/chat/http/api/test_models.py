"""Agents as people see them, the models they may choose, and the choice of a conversation, over the API."""

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils.translation import gettext_lazy

from chat.agent import declared
from chat.agents import Assistant
from chat.models import AgentInstance
from chat.think import Think
from tests.db.chat.access_rows import all_rows
from tests.db.chat.conftest import ApiClient, make_turn

Make = Callable[..., AgentInstance]
NONE = {"model": None, "reasoning_effort": None, "temperature": None, "top_p": None, "max_output_tokens": None}


@pytest.fixture(autouse=True)
def offered(settings: Any) -> list[str]:
    """Two models of a site whose default is a third one."""
    settings.THINK_MODEL = "openai/gpt-5-mini"
    settings.THINK_MODELS = ["openai/gpt-5", "openai/gpt-4.1"]
    return ["openai/gpt-5", "openai/gpt-4.1"]


def path_of(instance: AgentInstance) -> str:
    return f"/instances/{instance.id}"


# --- agents ----------------------------------------------------------------------------------------------------------


def test_agents_say_how_they_look(as_alice: ApiClient) -> None:
    shown = next(item for item in as_alice.get("/agents").json() if item["name"] == "assistant")
    assert (shown["title"], shown["icon"], shown["icon_url"]) == ("Assistant", "chat", None)
    assert 1 <= len(shown["suggestions"]) <= 6
    assert shown["description"].startswith("Answers questions")


def test_agents_that_work_for_others_are_not_offered_and_answer_to_their_name(
    as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    def listed(query: str = "") -> dict[str, bool]:
        return {item["name"]: item["is_listed"] for item in as_alice.get(f"/agents{query}").json()}

    assert listed()["assistant"]
    monkeypatch.setattr(Assistant, "listed", False)
    assert "assistant" not in listed()
    unlisted = listed("?unlisted=true")
    assert listed().items() <= unlisted.items()
    assert unlisted["assistant"] is False
    assert all(listed().values())
    made = as_alice.send("POST", "/instances", {"agent": "assistant", "name": "direct"})
    assert made.status_code == 201, made.content


def test_an_icon_of_ones_own_is_a_static_file(as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "icon", "support/agent.svg")
    shown = next(item for item in as_alice.get("/agents").json() if item["name"] == "assistant")
    assert (shown["icon"], shown["icon_url"]) == ("chat", "/static/support/agent.svg")


def test_a_missing_collected_icon_is_a_symbol(
    as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch, settings: Any, tmp_path: Any
) -> None:
    settings.STATIC_ROOT = str(tmp_path)
    backend = "django.contrib.staticfiles.storage.ManifestStaticFilesStorage"
    settings.STORAGES = {**settings.STORAGES, "staticfiles": {"BACKEND": backend}}
    monkeypatch.setattr(Assistant, "icon", "support/agent.svg")
    shown = next(item for item in as_alice.get("/agents").json() if item["name"] == "assistant")
    assert (shown["icon"], shown["icon_url"]) == ("chat", None)


def test_texts_are_in_the_language_of_the_request(as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Assistant, "title", gettext_lazy("Password"))
    monkeypatch.setattr(Assistant, "suggestions", (gettext_lazy("Yes"),))

    def shown(language: str) -> tuple[str, list[str]]:
        agents = as_alice.get("/agents", **{"accept-language": language}).json()
        item = next(each for each in agents if each["name"] == "assistant")
        return item["title"], item["suggestions"]

    assert shown("en") == ("Password", ["Yes"])
    title, suggestions = shown("en-xa")
    assert title.startswith("[")
    assert suggestions[0].startswith("[")


# --- the models of an agent ------------------------------------------------------------------------------------------


def test_the_models_with_their_facts(as_alice: ApiClient) -> None:
    items = as_alice.get("/models?agent=assistant").json()["items"]
    assert [(item["name"], item["is_default"]) for item in items] == [
        ("openai/gpt-5-mini", True),  # the agent's own comes first where the list has not got it
        ("openai/gpt-5", False),
        ("openai/gpt-4.1", False),
    ]
    assert items[1] == {
        "name": "openai/gpt-5",
        "title": "GPT-5",
        "provider": "openai",
        "context_tokens": 400_000,
        "max_output_tokens": 128_000,
        "prices": {"input": "1.25", "output": "10", "cached_input": "0.125"},
        "reasoning_efforts": ["minimal", "low", "medium", "high"],
        "parameters": ["max_output_tokens"],
        "inputs": ["image", "document"],
        "calls_tools": None,
        "reasons": None,
        "is_default": False,
    }


def test_unknown_facts_are_null(as_alice: ApiClient, settings: Any) -> None:
    settings.THINK_MODELS = ["default", "acme/m"]
    default, unknown = as_alice.get("/models?agent=assistant").json()["items"]
    assert (default["name"], default["is_default"]) == ("openai/gpt-5-mini", True)
    assert unknown == {
        "name": "acme/m",
        "title": "m",
        "provider": "acme",
        "context_tokens": None,
        "max_output_tokens": None,
        "prices": None,
        "reasoning_efforts": [],
        "parameters": ["temperature", "top_p", "max_output_tokens"],
        "inputs": None,
        "calls_tools": None,
        "reasons": None,
        "is_default": False,
    }


def test_a_site_that_lists_none_lets_nothing_be_chosen(
    as_alice: ApiClient, conversation: AgentInstance, settings: Any
) -> None:
    settings.THINK_MODELS = ()
    assert as_alice.get("/models?agent=assistant").json() == {"items": []}
    reply = as_alice.send("PATCH", path_of(conversation), {"model_choice": {"max_output_tokens": 100}})
    assert (reply.status_code, reply.json()["code"]) == (422, "model_choice_invalid")
    assert as_alice.get(path_of(conversation)).json()["model"] == "openai/gpt-5-mini"


def test_a_class_has_a_list_of_its_own(as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    def names() -> list[str]:
        return [item["name"] for item in as_alice.get("/models?agent=assistant").json()["items"]]

    monkeypatch.setattr(Assistant, "models", ("openai/o3",))
    assert names() == ["openai/gpt-5-mini", "openai/o3"]
    monkeypatch.setattr(Assistant, "models", ())
    assert names() == []


def test_models_of_an_unknown_agent(as_alice: ApiClient) -> None:
    assert as_alice.get("/models?agent=stranger").status_code == 404


# --- the choice ------------------------------------------------------------------------------------------------------


def test_a_choice_is_kept_and_read(as_alice: ApiClient, conversation: AgentInstance) -> None:
    path = path_of(conversation)
    before = as_alice.get(path).json()
    assert (before["model_choice"], before["model"], before["model_notice"]) == (None, "openai/gpt-5-mini", "")
    chosen = {"model": "openai/gpt-5", "reasoning_effort": "high", "max_output_tokens": 900}
    changed = as_alice.send("PATCH", path, {"model_choice": chosen}).json()
    assert (changed["model_choice"], changed["model"]) == ({**NONE, **chosen}, "openai/gpt-5")
    assert as_alice.get(path).json() == changed
    listed = as_alice.get("/instances").json()["items"][0]
    assert listed["model_choice"] == changed["model_choice"]
    other = as_alice.send("PATCH", path, {"model_choice": {"model": "openai/gpt-4.1", "temperature": 0.5}}).json()
    assert other["model_choice"] == {**NONE, "model": "openai/gpt-4.1", "temperature": 0.5}  # as a whole
    assert as_alice.send("PATCH", path, {"title": "Other"}).json()["model_choice"] == other["model_choice"]
    assert as_alice.send("PATCH", path, {"model_choice": None}).json()["model_choice"] is None
    assert AgentInstance.objects.get(pk=conversation.pk).model_choice is None


@pytest.mark.parametrize(
    ("choice", "field"),
    [
        ({"model": "openai/o3"}, "model"),
        ({"model": "openai/gpt-5", "reasoning_effort": "enormous"}, "reasoning_effort"),
        ({"model": "openai/gpt-4.1", "reasoning_effort": "low"}, "reasoning_effort"),
        ({"model": "openai/gpt-5", "temperature": 0.5}, "temperature"),
        ({"model": "openai/gpt-5", "top_p": 0.5}, "top_p"),
        ({"model": "openai/gpt-4.1", "max_output_tokens": 32_769}, "max_output_tokens"),
        ({"reasoning_effort": "enormous"}, "reasoning_effort"),  # of the agent's own model
    ],
)
def test_a_refused_choice_changes_nothing(
    as_alice: ApiClient, conversation: AgentInstance, choice: dict[str, Any], field: str
) -> None:
    as_alice.send("PATCH", path_of(conversation), {"model_choice": {"model": "openai/gpt-5"}})
    before = all_rows()
    reply = as_alice.send("PATCH", path_of(conversation), {"model_choice": choice, "title": "Changed"})
    assert (reply.status_code, reply.json()["code"]) == (422, "model_choice_invalid")
    assert reply.json()["data"]["field"] == field
    assert all_rows() == before


@pytest.mark.parametrize(
    "choice",
    [
        {"temperature": 2.1},
        {"temperature": -0.1},
        {"top_p": 0},
        {"top_p": 1.1},
        {"max_output_tokens": 0},
        {"max_output_tokens": 1.5},
        {"model": ""},
        {"model": "x" * 201},
        {"voice": "alto"},
        "openai/gpt-5",
    ],
)
def test_a_choice_of_the_wrong_shape_is_refused(as_alice: ApiClient, conversation: AgentInstance, choice: Any) -> None:
    reply = as_alice.send("PATCH", path_of(conversation), {"model_choice": choice})
    assert reply.status_code == 422
    assert AgentInstance.objects.get(pk=conversation.pk).model_choice is None


def test_naming_the_agents_own_model_is_no_choice_of_a_model(as_alice: ApiClient, conversation: AgentInstance) -> None:
    changed = as_alice.send("PATCH", path_of(conversation), {"model_choice": {"model": "openai/gpt-5-mini"}}).json()
    assert (changed["model_choice"], changed["model"]) == (None, "openai/gpt-5-mini")
    chosen = {"model": "openai/gpt-5-mini", "reasoning_effort": "low"}
    changed = as_alice.send("PATCH", path_of(conversation), {"model_choice": chosen}).json()
    assert changed["model_choice"] == {**NONE, "reasoning_effort": "low"}


def test_a_new_conversation_begins_with_a_choice(as_alice: ApiClient) -> None:
    body = {"agent": "assistant", "name": "new", "model_choice": {"model": "openai/gpt-5"}}
    made = as_alice.send("POST", "/instances", body)
    assert (made.status_code, made.json()["model"]) == (201, "openai/gpt-5")
    again = as_alice.send("POST", "/instances", {**body, "model_choice": {"model": "openai/gpt-4.1"}})
    assert again.json()["model"] == "openai/gpt-5"  # it exists, and keeps its own
    refused = as_alice.send("POST", "/instances", {**body, "name": "x", "model_choice": {"model": "openai/o3"}})
    assert refused.status_code == 422
    assert not AgentInstance.objects.filter(name="x").exists()


def test_someone_elses_conversation_does_not_exist(as_bob: ApiClient, conversation: AgentInstance) -> None:
    reply = as_bob.send("PATCH", path_of(conversation), {"model_choice": {"model": "openai/gpt-5"}})
    assert (reply.status_code, reply.json()["code"]) == (404, "instance_not_found")


def test_a_conversation_whose_class_is_gone_is_read_only(as_alice: ApiClient, alice: User, make_instance: Make) -> None:
    gone = make_instance(alice, "old", agent="retired")
    reply = as_alice.send("PATCH", path_of(gone), {"model_choice": {"model": "openai/gpt-5"}})
    assert (reply.status_code, reply.json()["code"]) == (404, "agent_not_found")
    shown = as_alice.get(path_of(gone)).json()
    assert (shown["is_read_only"], shown["model_choice"], shown["model"]) == (True, None, None)


def test_a_withdrawn_model_is_not_in_effect_and_the_conversation_says_why(
    as_alice: ApiClient, conversation: AgentInstance, settings: Any
) -> None:
    chosen = {"model": "openai/gpt-5", "reasoning_effort": "high"}
    as_alice.send("PATCH", path_of(conversation), {"model_choice": chosen})
    settings.THINK_MODELS = ["openai/gpt-4.1"]
    shown = as_alice.get(path_of(conversation)).json()
    assert shown["model"] == "openai/gpt-5-mini"
    assert shown["model_notice"] == "openai/gpt-5 is no longer offered here, so the agent's own model answers."
    assert shown["model_choice"] == {**NONE, **chosen}
    settings.THINK_MODELS = ["openai/gpt-5"]
    assert as_alice.get(path_of(conversation)).json()["model_notice"] == ""


def test_a_parameter_that_is_not_taken_any_more_is_named(
    as_alice: ApiClient, conversation: AgentInstance, settings: Any
) -> None:
    as_alice.send("PATCH", path_of(conversation), {"model_choice": {"model": "openai/gpt-4.1", "temperature": 1}})
    settings.THINK_MODEL_FACTS = {"openai/gpt-4.1": {"parameters": ["top_p"]}}
    shown = as_alice.get(path_of(conversation)).json()
    assert shown["model"] == "openai/gpt-4.1"
    assert shown["model_notice"] == "openai/gpt-4.1 does not take the chosen temperature, which is not sent."


def test_a_fork_takes_choice_and_configuration_along(as_alice: ApiClient, conversation: AgentInstance) -> None:
    as_alice.send("PATCH", path_of(conversation), {"model_choice": {"model": "openai/gpt-5"}})
    AgentInstance.objects.filter(pk=conversation.pk).update(config={"colour": "red"}, config_version=3)
    made = as_alice.send("POST", f"{path_of(conversation)}/fork", {"message_id": "a1"}).json()
    assert as_alice.get(f"/instances/{made['id']}").json()["model"] == "openai/gpt-5"
    fork = AgentInstance.objects.get(pk=made["id"])
    assert (fork.config, fork.config_version) == ({"colour": "red"}, 3)


class Vague(Think):
    """Cannot say which model it has."""

    def get_model(self) -> str:
        raise RuntimeError("not today")


def test_a_model_that_the_agents_code_cannot_name_is_unknown(
    as_alice: ApiClient, alice: User, make_instance: Make
) -> None:
    declared.register(Vague)
    try:
        vague = make_instance(alice, "vague", agent="vague")
        assert as_alice.get(path_of(vague)).json()["model"] is None
        items = as_alice.get("/models?agent=vague").json()["items"]
        assert [item["is_default"] for item in items] == [False, False]
        chosen = as_alice.send("PATCH", path_of(vague), {"model_choice": {"model": "openai/gpt-5"}})
        assert chosen.json()["model"] == "openai/gpt-5"
    finally:
        declared.unregister(Vague)


def test_reading_a_conversation_and_its_model_costs_as_before(as_alice: ApiClient, conversation: AgentInstance) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            assert as_alice.get(path_of(conversation)).status_code == 200
        return len(queries)

    make_turn(conversation)
    assert cost() == 4  # the session, the user, the row, the summary
    as_alice.send("PATCH", path_of(conversation), {"model_choice": {"model": "openai/gpt-5"}})
    assert cost() == 4
