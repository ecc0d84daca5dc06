"""Prefixed, time-ordered ids: `msg_0mhxk3v2q1f0h6w3...`.

Ids sort by the millisecond they were made in; inside one process they are strictly increasing. They are names, never
credentials.
"""

import secrets
import threading
import time

_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_RANDOM_BITS = 70
_lock = threading.Lock()
_last = [0, 0]


def new_id(prefix: str) -> str:
    """Make an id like `trn_01k9…`: prefix, underscore, 10 characters of time, 14 of randomness. Thread-safe."""
    with _lock:
        now = time.time_ns() // 1_000_000
        if now <= _last[0]:
            now = _last[0]
            noise = (_last[1] + 1) % (1 << _RANDOM_BITS)
        else:
            noise = secrets.randbits(_RANDOM_BITS)
        _last[:] = [now, noise]
    return f"{prefix}_{_encode(now, 10)}{_encode(noise, 14)}"


def _encode(value: int, length: int) -> str:
    digits = []
    for _ in range(length):
        value, index = divmod(value, 32)
        digits.append(_ALPHABET[index])
    return "".join(reversed(digits))
