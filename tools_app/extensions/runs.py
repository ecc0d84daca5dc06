"""Runs of extensions in the sandbox: one process for each, which lives as long as the call.

Nothing is left of a run but what the extension has stored through its host. One that hangs, floods or dies ends its
own run; the limits are those of all code (`THINK_SANDBOX`).
"""

import asyncio
import functools
from collections.abc import Sequence
from typing import Final

from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue
from thinkproject.kernel.phrases import Phrase
from tools_app.code_tool.tool import default_limits, shared_sandbox
from tools_app.core.extensions.manifest import Manifest
from tools_app.core.extensions.permissions import has_host
from tools_app.core.extensions.surface import Surface, read_surface
from tools_app.errors import ExtensionInvalid, SandboxUnavailable, ToolError
from tools_app.extensions.bridge import HostBridge
from tools_app.extensions.guest import DESCRIBE, Task, execute_task, hook_task, script_for
from tools_app.extensions.loaded import standing_of
from tools_app.extensions.records import trim_calls
from tools_app.sandbox.contract import Answer, CallHandler, RunResult, SandboxOutcome
from tools_app.sandbox.deno import DenoSandbox

DESCRIBE_SECONDS: Final = 15.0
HOOK_SECONDS: Final = 5.0


async def describe(source: str, manifest: Manifest, *, share: str = "") -> Surface:
    """Run a source for its tools and hooks. It cannot call anything meanwhile.

    Errors: `ExtensionInvalid` with the reason; `SandboxUnavailable`.
    """
    try:
        async with asyncio.timeout(DESCRIBE_SECONDS):
            script = script_for(source, DESCRIBE)
            result = await _describing_sandbox().run(script, calls=_nobody, limits=default_limits(), share=share)
    except TimeoutError:
        raise ExtensionInvalid("The source took too long to load.") from None
    if result.outcome is not SandboxOutcome.OK:
        error = result.error
        text = "" if error is None else f"{error.name}: {error.message}"
        raise ExtensionInvalid(Phrase("The source cannot be loaded: {error}", error=text[:2_000]))
    return read_surface(result.value, manifest)


async def run_tool(bridge: HostBridge, name: str, given: JSONObject) -> JSONValue:
    """Run a tool, by its own name. Errors: `ToolError` with the words for the model; `ExtensionUnloaded`.

    An extension that is unloaded or disabled while it runs has no result.
    """
    standing = await db(functools.partial(standing_of, bridge.extension, with_source=True))
    task = execute_task(name, given, has_host=has_host(standing.granted, standing.manifest))
    try:
        result = await _run(standing.source, task, bridge.answer, share=_share(bridge))
    finally:
        await db(trim_calls, bridge.place.scope)
    await db(standing_of, bridge.extension)
    if result.outcome is not SandboxOutcome.OK:
        raise ToolError(_failure(result))
    return result.value


async def run_hook(bridge: HostBridge, name: str, events: Sequence[JSONObject]) -> JSONValue:
    """Call a hook once for each event. Errors: `TimeoutError` after five seconds, `ToolError` with the reason."""
    standing = await db(functools.partial(standing_of, bridge.extension, with_source=True))
    task = hook_task(name, events, has_host=has_host(standing.granted, standing.manifest))
    try:
        result = await _run(standing.source, task, bridge.answer, share=_share(bridge), seconds=HOOK_SECONDS)
    finally:
        await db(trim_calls, bridge.place.scope)
    if result.outcome is not SandboxOutcome.OK:
        raise ToolError(_failure(result))
    return result.value


@functools.cache
def _describing_sandbox() -> DenoSandbox:
    """The sandbox for sources that are being loaded: rarely used, in web processes as well, so nothing is kept warm."""
    return DenoSandbox(spare=False)


async def _run(source: str, task: Task, calls: CallHandler, *, share: str, seconds: float | None = None) -> RunResult:
    async with asyncio.timeout(seconds):
        return await shared_sandbox().run(script_for(source, task), calls=calls, limits=default_limits(), share=share)


async def _nobody(_name: str, _args: list[JSONValue]) -> Answer:
    raise SandboxUnavailable("An extension cannot call its host while it is being loaded.")


def _share(bridge: HostBridge) -> str:
    return "" if bridge.place.owner_id is None else str(bridge.place.owner_id)


def _failure(result: RunResult) -> str:
    error = result.error
    if error is None:
        return "The extension failed."
    return f"{error.name}: {error.message}"[:4_000] if error.name != "Error" else error.message[:4_000]
