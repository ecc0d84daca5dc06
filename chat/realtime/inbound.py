"""Limits of inbound frames: how many a second, bytes a minute, bytes each. Large frames are decoded off the loop.

Decoding 16 MB takes from a tenth of a second to several seconds, in which no other client would be served. So a large
frame is looked at before it is decoded (only chat requests may be large), and decoded in a thread, in pieces, one frame
of the process at a time; users take turns.
"""

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, Generic, TypeVar

from chat.core import envelope
from chat.core.wire import frames, sdk_frames
from chat.errors import BUSY, FrameInvalid
from chat.realtime.conf import realtime_settings
from thinkproject.kernel.json_pieces import load_in_pieces

FLOOD: Final = 4429
TOO_LARGE: Final = 1009

MAX_FRAMES_PER_SECOND: Final = 100
MAX_OTHER_FRAME_BYTES: Final = 2 * 1024 * 1024
"""Frames that are no chat requests. A larger one closes the socket."""

INLINE_CHARS: Final = 65_536
"""Frames up to this size are decoded on the loop: a thread would cost more."""
MAX_VALUES: Final = 100_000
"""JSON values in a frame that is decoded in a thread. A window of 512 KiB has a tenth of it."""
PAUSE_SECONDS: Final = 0.0005
MAX_WAITING_CHARS: Final = 128 * 1024 * 1024


F = TypeVar("F")


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect(Generic[F]):
    """The frames of a kind of socket. `large`: those that may be large, by class and by a look at their text.

    `skim`: reads a large frame that need not be decoded.
    """

    parse: Callable[..., F]
    large: tuple[type, ...]
    may_be_large: Callable[[str], bool]
    skim: Callable[[str], F | None] = lambda _text: None


AGENTS: Final = Dialect(
    parse=frames.parse,
    large=(frames.ChatRequest, frames.PushMessages),
    may_be_large=lambda text: envelope.is_chat_request(text) or envelope.is_message_list(text),
    # Published clients send theirs after each `setMessages`.
    skim=lambda text: frames.PushMessages() if envelope.is_message_list(text) else None,
)
SDK: Final = Dialect(parse=sdk_frames.parse, large=(sdk_frames.Send,), may_be_large=envelope.is_send)


@dataclass(frozen=True, slots=True)
class FrameRefusal:
    """Why a connection is closed."""

    code: int
    reason: str


class ByteBudgets:
    """Bytes that each user may send a minute, over all connections of this process. Idle users are forgotten."""

    def __init__(self) -> None:
        self._spent: dict[int, tuple[float, float]] = {}  # by user: bytes not yet forgiven, at which time
        self._forgot_at = 0.0

    def spend(self, user_id: int, size: int, *, per_minute: int, now: float) -> bool:
        """Count a frame. False: the user has sent more than a minute's share, which is forgiven evenly over time."""
        spent, since = self._spent.get(user_id, (0.0, now))
        spent = max(0.0, spent - (now - since) * per_minute / 60) + size
        self._spent[user_id] = (spent, now)
        if now - self._forgot_at > 60:
            self._forgot_at = now
            self._spent = {user: entry for user, entry in self._spent.items() if now - entry[1] < 60}
        return spent <= per_minute


class DecodingQueue:
    """One large frame at a time. Users take turns, however many connections one of them has."""

    def __init__(self) -> None:
        self._waiting: dict[int, deque[asyncio.Future[None]]] = {}  # the next user first
        self._is_busy = False
        self._chars = 0
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="think-frames")

    async def decode(self, user_id: int, text: str, parse: Callable[..., F]) -> F:
        """Decode a frame when its turn comes. Errors: `FrameInvalid`, also where too much waits already."""
        if self._chars + len(text) > MAX_WAITING_CHARS:
            raise FrameInvalid(BUSY)
        self._chars += len(text)
        try:
            async with self._turn(user_id):
                return await asyncio.get_running_loop().run_in_executor(self._executor, decode_large, text, parse)
        finally:
            self._chars -= len(text)

    @asynccontextmanager
    async def _turn(self, user_id: int) -> AsyncIterator[None]:
        if self._is_busy:
            mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(user_id, deque()).append(mine)
            try:
                await mine
            except asyncio.CancelledError:
                if mine.cancelled():
                    self._leave(user_id, mine)
                else:
                    self._pass_on()  # its turn had just come
                raise
        self._is_busy = True
        try:
            yield
        finally:
            self._pass_on()

    def _pass_on(self) -> None:
        """Give the turn to the next user who waits; that user's other frames wait behind everybody's."""
        while self._waiting:
            user_id = next(iter(self._waiting))
            frames_of_user = self._waiting.pop(user_id)
            frame = frames_of_user.popleft()
            if frames_of_user:
                self._waiting[user_id] = frames_of_user
            if not frame.done():  # else its connection has gone, and its task has not run since
                frame.set_result(None)
                return
        self._is_busy = False

    def _leave(self, user_id: int, frame: asyncio.Future[None]) -> None:
        """A connection that waited has gone."""
        frames_of_user = self._waiting.get(user_id, deque())
        if frame in frames_of_user:
            frames_of_user.remove(frame)
            if not frames_of_user:
                del self._waiting[user_id]


def decode_large(text: str, parse: Callable[..., F]) -> F:
    """Decode a frame in small pieces; for a thread. Errors: `FrameInvalid`."""
    pause = partial(time.sleep, PAUSE_SECONDS)
    return parse(text, decode=partial(load_in_pieces, max_values=MAX_VALUES, pause=pause))


_budgets = ByteBudgets()
_decoding = DecodingQueue()


class Inbound:
    """The frames that one connection receives."""

    def __init__(self, user_id: int, dialect: Dialect[Any]) -> None:
        self._user_id = user_id
        self._dialect = dialect
        self._second, self._count = 0.0, 0

    def refusal(self, text: str) -> FrameRefusal | None:
        """Count a frame; returns the reason to close the connection, if any."""
        now, size = time.monotonic(), envelope.byte_length(text)
        per_minute = realtime_settings.frame_bytes_per_minute
        if self._is_flood(now):
            return FrameRefusal(FLOOD, "Too many frames a second.")
        if per_minute and not _budgets.spend(self._user_id, size, per_minute=per_minute, now=now):
            return FrameRefusal(FLOOD, f"More than {per_minute} bytes a minute.")
        if size > realtime_settings.max_frame_bytes:
            return FrameRefusal(TOO_LARGE, f"A frame may have {realtime_settings.max_frame_bytes} bytes.")
        if len(text) > MAX_OTHER_FRAME_BYTES and not self._dialect.may_be_large(text):
            return _only_chat_requests()
        return None

    async def parse(self, text: str) -> Any:
        """Read a frame of the dialect that is not refused. Errors: `FrameInvalid`."""
        if len(text) <= INLINE_CHARS:
            return self._dialect.parse(text)
        skimmed = self._dialect.skim(text)
        if skimmed is not None:
            return skimmed
        try:
            return await _decoding.decode(self._user_id, text, self._dialect.parse)
        except FrameInvalid as error:
            known = error.request_id or envelope.request_id(text)
            if known is None or not self._dialect.may_be_large(text):
                raise
            raise FrameInvalid(error.phrase, request_id=known) from error

    def refusal_of_kind(self, text: str, frame: object) -> FrameRefusal | None:
        """The reason to close the connection after a large frame that is no chat request after all."""
        is_small = len(text) <= MAX_OTHER_FRAME_BYTES
        return None if is_small or isinstance(frame, self._dialect.large) else _only_chat_requests()

    def _is_flood(self, now: float) -> bool:
        if now - self._second >= 1:
            self._second, self._count = now, 0
        self._count += 1
        return self._count > MAX_FRAMES_PER_SECOND


def _only_chat_requests() -> FrameRefusal:
    return FrameRefusal(TOO_LARGE, f"Only chat requests may have more than {MAX_OTHER_FRAME_BYTES} bytes.")
