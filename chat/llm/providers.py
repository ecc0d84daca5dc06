"""Providers known by name, and the rules that turn a name and settings into an endpoint. Pure.

Adding one that speaks Chat Completions needs no code: `THINK_PROVIDERS` names it (docs/howto/add-a-provider.md).
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from chat.errors import ModelNotConfigured
from chat.llm.endpoint import OPENAI_BASE_URL, Endpoint
from thinkproject.kernel.jsonvalue import JSONObject

DEFAULT_OPENAI_MODEL: Final = "gpt-5-mini"
LOCAL_MODEL_NAME: Final = "local/smollm2-135m"

# Servers that people run on their own machine, at their default ports.
LOOPBACK: Final = {
    "ollama": "http://127.0.0.1:11434/v1",
    "lmstudio": "http://127.0.0.1:1234/v1",
    "llamacpp": "http://127.0.0.1:8080/v1",
    "vllm": "http://127.0.0.1:8000/v1",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """Endpoints of OpenAI and compatible servers from the settings. `local_base_url`: of the small local model."""

    openai_api_key: str = ""
    openai_base_url: str = ""
    local_base_url: str = ""
    discovered_base_url: str = ""
    discovered_provider: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A model's endpoint and its wire format."""

    endpoint: Endpoint
    uses_responses: bool = False


def split_name(name: str) -> tuple[str, str]:
    """`provider/model` split at the first slash. Errors: `ModelNotConfigured` when a half is missing."""
    provider, slash, model = name.strip().partition("/")
    if not (provider and slash and model):
        raise ModelNotConfigured(
            f"A model is named provider/model, for example openai/{DEFAULT_OPENAI_MODEL}; not {name!r}."
        )
    return provider, model


def route(provider: str, credentials: Credentials, custom: Mapping[str, JSONObject], *, own_key: str = "") -> Route:
    """Find a provider's endpoint. `own_key`: of a person's, instead of the site's.

    Errors: `ModelNotConfigured`, naming the missing setting.
    """
    entry = custom.get(provider)
    if own_key:
        credentials = replace(credentials, openai_api_key=own_key)
        entry = None if entry is None else {**entry, "api_key": own_key}
    if entry is not None and not (provider == "openai" and "base_url" not in entry):  # else it only says who has keys
        return _custom(provider, entry)
    if provider == "openai":
        return _openai(credentials)
    if provider == "local":
        return _local(credentials)
    if provider in LOOPBACK:
        found = credentials.discovered_base_url if credentials.discovered_provider == provider else ""
        return Route(endpoint=Endpoint(provider=provider, base_url=found or LOOPBACK[provider]))
    known = ", ".join(sorted({"openai", "local", *LOOPBACK, *custom}))
    raise ModelNotConfigured(
        f"There is no provider named {provider!r}; known are {known}. For a server that speaks Chat Completions, set "
        f"THINK_PROVIDERS = {{{provider!r}: {{'base_url': ..., 'api_key': ...}}}}, or OPENAI_BASE_URL and openai/MODEL."
    )


def _openai(credentials: Credentials) -> Route:
    if credentials.openai_base_url:
        endpoint = Endpoint(
            provider="openai", base_url=credentials.openai_base_url.rstrip("/"), api_key=credentials.openai_api_key
        )
        return Route(endpoint=endpoint)
    if not credentials.openai_api_key:
        raise ModelNotConfigured(
            "OpenAI needs a key: set OPENAI_API_KEY, or OPENAI_BASE_URL for another server that speaks its protocol."
        )
    endpoint = Endpoint(
        provider="openai",
        base_url=OPENAI_BASE_URL,
        api_key=credentials.openai_api_key,
        max_tokens_field="max_completion_tokens",
    )
    return Route(endpoint=endpoint, uses_responses=True)


def _local(credentials: Credentials) -> Route:
    if not credentials.local_base_url:
        raise ModelNotConfigured(
            "The small local model is not running here: `make run` starts it when it is installed. Or set THINK_MODEL."
        )
    endpoint = Endpoint(
        provider="local", base_url=credentials.local_base_url, can_call_tools=False, accepts_images=False
    )
    return Route(endpoint=endpoint)


def _custom(provider: str, entry: JSONObject) -> Route:
    base_url = str(entry.get("base_url") or "").rstrip("/")
    if not base_url.startswith(("http://", "https://")):
        raise ModelNotConfigured(
            f"THINK_PROVIDERS[{provider!r}] needs a base_url that starts with http:// or https://."
        )
    api = entry.get("api", "chat")
    if api not in ("chat", "responses"):
        raise ModelNotConfigured(f"THINK_PROVIDERS[{provider!r}]: api is 'chat' or 'responses', not {api!r}.")
    endpoint = Endpoint(
        provider=provider,
        base_url=base_url,
        api_key=str(entry.get("api_key") or ""),
        can_call_tools=_declared(entry, "can_call_tools"),
        calls_in_text=bool(entry.get("calls_in_text", True)),
        accepts_images=_declared(entry, "accepts_images"),
        accepts_documents=_declared(entry, "accepts_documents"),
        max_tokens_field=str(entry.get("max_tokens_field", "max_tokens")),
        headers={str(key): str(value) for key, value in dict(entry.get("headers") or {}).items()},
    )
    return Route(endpoint=endpoint, uses_responses=api == "responses")


def _declared(entry: JSONObject, name: str) -> bool | None:
    value = entry.get(name)
    return None if value is None else bool(value)
