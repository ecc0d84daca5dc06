"""Receivers of wakes of Durable Streams, for a developer's site.

    async def work(session):
        for each in session.wake.payload["streams"]:
            ...
            await session.checkpoint(Checkpoint(each["path"], offset))
        await session.complete(done=True)

    orders = create_webhook("orders", work, server="https://streams.example.org", jwks_url="https://…/jwks.json")

In the module `durables.py` of an app; `path("hooks/orders", orders.view)` in its URLs. A wake is a fiber, stored before
it is answered: a worker runs it, with the claim, the heartbeats and the end as callbacks to the server.
"""

import asyncio
import hashlib
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.response import HttpResponseBase

from chat.core.durable_names import WEBHOOK_FIBER
from chat.webhooks.adapter import Callbacks, WebhookAdapter
from chat.webhooks.outgoing import ServerLine
from chat.webhooks.verifying import HEADER, SignatureRefused, Verifier
from chat.webhooks.wakes import StreamWake, read_wake, stored_wake
from fibers.context import FiberContext
from fibers.core.cursors import Checkpoint
from fibers.errors import Failed, FiberError, LeaseLost, WakeRejected
from fibers.execution.in_caller import run_attached
from fibers.lifecycle.drain import drain_until_idle
from fibers.lifecycle.session import RunnerSession, Wake, run_with_lifecycle
from fibers.queue.enqueue import FiberSpec
from fibers.services import start_fiber
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue
from thinkproject.kernel.secrets import decrypt, encrypt
from tools_app.fetching.errors import FetchFailed

__all__ = [
    "AckImmediate",
    "Checkpoint",
    "RequestBound",
    "RunnerSession",
    "Webhook",
    "create_webhook",
    "drain_until_idle",
]

CLAIMED: Final = "claimed"
MAX_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class AckImmediate:
    """Answer as soon as the wake is stored, and run it in a worker."""

    status: int = 202


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestBound:
    """Run the wake within its request, for so long; what is left then is woken again."""

    max_seconds: float = 25.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Webhook:
    """A registered receiver. Made by `create_webhook`."""

    name: str
    run: Callable[[RunnerSession], Awaitable[object]]
    line: ServerLine
    verifier: Verifier
    mode: AckImmediate | RequestBound
    heartbeat_seconds: float

    @property
    def view(self) -> Callable[[HttpRequest], Awaitable[HttpResponseBase]]:
        """The async view. It takes POST, checks the signature before anything else, and needs no CSRF token."""

        async def receive(request: HttpRequest) -> HttpResponseBase:
            return await _receive(self, request)

        receive.csrf_exempt = True  # type: ignore[attr-defined]  # what Django reads of a view
        return receive

    def dispose(self) -> None:
        """Run no further wakes in this process. Twice is once."""
        if _webhooks.get(self.name) is self:
            del _webhooks[self.name]


_webhooks: dict[str, Webhook] = {}


def create_webhook(  # noqa: PLR0913 - one keyword for each thing a receiver may declare
    name: str,
    run: Callable[[RunnerSession], Awaitable[object]],
    *,
    server: str,
    secret: str = "",
    jwks_url: str = "",
    mode: AckImmediate | RequestBound = AckImmediate(),
    heartbeat_seconds: float = 10.0,
) -> Webhook:
    """Have `run` work off what a Durable Streams server wakes for.

    **Shape:** `run` gets a session (`fibers.lifecycle`), whose `wake.payload["streams"]` has a `path` and an `offset`
    each. It checkpoints paths and offsets once what lies before them is stored, and ends with
    `complete(done=...)`; without that there is more to do. `server`: the only origin that callbacks go to. `secret` or
    `jwks_url`, an address of the same server, checks signatures.
    **Durability:** a wake is stored before it is answered, and runs once, however often it is delivered. When the
    worker dies another one goes on under the same claim; where the server has given it up meanwhile, it wakes anew.
    **Errors:** `FiberError` for a name that is taken or has a colon, and without a way to check signatures;
    `FetchFailed` for an impossible server.
    """
    if not name.strip() or ":" in name or name in _webhooks:
        raise FiberError(f"{name!r} is taken, or no name of a webhook: it has no colon")
    if bool(secret) == bool(jwks_url):
        raise FiberError(f"the webhook {name!r} needs either a secret or jwks_url, to check signatures")
    line = ServerLine(server)
    if jwks_url:
        line.check(jwks_url)
    hook = Webhook(
        name=name,
        run=run,
        line=line,
        verifier=Verifier(line, secret=secret, jwks_url=jwks_url),
        mode=mode,
        heartbeat_seconds=heartbeat_seconds,
    )
    _webhooks[name] = hook
    return hook


def webhook_names() -> Collection[str]:
    """Names of this process's receivers."""
    return list(_webhooks)


async def _receive(hook: Webhook, request: HttpRequest) -> HttpResponse:
    if request.method != "POST":
        return JsonResponse({"error": {"code": "METHOD_NOT_ALLOWED"}}, status=405, headers={"Allow": "POST"})
    body = request.body
    if len(body) > MAX_BYTES:
        return _refused(413, "INVALID_REQUEST", "the body is too large")
    try:
        await hook.verifier.check(request.headers.get(HEADER, ""), body)
    except SignatureRefused as error:
        return _refused(401, "SIGNATURE_INVALID", str(error))
    try:
        wake = read_wake(body)
        hook.line.check(wake.callback)
    except ValueError as error:
        return _refused(400, "INVALID_REQUEST", str(error))
    except FetchFailed as error:
        return _refused(400, "CALLBACK_REJECTED", error.message)
    if isinstance(hook.mode, RequestBound):
        return await _run_here(hook, hook.mode, wake)
    await db(start_fiber, _function(hook), wake.to_json(), key=_key(hook, wake))
    return JsonResponse({"accepted": True}, status=hook.mode.status)


async def _run_here(hook: Webhook, mode: RequestBound, wake: StreamWake) -> HttpResponse:
    spec = FiberSpec(name=_function(hook), payload=wake.to_json(), key=_key(hook, wake))
    result: Any = None
    try:
        async with asyncio.timeout(mode.max_seconds):
            result = await run_attached(spec, run_wake)
    except TimeoutError:  # it was cancelled, and has handed the wake back
        return JsonResponse({"done": False})
    except Failed as error:
        return _refused(503, "FAILED", error.message)
    except FiberError:  # it runs already: a duplicate
        return JsonResponse({"accepted": True}, status=202)
    if result.get("rejected"):
        return JsonResponse({"accepted": True}, status=202)
    return JsonResponse({"done": bool(result.get("done"))})


async def run_wake(context: FiberContext) -> JSONValue:
    """Run one wake. Shape: `{"done": bool}`, or `{"rejected": true}` for one that another has, and nothing ran."""
    hook = _webhooks.get(context.name.partition(":")[2])
    if hook is None:
        raise Failed("webhook_disposed", "this process has the webhook no more")
    wake = stored_wake(context.payload)

    async def keep(token: str) -> None:
        await context.stash(encrypt(token))

    token = wake.token if context.stashed is None else decrypt(str(context.stashed))
    was_claimed = await context.recorded(CLAIMED) is not None
    adapter = WebhookAdapter(
        Callbacks(hook.line, wake, token, keep),
        wake,
        heartbeat_seconds=hook.heartbeat_seconds,
        was_claimed=was_claimed,
    )

    async def work(session: RunnerSession) -> None:
        if not was_claimed:
            await context.record(CLAIMED, wake.epoch)
        await hook.run(session)

    streams: JSONValue = [{"path": each.path, "offset": each.offset} for each in wake.streams]
    woken = Wake(id=wake.wake_id, runner=f"{hook.name}:{wake.consumer}", payload={"streams": streams})
    try:
        await run_with_lifecycle(woken, adapter, work)
    except WakeRejected:
        return {"rejected": True}
    except LeaseLost as error:  # the server's, which has given the work to another
        raise Failed("wake_lost", error.message, is_final=True) from error
    return {"done": bool(adapter.is_done)}


def _function(hook: Webhook) -> str:
    return f"{WEBHOOK_FIBER}:{hook.name}"


def _key(hook: Webhook, wake: StreamWake) -> str:
    identity = f"{wake.consumer}\n{wake.epoch}\n{wake.wake_id}".encode()
    return f"webhook:{hook.name[:100]}:{hashlib.sha256(identity).hexdigest()}"


def _refused(status: int, code: str, message: str) -> HttpResponse:
    return JsonResponse({"error": {"code": code, "message": message}}, status=status)
