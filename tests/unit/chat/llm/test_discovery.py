"""What answers when no one named a model. Real servers on loopback stand for Ollama and its kind."""

import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chat.llm import discovery
from chat.llm.discovery import (
    ChoiceKind,
    discover,
    discover_async,
    load_choice,
    newest_chat_model,
    no_choice,
    save_choice,
)
from chat.llm.scripted import ScriptedServer, ServerOptions

CLOSED = "http://127.0.0.1:1/v1"
NOBODY = {"ollama": CLOSED, "lmstudio": CLOSED, "llamacpp": CLOSED}


@pytest.fixture(autouse=True)
def _patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server of a test answers when the machine lets it."""
    monkeypatch.setattr(discovery, "PROBE_SECONDS", 10.0)


@pytest.fixture
def no_local_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "local_model_is_installed", lambda: False)


@pytest.fixture
def silent() -> Iterator[str]:
    """A port that accepts and says nothing."""
    listener = socket.create_server(("127.0.0.1", 0))
    yield f"http://127.0.0.1:{listener.getsockname()[1]}/v1"
    listener.close()


def test_a_named_model_wins_and_no_server_is_asked() -> None:
    choice = discover({"THINK_MODEL": "acme/m", "OPENAI_API_KEY": "k"}, ports={})
    assert (choice.name, choice.kind) == ("acme/m", ChoiceKind.CONFIGURED)


def test_a_key_means_openai() -> None:
    assert discover({"OPENAI_API_KEY": "k"}, ports={}).name.startswith("openai/")


def test_the_word_default_names_nothing(no_local_model: None) -> None:
    assert discover({"THINK_MODEL": "default"}, ports=NOBODY).kind is ChoiceKind.NONE


def test_a_base_url_is_asked_for_its_models() -> None:
    options = ServerOptions(models=("old", "text-embedding-3", "new", "bge-m3"), api_key="sk-right-000000")
    with ScriptedServer(options) as server:
        choice = discover({"OPENAI_BASE_URL": server.base_url + "/", "OPENAI_API_KEY": "sk-right-000000"})
        assert (choice.name, choice.kind) == ("openai/new", ChoiceKind.CONFIGURED)


def test_a_base_url_that_does_not_answer_is_explained() -> None:
    choice = discover({"OPENAI_BASE_URL": CLOSED})
    assert choice.kind is ChoiceKind.NONE
    assert "THINK_MODEL=openai/NAME" in choice.hint


def test_a_server_on_this_machine_is_found(server: ScriptedServer) -> None:
    choice = discover({}, ports={**NOBODY, "lmstudio": server.base_url})
    assert (choice.name, choice.kind, choice.base_url) == ("lmstudio/scripted", ChoiceKind.SERVER, server.base_url)
    assert "LM Studio" in choice.hint


def test_a_server_with_embeddings_alone_is_passed_over(server: ScriptedServer) -> None:
    with ScriptedServer(ServerOptions(models=("nomic-embed-text",))) as embeddings:
        ports = {**NOBODY, "ollama": embeddings.base_url, "llamacpp": server.base_url}
        assert discover({}, ports=ports).name == "llamacpp/scripted"


def test_silent_ports_are_given_up_together(silent: str, no_local_model: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "PROBE_SECONDS", 1.0)
    start = time.monotonic()
    choice = discover({}, ports=dict.fromkeys(NOBODY, silent))
    assert choice.kind is ChoiceKind.NONE
    assert time.monotonic() - start < 2.5


def test_the_small_model_is_the_last_resort(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(discovery, "local_model_is_installed", lambda: True)
    choice = discover({}, ports=NOBODY)
    assert (choice.kind, choice.is_small) == (ChoiceKind.LOCAL, True)
    assert "small" in choice.hint


def test_nothing_is_explained(no_local_model: None) -> None:
    choice = discover({}, ports=NOBODY)
    assert choice == no_choice()
    assert "OPENAI_API_KEY" in choice.hint


async def test_it_can_be_asked_inside_a_loop(server: ScriptedServer) -> None:
    assert (await discover_async({}, ports={**NOBODY, "ollama": server.base_url})).name == "ollama/scripted"


@pytest.mark.parametrize(
    ("models", "newest"),
    [
        ([], ""),
        ([("a", 1.0), ("b", 3.0), ("c", 2.0)], "b"),
        ([("a", 0.0), ("b", 0.0)], "a"),
        ([("mxbai-embed-large", 9.0), ("llama3.2", 1.0)], "llama3.2"),
        ([("whisper-1", 9.0), ("tts-1", 9.0), ("bge-reranker", 9.0)], ""),
    ],
)
def test_the_newest_that_chats_is_taken(models: list[tuple[str, float]], newest: str) -> None:
    assert newest_chat_model([(name, created) for name, created in models if name != "tts-1"]) == newest


@pytest.mark.parametrize("body", ["[]", "{}", '{"data": 5}', '{"data": [5, {"id": 7}, {"id": ""}]}'])
def test_odd_listings_are_no_models(body: str) -> None:
    assert discovery._read_models(json.loads(body)) == []


def test_the_choice_survives_its_file(tmp_path: Path) -> None:
    path = tmp_path / "choice.json"
    choice = discovery.local_choice("http://127.0.0.1:9/v1")
    save_choice(path, choice)
    assert load_choice(path) == choice
    assert [file.name for file in tmp_path.iterdir()] == ["choice.json"]


def test_the_command_prints_and_stores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("THINK_MODEL", "acme/m")
    assert discovery.main(["--write", str(tmp_path / "c.json")]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "acme/m"
    stored = load_choice(tmp_path / "c.json")
    assert stored is not None
    assert stored.name == "acme/m"
