"""From a name and settings to a model."""

from pathlib import Path
from typing import Any

import pytest

from chat.core.model.fallbacks import Fallbacks
from chat.core.model.language_model import RetryNotice
from chat.errors import ModelNotConfigured, RateLimited
from chat.llm.adapters.chat_completions import ChatCompletionsModel
from chat.llm.adapters.responses import ResponsesModel
from chat.llm.discovery import Choice, ChoiceKind, local_choice, save_choice
from chat.llm.own_keys import under_own_keys
from chat.llm.registry import describe_default, guarded, resolve_model
from chat.llm.scripted import ScriptedModel, ScriptedServer
from chat.llm.testing import collect, make_request, text_of

NAMES = ("THINK_MODEL", "THINK_MODEL_CHOICE_FILE", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture(autouse=True)
def nothing_configured(settings: Any) -> None:
    for name in NAMES:
        setattr(settings, name, "")
    settings.THINK_PROVIDERS = {}


def test_a_model_is_returned_as_it_is() -> None:
    model = ScriptedModel()
    assert resolve_model(model) is model


def test_openai_without_a_base_url_uses_responses(settings: Any) -> None:
    settings.OPENAI_API_KEY = "sk-x"
    model = resolve_model("openai/gpt-5-mini")
    assert isinstance(model, ResponsesModel)
    assert model.name == "openai/gpt-5-mini"


def test_people_bring_keys_where_the_site_has_none(settings: Any) -> None:
    with under_own_keys({"openai": "sk-hers"}), pytest.raises(ModelNotConfigured, match="OPENAI_API_KEY"):
        resolve_model("openai/gpt-5-mini")  # the site takes none
    settings.THINK_PROVIDERS = {"openai": {"own_keys": True}}
    with pytest.raises(ModelNotConfigured, match="Store one of your own"):
        resolve_model("openai/gpt-5-mini")
    with under_own_keys({"openai": "sk-hers"}):
        assert isinstance(resolve_model("openai/gpt-5-mini"), ResponsesModel)
    with pytest.raises(ModelNotConfigured):
        resolve_model("openai/gpt-5-mini")


def test_what_fails_with_a_key_of_a_persons_is_put_aside_for_that_person_alone(settings: Any) -> None:
    entry = {"base_url": "http://127.0.0.1:9/v1", "api_key": "sk-site", "own_keys": True}
    settings.THINK_PROVIDERS = {"acme": entry, "other": entry}
    with under_own_keys({"acme": "sk-hers"}):
        models = resolve_model(["acme/large", "other/large"])
    assert isinstance(models, Fallbacks)
    models.health.failed("acme/large", RateLimited())
    assert models.health.is_resting("acme/large")
    shared = resolve_model(["acme/large", "other/large"])
    assert isinstance(shared, Fallbacks)
    assert not shared.health.is_resting("acme/large")


def test_any_base_url_uses_chat_completions(settings: Any) -> None:
    settings.OPENAI_BASE_URL = "http://127.0.0.1:9/v1/"
    assert isinstance(resolve_model("openai/some/deep/name"), ChatCompletionsModel)


def test_the_name_is_split_at_the_first_slash(settings: Any) -> None:
    model = resolve_model("ollama/library/llama3:8b")
    assert model.name == "ollama/library/llama3:8b"
    assert model.describe(make_request("x"))["model"] == "library/llama3:8b"


@pytest.mark.parametrize("provider", ["ollama", "lmstudio", "llamacpp", "vllm"])
def test_servers_on_this_machine_need_no_key(provider: str) -> None:
    assert resolve_model(f"{provider}/m").name == f"{provider}/m"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("openai/gpt-5-mini", "OPENAI_API_KEY"),
        ("acme/m", "THINK_PROVIDERS"),
        ("acme/m", "ollama"),
        ("gpt-5-mini", "provider/model"),
        ("/m", "provider/model"),
        ("openai/", "provider/model"),
        ("local/smollm2-135m", "make run"),
        ("default", "THINK_MODEL"),
    ],
)
def test_what_is_missing_is_reported(name: str, says: str) -> None:
    with pytest.raises(ModelNotConfigured, match=says):
        resolve_model(name)


def test_a_provider_of_the_settings_needs_an_address_and_a_known_api(settings: Any) -> None:
    settings.THINK_PROVIDERS = {
        "acme": {"base_url": "acme.example"},
        "wave": {"base_url": "https://x/v1", "api": "soap"},
    }
    with pytest.raises(ModelNotConfigured, match="base_url"):
        resolve_model("acme/m")
    with pytest.raises(ModelNotConfigured, match="soap"):
        resolve_model("wave/m")


async def test_a_provider_of_the_settings_answers(settings: Any, server: ScriptedServer) -> None:
    settings.THINK_PROVIDERS = {
        "acme": {"base_url": server.base_url, "api_key": "k", "can_call_tools": False},
        "wave": {"base_url": server.base_url, "api": "responses"},
    }
    assert text_of(await collect(resolve_model("acme/m"), make_request("say: hi"))) == "hi"
    assert isinstance(resolve_model("wave/m"), ResponsesModel)


def test_the_default_is_what_the_settings_name(settings: Any) -> None:
    settings.THINK_MODEL = "ollama/llama3"
    assert resolve_model("default").name == "ollama/llama3"
    info = describe_default()
    assert (info.name, info.kind, info.is_small) == ("ollama/llama3", ChoiceKind.CONFIGURED, False)


def test_a_key_alone_chooses_openai(settings: Any) -> None:
    settings.OPENAI_API_KEY = "sk-x"
    assert resolve_model("default").name.startswith("openai/")


def test_the_stored_choice_is_used_and_described(settings: Any, tmp_path: Path) -> None:
    path = tmp_path / "choice.json"
    settings.THINK_MODEL_CHOICE_FILE = str(path)
    save_choice(path, local_choice("http://127.0.0.1:9/v1"))
    model = resolve_model("default")
    assert model.name == "local/smollm2-135m"
    assert not model.accepts_images
    info = describe_default()
    assert info.is_small
    assert "THINK_MODEL" in info.hint
    settings.THINK_MODEL = "ollama/better"
    assert resolve_model("default").name == "ollama/better"


def test_a_discovered_server_keeps_its_address(settings: Any, tmp_path: Path, server: ScriptedServer) -> None:
    path = tmp_path / "choice.json"
    settings.THINK_MODEL_CHOICE_FILE = str(path)
    save_choice(path, Choice(name="ollama/m", kind=ChoiceKind.SERVER, base_url=server.base_url))
    assert resolve_model("default").name == "ollama/m"
    assert resolve_model("lmstudio/m").name == "lmstudio/m"


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "x"}', '{"name": "x", "kind": "nonsense"}'])
def test_a_broken_choice_file_is_as_none(settings: Any, tmp_path: Path, text: str) -> None:
    path = tmp_path / "choice.json"
    path.write_text(text)
    settings.THINK_MODEL_CHOICE_FILE = str(path)
    assert describe_default().kind is ChoiceKind.NONE


async def test_guarded_models_retry_as_the_settings_say(settings: Any) -> None:
    settings.THINK_MODEL_ATTEMPTS = 2
    settings.THINK_MODEL_STALL_SECONDS = 0.1
    model = guarded(ScriptedModel("error 429 retry-after-ms 5 times 1\nsay: hi"))
    events = await collect(model, make_request("x"))
    assert text_of(events) == "hi"
    assert [event.attempts for event in events if isinstance(event, RetryNotice)] == [2]


@pytest.mark.parametrize(
    ("name", "sees"),
    [
        ("openai/gpt-5-mini", (True, True)),
        ("openai/gpt-4-turbo", (True, False)),
        ("openai/gpt-3.5-turbo", (False, False)),
        ("openai/unheard-of", (True, True)),
        ("own/gpt-4o", (True, False)),
        ("own/blind", (False, False)),
        ("plain/gpt-4o", (False, False)),
    ],
)
def test_a_model_is_sent_what_it_and_its_endpoint_take(settings: Any, name: str, sees: tuple[bool, bool]) -> None:
    settings.OPENAI_API_KEY = "sk-x"
    settings.THINK_PROVIDERS = {
        "own": {"base_url": "http://127.0.0.1:9/v1"},
        "plain": {"base_url": "http://127.0.0.1:9/v1", "accepts_images": False},
    }
    settings.THINK_MODEL_FACTS = {"own/blind": {"inputs": []}}
    model = resolve_model(name)
    assert (model.accepts_images, model.accepts_documents) == sees
