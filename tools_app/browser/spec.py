"""The protocol as the browser itself describes it, without what code may not use, for models to look up."""

import asyncio
import time
from pathlib import Path
from typing import Any, Final
from weakref import WeakKeyDictionary

import aiohttp

from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.browser import starting
from tools_app.browser.errors import BrowserUnavailable
from tools_app.browser.policy import is_allowed

CACHE_SECONDS: Final = 300.0
READ_SECONDS: Final = 20.0
POLL_SECONDS: Final = 0.02
PORT_FILE: Final = "DevToolsActivePort"

_CACHE: dict[str, tuple[float, JSONObject]] = {}
_LOCKS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


async def spec_of(cdp_url: str = "") -> JSONObject:
    """The protocol of the browser at an address, or of one of our own; as it was at most five minutes ago.

    Shape: `{version, domains: [{name, description, commands: [{method, description, parameters, returns}], events:
    [{method, …}], types: [{id, …}]}]}`. Errors: `BrowserUnavailable`.
    """
    key = cdp_url or starting.browser_path()
    lock = _LOCKS.setdefault(asyncio.get_running_loop(), asyncio.Lock())
    async with lock:  # calls that come together start one browser
        known = _CACHE.get(key)
        if known is not None and time.monotonic() - known[0] < CACHE_SECONDS:
            return known[1]
        found = normalised(await (read_protocol(cdp_url) if cdp_url else _own_protocol()))
        _CACHE[key] = (time.monotonic(), found)
        return found


async def read_protocol(http_url: str) -> JSONObject:
    """Read `/json/protocol` of a browser. Errors: `BrowserUnavailable`."""
    try:
        async with (
            asyncio.timeout(READ_SECONDS),
            aiohttp.ClientSession(trust_env=False) as client,
            client.get(f"{http_url.rstrip('/')}/json/protocol") as answer,
        ):
            answer.raise_for_status()
            value = await answer.json(content_type=None)
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise BrowserUnavailable("The browser does not describe its protocol.") from error
    if not isinstance(value, dict):
        raise BrowserUnavailable("The browser does not describe its protocol.")
    return value


async def _own_protocol() -> JSONObject:
    """Ask a browser of our own. It opens no page, has no way to any network, and is ended at once."""
    path = starting.browser_path()
    chrome = await starting.started(path, starting.bare_walls(), flags=("--remote-debugging-port=0",))
    try:
        port = await _port(chrome.profile.folder / PORT_FILE)
        return await read_protocol(f"http://127.0.0.1:{port}")
    finally:
        await chrome.end()


async def _port(file: Path) -> int:
    try:
        return int((await asyncio.to_thread(_written, file)).split()[0])
    except (OSError, ValueError) as error:
        raise BrowserUnavailable("The browser does not describe its protocol.") from error


def _written(file: Path) -> str:
    """The text of a file, as soon as it has any. Errors: `OSError` where it stays empty."""
    for _ in range(int(READ_SECONDS / POLL_SECONDS)):
        if file.is_file() and (text := file.read_text()):
            return text
        time.sleep(POLL_SECONDS)
    raise FileNotFoundError(file)


def normalised(protocol: JSONObject) -> JSONObject:
    """The protocol in one shape, without commands that are refused, and domains that have none left."""
    version = protocol.get("version", {})
    domains = []
    for domain in protocol.get("domains", []):
        name = str(domain.get("domain", ""))
        commands = [_named(name, each) for each in domain.get("commands", []) if is_allowed(f"{name}.{each['name']}")]
        if commands:
            domains.append(
                {
                    "name": name,
                    "description": domain.get("description", ""),
                    "commands": commands,
                    "events": [_named(name, each) for each in domain.get("events", [])],
                    "types": domain.get("types", []),
                }
            )
    return {"version": f"{version.get('major', '')}.{version.get('minor', '')}", "domains": domains}


def _named(domain: str, item: dict[str, Any]) -> JSONObject:
    kept = {name: value for name, value in item.items() if name not in {"name", "redirect"}}
    return {"method": f"{domain}.{item['name']}", **kept}
