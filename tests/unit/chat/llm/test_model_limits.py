"""How much a model takes: settings before its server, its server before the table, and nothing made up."""

import json
from pathlib import Path

import pytest
from django.test import override_settings

from chat.core.model.catalogue import CATALOGUE
from chat.core.model.overflow import Limits, usable_tokens
from chat.llm import discovery
from chat.llm.discovery import Choice, ChoiceKind, local_choice, save_choice
from chat.llm.model_limits import model_limits
from chat.llm.registry import limits_of, resolve_model
from chat.llm.scripted import ScriptedModel

NOBODY_KNOWS = Limits()


@pytest.mark.parametrize(
    ("name", "context_tokens"),
    [
        ("openai/gpt-5-mini", 400_000),
        ("openai/gpt-5-chat-latest", 128_000),
        ("openrouter/anthropic/claude-sonnet-4", 200_000),
        ("openai/gpt-4", 8_192),
        ("openai/gpt-4.1-nano", 1_047_576),
        ("ollama/llama3.2", 0),
        ("acme/unknown", 0),
        ("", 0),
    ],
)
def test_the_table_knows_by_the_beginning_of_a_name(name: str, context_tokens: int) -> None:
    assert model_limits(name).context_tokens == context_tokens


@pytest.mark.parametrize("name", [name for name, facts in CATALOGUE.items() if facts.limits])
def test_every_row_of_the_table_leaves_room(name: str) -> None:
    limits = CATALOGUE[name].limits
    assert limits is not None
    assert limits.context_tokens >= limits.output_tokens > 0
    assert usable_tokens(limits) > 0 or name == "gpt-4"


def test_settings_come_first_and_the_longest_name_counts() -> None:
    configured = {"openai/": {"context": 1_000}, "openai/gpt-5": {"context": 9_000, "output": 500, "input": 8_000}}
    with override_settings(THINK_MODEL_LIMITS=configured):
        assert model_limits("openai/gpt-5", ("openai/gpt-5", 7)) == Limits(
            context_tokens=9_000, output_tokens=500, input_tokens=8_000
        )
        assert model_limits("openai/gpt-4o") == Limits(context_tokens=1_000, output_tokens=250)
        assert model_limits("acme/m") == NOBODY_KNOWS


def test_odd_settings_are_nothing_known() -> None:
    with override_settings(THINK_MODEL_LIMITS={"acme/": {"context": "many", "output": -5}}):
        assert model_limits("acme/m") == NOBODY_KNOWS


def test_limits_of_the_server_come_before_the_table() -> None:
    assert model_limits("openai/gpt-4o", ("openai/gpt-4o", 16_000)).context_tokens == 16_000
    assert model_limits("openai/gpt-4o", ("openai/other", 16_000)).context_tokens == 128_000


@pytest.mark.parametrize(
    ("entry", "context_tokens"),
    [
        ({"max_model_len": 32_768}, 32_768),
        ({"context_length": 8_192}, 8_192),
        ({"loaded_context_length": 4_096, "max_context_length": 131_072}, 4_096),
        ({"meta": {"n_ctx": 2_048, "n_ctx_train": 131_072}}, 2_048),
        ({"meta": {"n_ctx_train": 131_072}}, 0),
        ({"context_length": "lots", "max_model_len": True}, 0),
        ({}, 0),
    ],
)
def test_a_listing_reports_what_is_served(entry: dict[str, object], context_tokens: int) -> None:
    (listed,) = discovery._read_models(json.loads(json.dumps({"data": [{"id": "m", **entry}]})))
    assert listed.context_tokens == context_tokens


def test_what_discovery_chose_is_remembered(tmp_path: Path) -> None:
    path = tmp_path / "choice.json"
    save_choice(
        path, Choice(name="ollama/m", kind=ChoiceKind.SERVER, base_url="http://127.0.0.1:1/v1", context_tokens=5_000)
    )
    with override_settings(THINK_MODEL_CHOICE_FILE=str(path), THINK_MODEL="", OPENAI_API_KEY="", OPENAI_BASE_URL=""):
        assert limits_of(resolve_model("ollama/m")) == Limits(context_tokens=5_000, output_tokens=1_250)
        assert limits_of(ScriptedModel("")) == NOBODY_KNOWS


def test_the_small_local_model_knows_its_own() -> None:
    assert local_choice().context_tokens == 8192
