"""Facts that a model's server gives of it: context, longest answer, tools, media, price. Asked once, and remembered.

`GET /models` says most of it, in the words of each kind of server; Ollama says it by `POST /api/show`. A server that
does not answer is asked again after a while, and nothing waits for it longer than `SECONDS`.
"""

import asyncio
import re
import time
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from chat.llm.endpoint import OPENAI_BASE_URL, Endpoint, is_loopback
from chat.llm.model_memory import KEEP_SECONDS, Learned, model_memory
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue

SECONDS: Final = 3.0
AGAIN_SECONDS: Final = 600.0
"""After so long a server that said nothing of a model is asked again."""

SERVERS: Final = ("llamacpp", "vllm")
"""Kinds of servers that name themselves as the owner of their models."""

_CONTEXT_WORDS: Final = (
    "loaded_context_length",
    "max_model_len",
    "context_length",
    "context_window",
    "max_context_length",
    "max_input_tokens",
)
_OUTPUT_WORDS: Final = ("max_completion_tokens", "max_output_tokens", "max_output_length")
_NUM_CTX: Final = re.compile(r"^\s*num_ctx\s+(\d+)", re.MULTILINE)
_OLLAMA_PORT: Final = 11434
_MILLION: Final = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerFacts:
    """The report of a server about one model. Nothing said is 0, `None` or empty.

    `price`: as `THINK_PRICES` has it. `server`: its kind, one of `SERVERS`.
    """

    context_tokens: int = 0
    output_tokens: int = 0
    calls_tools: bool | None = None
    inputs: tuple[str, ...] | None = None
    price: JSONObject = field(default_factory=dict)
    cuts_silently: bool = False
    server: str = ""


def read_context(entry: JSONObject) -> int:
    """The context of a model in a listing: LM Studio, vLLM, OpenRouter, Groq, Mistral and llama.cpp each have a field.

    A context that the model was trained with does not count: its server may have been started with less.
    """
    return _tokens([entry.get(name) for name in _CONTEXT_WORDS] + [_inner(entry, "meta").get("n_ctx")]) or _tokens(
        [
            _inner(entry, "top_provider").get("context_length"),
            _inner(_inner(entry, "capabilities"), "limits").get("max_context_window_tokens"),
        ]
    )


def read_entry(entry: JSONObject) -> ServerFacts:
    """The facts in a model's entry of `GET /models`."""
    top = _inner(entry, "top_provider")
    return ServerFacts(
        context_tokens=read_context(entry),
        output_tokens=_tokens([entry.get(name) for name in _OUTPUT_WORDS] + [top.get("max_completion_tokens")]),
        calls_tools=_calls_tools(entry),
        inputs=_inputs(entry),
        price=_price(_inner(entry, "pricing")),
        server=owner if (owner := entry.get("owned_by")) in SERVERS else "",
    )


def read_show(shown: JSONObject, running: JSONValue, model: str) -> ServerFacts:
    """The facts in Ollama's answers to `POST /api/show` and `GET /api/ps`.

    The context is that of its file (`num_ctx`), else that with which it runs, else the largest that it was trained
    with: with less its server cuts silently, which its counts show.
    """
    match = _NUM_CTX.search(str(shown.get("parameters") or ""))
    info = _inner(shown, "model_info")
    trained = [value for key, value in info.items() if key.endswith(".context_length")]
    abilities = shown.get("capabilities")
    return ServerFacts(
        context_tokens=int(match[1]) if match else _running_context(running, model) or _tokens(trained),
        calls_tools="tools" in abilities if isinstance(abilities, list) else None,
        inputs=("image",) if isinstance(abilities, list) and "vision" in abilities else _none_if(abilities),
        cuts_silently=True,
    )


def _none_if(abilities: JSONValue) -> tuple[str, ...] | None:
    return () if isinstance(abilities, list) else None


def _running_context(running: JSONValue, model: str) -> int:
    models = running.get("models") if isinstance(running, dict) else None
    for entry in models if isinstance(models, list) else []:
        if isinstance(entry, dict) and _is_same(str(entry.get("model") or entry.get("name") or ""), model):
            return _tokens([entry.get("context_length")])
    return 0


def _calls_tools(entry: JSONObject) -> bool | None:
    supported = entry.get("supported_parameters")
    if isinstance(supported, list):
        return "tools" in supported
    abilities = entry.get("capabilities")
    if isinstance(abilities, list):
        return True if {"tools", "tool_use", "function_calling"} & set(map(str, abilities)) else None
    for name in ("function_calling", "tools", "tool_calls"):
        value = _inner(entry, "capabilities").get(name)
        if isinstance(value, bool):
            return value
    return None


def _inputs(entry: JSONObject) -> tuple[str, ...] | None:
    given = _inner(entry, "architecture").get("input_modalities")
    if isinstance(given, list):
        return tuple(name for word, name in (("image", "image"), ("file", "document")) if word in given)
    vision = _inner(entry, "capabilities").get("vision")
    if isinstance(vision, bool):
        return ("image",) if vision else ()
    return None


def _price(pricing: JSONObject) -> JSONObject:
    """Prices for each token as a price for a million; nothing where one of both is missing."""
    names = {"input": "prompt", "output": "completion", "cache_read": "input_cache_read"}
    found: JSONObject = {}
    for ours, theirs in names.items():
        try:
            value = float(pricing.get(theirs) or 0)
        except (TypeError, ValueError):
            return {}
        if theirs in pricing and 0 <= value < 1:
            found[ours] = f"{value * _MILLION:.6g}"
    return found if {"input", "output"} <= found.keys() else {}


def _inner(entry: JSONObject, name: str) -> JSONObject:
    inner = entry.get(name)
    return inner if isinstance(inner, dict) else {}


def _tokens(reported: Iterable[Any]) -> int:
    return next((n for n in reported if isinstance(n, int) and not isinstance(n, bool) and n > 0), 0)


def _is_same(listed: str, model: str) -> bool:
    """Whether a listing means this model: some add a tag or a folder to the name."""
    return listed in (model, f"{model}:latest", f"models/{model}")


_asking: "dict[tuple[str, str], asyncio.Task[Learned]]" = {}


async def inquire(endpoint: Endpoint, model: str) -> Learned:
    """Return the facts and lessons of a model, asked of its server the first time. Never raises."""
    known = await model_memory.recall(endpoint.base_url, model)
    if endpoint.base_url == OPENAI_BASE_URL or time.time() - known.asked_at < KEEP_SECONDS:
        return known
    key = (endpoint.base_url, model)
    task = _asking.get(key)
    if task is None or task.get_loop() is not asyncio.get_running_loop():
        task = _asking[key] = asyncio.create_task(_learn(endpoint, model))
        task.add_done_callback(lambda done: _asking.pop(key, None) if _asking.get(key) is done else None)
    return await asyncio.shield(task)


async def _learn(endpoint: Endpoint, model: str) -> Learned:
    facts = await _ask(endpoint, model)
    now = time.time()
    asked_at = now if facts is not None else now - KEEP_SECONDS + AGAIN_SECONDS
    found = facts or ServerFacts()

    def merged(known: Learned) -> Learned:
        """Add the report; lessons of refusals are truer."""
        contexts = [tokens for tokens in (known.context_tokens, found.context_tokens) if tokens]
        return replace(
            known,
            asked_at=asked_at,
            context_tokens=min(contexts, default=0),
            output_tokens=found.output_tokens or known.output_tokens,
            calls_tools=known.calls_tools if found.calls_tools is None else found.calls_tools,
            inputs=known.inputs if known.inputs is not None else found.inputs,
            price=found.price or known.price,
            cuts_silently=found.cuts_silently or known.cuts_silently,
            server=found.server or known.server,
        )

    return await model_memory.learn(endpoint.base_url, model, merged)


async def _ask(endpoint: Endpoint, model: str) -> ServerFacts | None:
    """The report about a model; `None` when its server does not answer."""
    base_url = endpoint.base_url
    headers = {**endpoint.headers, **({"Authorization": f"Bearer {endpoint.api_key}"} if endpoint.api_key else {})}
    is_here = is_loopback(base_url)
    verify = not (is_here and base_url.startswith("http://"))  # certificates take long to load
    try:
        async with (
            asyncio.timeout(SECONDS),
            httpx2.AsyncClient(trust_env=not is_here, verify=verify, timeout=SECONDS, headers=headers) as client,
        ):
            listing = (await client.get(f"{base_url}/models")).raise_for_status().json()
            entry = _entry(listing, model)
            facts = read_entry(entry)
            if facts.context_tokens or not _may_be_ollama(endpoint, entry):
                return facts
            return await _ask_ollama(client, base_url.removesuffix("/v1"), model) or facts
    except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, ValueError, RecursionError):
        return None


def _entry(listing: JSONValue, model: str) -> JSONObject:
    """The entry of a model. A server that lists one model serves that one, by whatever name it is asked."""
    entries = listing.get("data") if isinstance(listing, dict) else listing
    known = [entry for entry in entries if isinstance(entry, dict)] if isinstance(entries, list) else []
    named = [entry for entry in known if _is_same(str(entry.get("id") or entry.get("name") or ""), model)]
    alone = [entry for entry in known if len(known) == 1 and _inner(entry, "meta")]  # llama.cpp, whatever is asked for
    return next(iter([*named, *alone]), {})


def _may_be_ollama(endpoint: Endpoint, entry: JSONObject) -> bool:
    """Whether a server is worth the question: not one that is known by a name of the public net."""
    place = urlsplit(endpoint.base_url)
    host = place.hostname or ""
    is_named = "." in host and not host.replace(".", "").isdigit()
    is_marked = endpoint.provider == "ollama" or place.port == _OLLAMA_PORT or entry.get("owned_by") == "library"
    return is_marked or not is_named


async def _ask_ollama(client: httpx2.AsyncClient, root: str, model: str) -> ServerFacts | None:
    answer = await client.post(f"{root}/api/show", json={"model": model})
    shown = answer.json() if answer.status_code == 200 else None
    if not isinstance(shown, dict) or not {"model_info", "parameters", "details"} & shown.keys():
        return None
    running = await client.get(f"{root}/api/ps")
    return read_show(shown, running.json() if running.status_code == 200 else None, model)
