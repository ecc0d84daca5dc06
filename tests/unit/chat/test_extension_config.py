"""What extensions say about a turn, merged: later ones win, and none gets further than it may."""

from typing import Any

import pytest

from chat.core.loop.hooks import TurnConfig
from chat.core.model.language_model import ModelSettings
from chat.turns.execution.extensions.turn_config import merged
from tools_app.core.extensions.manifest import parse_manifest
from tools_app.core.extensions.surface import Surface
from tools_app.extensions.loaded import LoadedExtension


def extension(**permissions: Any) -> LoadedExtension:
    manifest = parse_manifest({"name": "x", "version": "1", "permissions": permissions})
    return LoadedExtension(
        pk=None,
        level="static",
        name="x",
        manifest=manifest,
        granted=manifest.permissions,
        surface=Surface(),
        sha256="",
    )


def after(*wishes: Any, config: TurnConfig | None = None, **permissions: Any) -> TurnConfig:
    found = config or TurnConfig()
    for wish in wishes:
        found = merged(found, extension(**permissions), wish, most_steps=10)
    return found


def settings_of(config: TurnConfig) -> ModelSettings:
    assert config.settings is not None
    return config.settings


def test_later_scalars_win_and_headers_and_options_are_merged() -> None:
    found = after(
        {"temperature": 0.1, "maxOutputTokens": 50, "headers": {"X-One": "1", "X-Both": "1"}},
        {"temperature": 0.2, "seed": 7, "topP": 0.5, "headers": {"X-Both": "2"}},
    )
    settings = settings_of(found)
    assert (settings.temperature, settings.max_output_tokens, settings.seed, settings.top_p) == (0.2, 50, 7, 0.5)
    assert settings.headers == {"X-One": "1", "X-Both": "2"}
    options = after(
        {"providerOptions": {"openai": {"service_tier": "flex"}}},
        {"providerOptions": {"openai": {"user": "u"}, "b": {}}},
    )
    assert options.provider_options == {"openai": {"service_tier": "flex", "user": "u"}, "b": {}}


def test_a_model_tools_messages_and_credentials_are_not_theirs() -> None:
    own = TurnConfig(model="own/model", tools=[], tool_choice="none", active_tools=["read*"])
    wish = {
        "model": "other/model",
        "tools": ["x"],
        "messages": [],
        "activeTools": ["*"],
        "toolChoice": "required",
        "headers": {"Authorization": "Bearer x", "x-api-key": "y", "Cookie": "z", "X-Line": "a\r\nb", "X-Ok": "1"},
        "providerOptions": {"openai": {"model": "m", "messages": [], "tools": [], "input": "x", "stream": False}},
    }
    found = after(wish, config=own)
    assert (found.model, found.tool_choice, found.active_tools, found.messages) == (
        "own/model",
        "none",
        ["read*"],
        None,
    )
    assert settings_of(found).headers == {"X-Ok": "1"}
    assert found.provider_options == {"openai": {}}


@pytest.mark.parametrize(
    "option",
    [
        {"web_search_options": {}},
        {"previous_response_id": "resp_1"},
        {"store": True},
        {"n": 128},
        {"best_of": 5},
        {"max_tokens": 100_000},
        {"max_completion_tokens": 100_000},
        {"max_output_tokens": 100_000},
        {"metadata": {"a": "b"}},
        {"conversation": "c"},
        {"background": True},
        {"prompt": {"id": "p"}},
        {"functions": []},
        {"response_format": {"type": "json_object"}},
        {"plugins": [{"id": "web"}]},
        {"service_tier": "priority"},
        {"temperature": {"a": 1}},
        {"temperature": "hot"},
        {"stop": [{"a": 1}]},
        {"user": 7},
        {"an_option_of_next_year": 1},
    ],
)
def test_options_that_do_more_than_say_how_to_answer_are_left_out(
    option: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    found = after({"providerOptions": {"openai": {**option, "seed": 3}}}, network=["example.org"])
    assert found.provider_options == {"openai": {"seed": 3}}
    assert [record.reason for record in caplog.records] == [f"openai.{next(iter(option))}"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name",
    [
        "Content-Length",
        "Transfer-Encoding",
        "Content-Type",
        "Content-Encoding",
        "Connection",
        "Keep-Alive",
        "TE",
        "Trailer",
        "Upgrade",
        "Expect",
        "Host",
        "Accept-Encoding",
        "Proxy-Connection",
        "OpenAI-Organization",
        "X-Auth-Token",
        "X-API-Key",
        "X-Forwarded-Host",
        "X-HTTP-Method-Override",
        "X-Bad Name",
        "X-Ünicode",
    ],
)
def test_headers_are_an_extensions_own_or_left_out(name: str) -> None:
    assert settings_of(after({"headers": {name: "1", "X-Mine": "2", "X-Long": "a" * 1_001}})).headers == {"X-Mine": "2"}


@pytest.mark.parametrize(("wanted", "sent"), [(900, 100), (9, 9)])
def test_a_bound_of_the_chosen_model_holds(wanted: int, sent: int) -> None:
    bound = ModelSettings(max_output_tokens=100)
    twice = after({"maxOutputTokens": 5_000}, {"maxOutputTokens": wanted})
    assert settings_of(twice).over(bound).max_output_tokens == sent
    own = after({"maxOutputTokens": wanted}, config=TurnConfig(settings=ModelSettings(max_output_tokens=50)))
    assert settings_of(own).over(ModelSettings(max_output_tokens=20)).max_output_tokens == min(wanted, 50)


def test_limits_are_made_tighter_and_never_wider() -> None:
    assert after({"maxSteps": 3}).max_steps == 3
    assert after({"maxSteps": 99}).max_steps == 10
    assert after({"maxSteps": 99}, config=TurnConfig(max_steps=2)).max_steps == 2
    short = TurnConfig(settings=ModelSettings(max_output_tokens=100))
    assert settings_of(after({"maxOutputTokens": 900}, config=short)).max_output_tokens == 100
    assert settings_of(after({"maxOutputTokens": 9}, config=short)).max_output_tokens == 9
    assert after({"sendReasoning": False}).send_reasoning is False
    assert after({"sendReasoning": True}, config=TurnConfig(send_reasoning=False)).send_reasoning is False
    assert after({"timeoutSeconds": 5.0}).timeout_seconds == 5.0
    assert after({"timeoutSeconds": 500.0}, config=TurnConfig(timeout_seconds=60)).timeout_seconds == 60


@pytest.mark.parametrize(
    ("permissions", "is_heard"),
    [
        ({}, False),
        ({"context": {"read": ["memory"]}}, False),
        ({"context": {"read": "all"}}, True),
        ({"context": {"read": "all"}, "network": ["example.org"]}, False),
    ],
)
def test_the_system_prompt_needs_permission(permissions: Any, is_heard: bool) -> None:
    own = TurnConfig(instructions="own")
    found = after({"system": "theirs"}, config=own, **permissions)
    assert (found.system, found.instructions) == (("theirs", None) if is_heard else (None, "own"))


@pytest.mark.parametrize(
    "wish", [{"temperature": "hot"}, {"maxSteps": 0}, {"headers": {"X": 1}}, {"providerOptions": []}, {"seed": 1.5}]
)
def test_what_cannot_be_read_changes_nothing(wish: Any) -> None:
    own = TurnConfig(max_steps=4)
    assert after({"maxSteps": 2, **wish} if "maxSteps" not in wish else wish, config=own) == own
