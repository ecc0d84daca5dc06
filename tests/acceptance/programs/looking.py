"""Looks into an installation, called by a `Hand`."""

import time

from chat.models import Turn
from chat.turns.state.status import FINAL, turn_status


def status_of(name: str) -> str:
    """The status of the newest turn of a conversation of this name, once it has ended."""
    deadline = time.monotonic() + 60
    while True:
        turn = Turn.objects.select_related("fiber").filter(instance__name=name).order_by("-position").first()
        status = None if turn is None else turn_status(turn.fiber.status, turn.fiber.reason)
        if status in FINAL or time.monotonic() > deadline:
            return "" if status is None else status.value
        time.sleep(0.05)
