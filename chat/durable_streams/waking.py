"""Links between streams and subscriptions, and the wakes that an append starts.

A wake is a fiber with a key of its subscription's generation: started in the transaction of the append, once. Order of
locks: stream, then subscription.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from functools import lru_cache
from typing import Final

from django.db.models import Exists, F, OuterRef, QuerySet
from django.utils import timezone

from chat.core.durable_names import STREAM_LEASE_FIBER, STREAM_WAKE_FIBER
from chat.instances.notifications import notify_on_commit, stream_group
from chat.models import DurableStream, StreamSubscription, SubscriptionLink
from fibers.core.states import TERMINAL
from fibers.models import Fiber
from fibers.services import start_fiber
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.jsonvalue import JSONObject

MAX_FAILURES: Final = 1_000
"""Failures in a row, over about half a day, after which a webhook is left alone until its subscription is put anew."""
MAX_RETRIES: Final = 10
MAX_LISTED: Final = 1_000
"""Streams in one wake; those with something new come first."""


def note_append(stream: DurableStream) -> None:
    """Notify the readers of a stream, and wake who subscribes to it, after the present transaction."""
    notify_on_commit(stream_group(stream.pk), {"type": "stream.changed"})
    # Locked: who ends its work at the same moment either sees this append or is seen as idle here.
    rows = StreamSubscription.objects.select_for_update(of=("self",))
    for subscription in rows.filter(links__owner=stream.owner_id, links__path=stream.path).order_by("pk"):
        if not subscription.wake_id and subscription.failures < MAX_FAILURES:
            start_wake(subscription)


def link_new_stream(stream: DurableStream, *, begin: int) -> None:
    """Link a stream that was just made to the subscriptions that name it or whose pattern it fits."""
    mine = StreamSubscription.objects.filter(owner=stream.owner_id)
    SubscriptionLink.objects.filter(owner=stream.owner_id, path=stream.path).update(acked=begin)
    patterns = mine.exclude(pattern="").exclude(links__path=stream.path).values_list("pk", "pattern")
    SubscriptionLink.objects.bulk_create(
        SubscriptionLink(subscription_id=pk, owner_id=stream.owner_id, path=stream.path, acked=begin)
        for pk, pattern in patterns
        if matches(pattern, stream.path)
    )


def link_existing(subscription: StreamSubscription) -> None:
    """Link the streams there are that fit the pattern, at their ends."""
    rows = DurableStream.objects.filter(owner=subscription.owner_id, deleted_at=None).values_list("path", "tail")
    found = [(path, tail) for path, tail in rows if subscription.pattern and matches(subscription.pattern, path)]
    _link(subscription, found, is_explicit=False)


def link_named(subscription: StreamSubscription, paths: Iterable[str]) -> None:
    """Link streams by name at their ends, those that do not exist yet too."""
    wanted = list(dict.fromkeys(paths))
    rows = DurableStream.objects.filter(owner=subscription.owner_id, path__in=wanted, deleted_at=None)
    tails = dict(rows.values_list("path", "tail"))
    subscription.links.filter(path__in=wanted).update(is_explicit=True)
    _link(subscription, [(path, tails.get(path, 0)) for path in wanted], is_explicit=True)


def pending_links(subscription: StreamSubscription) -> QuerySet[SubscriptionLink]:
    """Links whose streams have something that is not acknowledged."""
    ahead = DurableStream.objects.filter(
        owner=OuterRef("owner"), path=OuterRef("path"), tail__gt=OuterRef("acked"), deleted_at=None
    )
    return SubscriptionLink.objects.filter(Exists(ahead), subscription=subscription.pk)


def start_wake(subscription: StreamSubscription, *, delay_seconds: float = 0.0) -> None:
    """Start the fiber of the next wake, in the present transaction; once for a generation.

    A fiber that was given up before its wake began has used its generation up: the next one is taken.
    """
    if _start_wake(subscription, delay_seconds).status in TERMINAL:
        subscription.generation += 1
        subscription.save(update_fields=["generation"])
        _start_wake(subscription, delay_seconds)


def _start_wake(subscription: StreamSubscription, delay_seconds: float) -> Fiber:
    return start_fiber(
        STREAM_WAKE_FIBER,
        {"subscription_id": subscription.pk, "generation": subscription.generation},
        owner_id=subscription.owner_id,
        share=f"streams:{subscription.owner_id}",
        key=f"stream_wake:{subscription.pk}:{subscription.generation}",
        delay_seconds=delay_seconds,
        max_retries=MAX_RETRIES,
    )


def begin_lease(subscription: StreamSubscription, *, holder: str) -> None:
    """Give the work to a worker, under a new generation. With the row locked."""
    subscription.generation += 1
    subscription.wake_id = new_id("wake")
    subscription.holder = holder
    extend_lease(subscription)
    watch_lease(subscription)


def extend_lease(subscription: StreamSubscription) -> None:
    """Let the lease begin now. Saves the row."""
    subscription.leased_until = timezone.now() + timedelta(milliseconds=subscription.lease_ms)
    subscription.save(update_fields=["generation", "wake_id", "holder", "leased_until"])


def watch_lease(subscription: StreamSubscription) -> None:
    """Start the fiber that looks at the lease when it should be over."""
    assert subscription.leased_until is not None
    left = (subscription.leased_until - timezone.now()).total_seconds()
    start_fiber(
        STREAM_LEASE_FIBER,
        {"subscription_id": subscription.pk, "generation": subscription.generation},
        owner_id=subscription.owner_id,
        key=f"stream_lease:{subscription.pk}:{subscription.generation}:{subscription.leased_until.timestamp()}",
        delay_seconds=max(0.0, left) + 0.05,
    )


def end_lease(subscription: StreamSubscription) -> bool:
    """Free the work, and start the next wake if there is more; returns whether. With the row locked."""
    subscription.wake_id = subscription.holder = ""
    subscription.leased_until = None
    subscription.save(update_fields=["wake_id", "holder", "leased_until"])
    has_more = pending_links(subscription).exists()
    if has_more:
        start_wake(subscription)
    return has_more


def is_leased(subscription: StreamSubscription) -> bool:
    """Whether a worker has the work now."""
    return bool(subscription.wake_id) and (
        subscription.leased_until is None or subscription.leased_until > timezone.now()
    )


def acknowledge(subscription: StreamSubscription, positions: Iterable[tuple[str, int]]) -> None:
    """Note how far the worker is done; never backwards."""
    for path, position in positions:
        subscription.links.filter(path=path, acked__lt=position).update(acked=position)


def listed_streams(subscription: StreamSubscription) -> list[tuple[SubscriptionLink, int]]:
    """Links with the ends of their streams, those with something new first."""
    end = DurableStream.objects.filter(owner=OuterRef("owner"), path=OuterRef("path"), deleted_at=None)
    rows = subscription.links.annotate(end=end.values("tail")[:1], ahead=Exists(end.filter(tail__gt=OuterRef("acked"))))
    return [(row, int(vars(row)["end"] or 0)) for row in rows.order_by(F("ahead").desc(), "path")[:MAX_LISTED]]


def wake_event(subscription: StreamSubscription, path: str) -> JSONObject:
    """The entry of a stream of wakes."""
    return {
        "type": "wake",
        "subscription_id": subscription.name,
        "stream": path,
        "generation": subscription.generation,
        "ts": int(timezone.now().timestamp() * 1000),
    }


def matches(pattern: str, path: str) -> bool:
    """Whether a path fits: `*` is one segment, `**` any number of them."""
    return _compiled(pattern).fullmatch(path) is not None


@lru_cache(maxsize=1_000)
def _compiled(pattern: str) -> re.Pattern[str]:
    text = ""
    for index, segment in enumerate(pattern.split("/")):
        slash = "/" if index else ""
        if segment == "**":
            text += f"(?:{slash}[^/]+)*" if index else "[^/]+(?:/[^/]+)*"
        else:
            pieces = "[^/]*".join(re.escape(piece) for piece in segment.split("*"))
            text += slash + ("[^/]+" if segment == "*" else pieces)
    return re.compile(text, re.DOTALL)


def _link(subscription: StreamSubscription, found: Iterable[tuple[str, int]], *, is_explicit: bool) -> None:
    SubscriptionLink.objects.bulk_create(
        (
            SubscriptionLink(
                subscription=subscription,
                owner_id=subscription.owner_id,
                path=path,
                acked=tail,
                is_explicit=is_explicit,
            )
            for path, tail in found
        ),
        ignore_conflicts=True,
    )
