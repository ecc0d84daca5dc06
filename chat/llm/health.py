"""Models that failed a moment ago, so that lists of models do not ask them first: a memory of this process alone."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from chat.errors import ModelError, ModelRejected

MAX_NAMES: Final = 256
REST_SECONDS: Final = 30.0
MAX_SECONDS: Final = 600.0
"""The longest rest, also where a provider asks to wait longer."""


class RestingModels:
    """Names of models with the moment until which they rest. Bounded; the oldest are forgotten first."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._until: OrderedDict[str, float] = OrderedDict()
        self._lock = threading.Lock()

    def is_resting(self, name: str) -> bool:
        """Whether a model failed a moment ago and did not answer since."""
        with self._lock:
            until = self._until.get(name)
            if until is not None and until <= self._clock():
                del self._until[name]
                until = None
            return until is not None

    def failed(self, name: str, error: ModelError) -> None:
        """Let a model rest for `REST_SECONDS`, or as its provider asks. A refused request is no reason."""
        if isinstance(error, ModelRejected) and error.data.get("status") not in (402, 404):
            return
        asked = error.data.get("retry_after_seconds")
        seconds = min(MAX_SECONDS, max(REST_SECONDS, asked or 0.0))
        with self._lock:
            self._until[name] = self._clock() + seconds
            self._until.move_to_end(name)
            while len(self._until) > MAX_NAMES:
                self._until.popitem(last=False)

    def answered(self, name: str) -> None:
        """A model that answers does not rest."""
        with self._lock:
            self._until.pop(name, None)

    def clear(self) -> None:
        """Forget all. For tests."""
        with self._lock:
            self._until.clear()


resting_models: Final = RestingModels()
