"""All turns known to a client: its own, those of others, and those that have ended."""

from collections import OrderedDict
from collections.abc import Iterable

from chat.client.bounded_queue import Backpressure, BoundedQueue
from chat.client.turn import Turn

REMEMBERED = 1000
"""How many ended turns are remembered, so that a late frame of one of them begins nothing."""


class TurnRegistry:
    """`running`: turns by request. Turns of others are announced to watchers, once it is sure that they are others'."""

    def __init__(self, backpressure: Backpressure) -> None:
        self.running: dict[str, Turn] = {}
        self.holds = 0
        self._backpressure = backpressure
        self._ended: OrderedDict[str, None] = OrderedDict()
        self._unannounced: list[Turn] = []
        self._watchers: list[BoundedQueue[Turn]] = []

    def begin(self, request_id: str) -> Turn:
        """Note a request of this client's."""
        turn = self.running[request_id] = Turn(request_id, self._backpressure, is_own=True)
        return turn

    def observe(self, request_id: str) -> Turn:
        """Note a turn that this client did not ask for, as far as is known."""
        turn = self.running[request_id] = Turn(request_id, self._backpressure, is_own=False)
        turn.is_accepted = True
        if self._watchers:
            turn.keep_for_reader()
        self._unannounced.append(turn)
        return turn

    def claim(self, request_id: str) -> Turn:
        """This turn goes on from something that this client did: it is its own."""
        seen = (turn for turn in self._unannounced if turn.request_id == request_id)
        turn = self.running.get(request_id) or next(seen, None) or self.begin(request_id)
        turn.is_own = turn.is_accepted = True
        turn.need_not_be_read()
        self._unannounced = [other for other in self._unannounced if other is not turn]
        return turn

    def drop(self, turn: Turn) -> None:
        """Forget a request that was not taken."""
        self.running.pop(turn.request_id, None)

    def end(self, turn: Turn) -> None:
        """The turn has ended: whatever follows of it is late."""
        self.drop(turn)
        self._ended[turn.request_id] = None
        if len(self._ended) > REMEMBERED:
            self._ended.popitem(last=False)

    def has_ended(self, request_id: str) -> bool:
        """Whether this client knows that a turn has ended."""
        return request_id in self._ended

    def lose(self, error: Exception) -> None:
        """Fail the running turns: their ends cannot be received any more."""
        for turn in list(self.running.values()):
            turn.lose(error)
        for watcher in self._watchers:
            watcher.end(error)

    def watch(self) -> BoundedQueue[Turn]:
        """Begin to collect the turns of others."""
        watcher: BoundedQueue[Turn] = BoundedQueue(self._backpressure)
        self._watchers.append(watcher)
        return watcher

    def unwatch(self, watcher: BoundedQueue[Turn]) -> None:
        """Stop collecting."""
        self._watchers.remove(watcher)

    def observed_since(self, known: Iterable[str]) -> Turn | None:
        """The first turn, running or ended, that was not announced yet and was not known."""
        return next((turn for turn in self._unannounced if turn.request_id not in set(known)), None)

    def announce(self) -> None:
        """Announce turns of other clients to the watchers, unless their origin is still being determined."""
        if self.holds:
            return
        for turn in self._unannounced:
            for watcher in self._watchers:
                watcher.put(turn)
        self._unannounced.clear()
