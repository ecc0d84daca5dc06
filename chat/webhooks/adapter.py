"""The lifecycle of a runner that a webhook of Durable Streams has woken: its steps are callbacks to the server.

The first callback claims the wake. The server may give another token with each answer, and takes no old one: callbacks
go one after the other, and each token is kept before the next is sent. Positions are acknowledged together, once a
second at most, with a heartbeat, or with the end; never backwards, and after what they stand for was stored.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Final

from typing_extensions import override

from chat.webhooks.outgoing import ServerLine
from chat.webhooks.wakes import StreamWake
from fibers.core.cursors import Checkpoint, is_later
from fibers.errors import FiberStopped, LeaseLost, WakeRejected
from fibers.lifecycle.session import FenceToken, RunnerLifecycleAdapter, Wake
from thinkproject.kernel.jsonvalue import JSONObject, load
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.values import Answered

logger = logging.getLogger(__name__)

ACK_SECONDS: Final = 1.0
SILENT_SECONDS: Final = 45.0
"""A server that has answered no heartbeat for so long has given the work to another."""
TRIES: Final = 3
PAUSE_SECONDS: Final = 0.2
GONE: Final = (404, 410)

KeepToken = Callable[[str], Awaitable[None]]


class CallbackRefused(Exception):
    """The server refused a callback. `status` and `code` as it said them."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code


class Callbacks:
    """The callbacks of one wake, one after the other, each with the newest token. `keep` stores a token durably."""

    def __init__(self, line: ServerLine, wake: StreamWake, token: str, keep: KeepToken) -> None:
        self._line = line
        self._wake = wake
        self._token = token
        self._keep = keep
        self._lock = asyncio.Lock()

    async def post(self, body: JSONObject) -> JSONObject:
        """Post a callback and give the answer. An expired token is replaced once, a server that fails is asked again.

        It ends by itself when its caller is cancelled: the token that the answer brings is the only one that the server
        takes from then on, and the next callback waits for it.
        Errors: `CallbackRefused`; `FetchFailed` where it does not answer.
        """
        posting = asyncio.create_task(self._post(body))
        posting.add_done_callback(lambda done: done.cancelled() or done.exception())  # its caller may be gone
        return await asyncio.shield(posting)

    async def _post(self, body: JSONObject) -> JSONObject:
        number = "epoch" if self._wake.is_draft else "generation"
        body = {number: self._wake.epoch, **({} if self._wake.is_draft else {"wake_id": self._wake.wake_id}), **body}
        async with self._lock:
            for attempt in range(TRIES):
                is_last = attempt == TRIES - 1
                try:
                    answer = await self._line.post(self._wake.callback, body, self._token)
                except FetchFailed as error:
                    if is_last or error.reason.startswith("disallowed"):
                        raise
                else:
                    value = _object(answer)
                    was_renewed = await self._take_token(value)
                    if 200 <= answer.status < 300:
                        return value
                    if answer.status < 500 and not (answer.status == 401 and was_renewed and not is_last):
                        raise CallbackRefused(answer.status, _code(value))
                    if is_last:
                        raise FetchFailed("non_2xx", f"The server answered {answer.status}.", status=answer.status)
                    if was_renewed:
                        continue
                await asyncio.sleep(PAUSE_SECONDS * 2.0**attempt)
        raise AssertionError("the last try returns or raises")

    async def _take_token(self, value: JSONObject) -> bool:
        token = value.get("token")
        if not isinstance(token, str) or not token or token == self._token:
            return False
        self._token = token
        await self._keep(token)
        return True


class WebhookAdapter(RunnerLifecycleAdapter):
    """One wake of a server of durable streams. `was_claimed`: by a former process with the same callbacks."""

    def __init__(
        self, callbacks: Callbacks, wake: StreamWake, *, heartbeat_seconds: float = 10.0, was_claimed: bool = False
    ) -> None:
        self.heartbeat_seconds = heartbeat_seconds
        self.is_done: bool | None = None  # what was said at the end
        self._callbacks = callbacks
        self._wake = wake
        self._was_claimed = was_claimed
        self._acked = {each.path: each.offset for each in wake.streams}
        self._unsent: dict[str, str] = {}
        self._sent_at = self._answered_at = time.monotonic()
        self._timer: asyncio.Task[None] | None = None

    @override
    async def claim_wake(self, wake: Wake, *, signal: asyncio.Event) -> FenceToken:
        """Claim by the first callback. Errors: `WakeRejected` for what is claimed, stale or over; `FetchFailed`."""
        claims = self._wake.is_draft and not self._was_claimed
        try:
            await self._callbacks.post({"wake_id": self._wake.wake_id} if claims else {})
        except CallbackRefused as error:
            raise WakeRejected(f"the server refused the claim: {error}") from error
        self._answered_at = time.monotonic()
        return self._wake.epoch

    @override
    async def heartbeat(self, wake: Wake, fence: FenceToken) -> None:
        """Post what is to be acknowledged, or nothing. A server that does not answer is given 45 s."""
        try:
            await self._send({})
        except FetchFailed as error:
            logger.warning("webhook heartbeat failed", extra={"action": "webhook_heartbeat", "error": error.message})
            if time.monotonic() - self._answered_at > SILENT_SECONDS:
                raise LeaseLost from error

    @override
    async def checkpoint(self, wake: Wake, fence: FenceToken, checkpoints: Sequence[Checkpoint]) -> None:
        """Acknowledge, at once or within a second, all or none of them."""
        later = [each for each in checkpoints if is_later(each.cursor, self._acked.get(each.source))]
        for each in later:
            self._acked[each.source] = self._unsent[each.source] = each.cursor
        if time.monotonic() - self._sent_at >= ACK_SECONDS:
            await self._send({})
        elif self._unsent and (self._timer is None or self._timer.done()):
            self._timer = asyncio.create_task(self._send_soon())

    @override
    async def complete(self, wake: Wake, fence: FenceToken, *, done: bool) -> None:
        """End the wake. `done`: all that it listed counts as processed, where the server says how far that is."""
        self._stop_timer()
        if done:
            for each in self._wake.streams:
                if each.tail is not None and self._acked[each.path] < each.tail:
                    self._acked[each.path] = self._unsent[each.path] = each.tail
        # In the protocol the end says only that: what is not acknowledged is the next wake.
        await self._send({"done": done or not self._wake.is_draft})
        self.is_done = done

    @override
    async def fail(self, wake: Wake, fence: FenceToken, error: BaseException) -> None:
        """Say nothing more: the server wakes again when nothing has come for its time."""
        self._stop_timer()

    async def _send(self, body: JSONObject) -> None:
        acks, self._unsent = self._unsent, {}
        name = "path" if self._wake.is_draft else "stream"
        listed: JSONObject = {"acks": [{name: path, "offset": offset} for path, offset in acks.items()]} if acks else {}
        try:
            await self._callbacks.post({**listed, **body})
        except CallbackRefused as error:
            raise (FiberStopped if error.status in GONE else LeaseLost)(f"the server refused: {error}") from error
        except FetchFailed:
            self._unsent = {**acks, **self._unsent}
            raise
        self._sent_at = self._answered_at = time.monotonic()

    async def _send_soon(self) -> None:
        """Acknowledge what has come within a second. What fails is found by the next heartbeat."""
        await asyncio.sleep(ACK_SECONDS)
        try:
            await self._send({})
        except (FetchFailed, FiberStopped, LeaseLost) as error:
            logger.warning("webhook ack failed", extra={"action": "webhook_ack", "error": error.message})

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()


def _object(answer: Answered) -> JSONObject:
    try:
        value: Any = load(answer.body)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _code(value: JSONObject) -> str:
    error = value.get("error")
    found = error.get("code") if isinstance(error, dict) else error or value.get("code")
    return str(found or "")[:100]
