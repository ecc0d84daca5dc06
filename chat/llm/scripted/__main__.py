"""`python -m chat.llm.scripted --port 0 --log FILE`: the scripted provider as a process.

Its first line on standard output is JSON with `base_url`. It ends on SIGTERM or SIGINT.
"""

import argparse
import asyncio
import contextlib
import json
import signal
import sys
from pathlib import Path

from chat.llm.scripted.plan import Defaults
from chat.llm.scripted.server import ServerOptions, start_server


def main() -> int:
    """Run until a signal."""
    parser = argparse.ArgumentParser(prog="python -m chat.llm.scripted", description=__doc__)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path)
    parser.add_argument("--no-bodies", action="store_true", help="keep request bodies out of the log")
    parser.add_argument("--rate", type=float, default=0.0, help="chunks per second; 0: as fast as possible")
    parser.add_argument("--tokens", type=int, default=0, help="words of the default answer")
    parser.add_argument("--model", action="append", help="name listed by /v1/models; may be repeated")
    parser.add_argument("--reject", action="append", default=[], help="refuse bodies with this key")
    parser.add_argument("--api-key", default="")
    parser.add_argument("--recordings", type=Path, default=Path(), help="folder of recorded answers, for `play`")
    parser.add_argument(
        "--script", action="append", default=[], metavar="MATCH=FILE", help="script for matching messages"
    )
    options = parser.parse_args()
    asyncio.run(_serve(options))
    return 0


async def _serve(arguments: argparse.Namespace) -> None:
    options = ServerOptions(
        defaults=Defaults(tokens=arguments.tokens, rate=arguments.rate),
        models=tuple(arguments.model or ["scripted"]),
        rejects=tuple(arguments.reject),
        api_key=arguments.api_key,
        log_bodies=not arguments.no_bodies,
        recordings=arguments.recordings,
    )
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    server, provider, port = await start_server(
        options, host=arguments.host, port=arguments.port, log_path=arguments.log
    )
    for entry in arguments.script:
        match, _, file = entry.partition("=")
        provider.scripts.append((match, Path(file).read_text(encoding="utf-8")))  # noqa: ASYNC240 - before anybody is served
    sys.stdout.write(json.dumps({"base_url": f"http://{arguments.host}:{port}/v1", "port": port}) + "\n")
    sys.stdout.flush()
    with contextlib.suppress(asyncio.CancelledError):
        await stop.wait()
    server.close()
    await provider.close()


if __name__ == "__main__":
    raise SystemExit(main())
