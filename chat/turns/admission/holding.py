"""Holds what an admission or a stop changes: fibers first, their instance second, as runners lock them."""

import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from django.db import transaction

from chat.agent.base import InstanceKey
from chat.errors import TurnConflict
from chat.instances.rows import LockedInstance, ensure_instance, lock_instance, lock_root
from chat.models import AgentInstance
from chat.turns.state.active import active_turns
from chat.turns.state.compaction_queue import active_compactions
from fibers.services import hold_fiber
from thinkproject.kernel.retry import RetryPolicy

RETRY: Final = RetryPolicy(first_seconds=0.005, max_seconds=0.5)


@contextmanager
def holding(
    key: InstanceKey, fibers: Callable[[AgentInstance], list[str]], *, tries: int, message_id: str = ""
) -> Iterator[LockedInstance]:
    """Open a transaction in which these fibers and the instance are locked.

    They are locked in the runners' order, fibers first and the instance second; a turn that is admitted between the two
    makes it start over. Errors: `TurnConflict` when that happens again and again.
    """
    for attempt in range(tries):
        if attempt:
            _back_off(attempt)
        with transaction.atomic():
            found = lock_root(key, message_id) if fibers is no_fibers else None
            if found is not None:
                yield found
                return
            instance = ensure_instance(key)
            held = {fiber_id for fiber_id in fibers(instance) if hold_fiber(fiber_id)}
            instance = lock_instance(instance)
            if not set(fibers(instance)) <= held:
                transaction.set_rollback(True)
                continue
            yield LockedInstance(row=instance)
            return
    raise TurnConflict("Messages keep arriving in this conversation; try again in a moment.")


def _back_off(attempt: int) -> None:
    """Sleep before the next try, longer and longer and never as long as another one: two must not stay in step."""
    time.sleep(RETRY.delay_seconds(attempt, jitter=random.random()))  # noqa: S311 - no secret


def no_fibers(_instance: AgentInstance) -> list[str]:
    """Lock the instance alone."""
    return []


def live_fibers(instance: AgentInstance) -> list[str]:
    """Ids of the turns and compactions that wait or run."""
    turns = active_turns(instance.pk).order_by("fiber_id").values_list("fiber_id", flat=True)
    return sorted([*turns, *active_compactions(instance.pk)])
