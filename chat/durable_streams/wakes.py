"""The fibers of subscriptions: one wakes a worker, one looks at its lease when that should be over."""

import random
from dataclasses import dataclass
from typing import Any, Final

from django.db import transaction
from django.utils import timezone
from yarl import URL

from chat.durable_streams import subscriptions, waking
from chat.durable_streams.errors import StreamRefused
from chat.durable_streams.signatures import HEADER, sign
from chat.durable_streams.wire import ProducerClaim, parse_offset
from chat.durable_streams.writing import Addition, append
from chat.errors import QuotaExceeded
from chat.models import StreamSubscription
from fibers.context import FiberContext
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject, dump, load
from tools_app.fetching.errors import FetchFailed
from tools_app.fetching.posting import check_receiver, post
from tools_app.fetching.values import Answered
from tools_app.mcp.conf import mcp_settings

FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 60.0
WEBHOOK_HOLDER: Final = "webhook"
_BEGUN: Final = "begun"


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunWake:
    """One wake that has begun, as its fiber keeps it."""

    subscription_id: int
    generation: int


async def check_address(text: str) -> URL:
    """The address of a webhook. Errors: `FetchFailed` for one that is not public, or plain HTTP to one that is."""
    return await check_receiver(text, mcp_settings.private_networks)


async def wake_worker(context: FiberContext) -> None:
    """Begin a wake and notify the worker. At least once; a worker that gets it twice finds the same wake id.

    A webhook that fails is tried again after a second, and then after up to a minute.
    """
    begun: Any = await context.recorded(_BEGUN)
    facts: JSONObject | None = begun.value if begun is not None else await db(_begin, context)
    if facts is None:
        return
    wake = BegunWake(subscription_id=facts["subscription_id"], generation=facts["generation"])
    if facts["kind"] == StreamSubscription.Kind.PULL:
        await db(_append_wake, wake)
        return
    token = subscriptions.token_of(wake.subscription_id, wake.generation, facts["body"]["wake_id"])  # in no journal
    body = dump({**facts["body"], "callback_token": token}).encode()
    try:
        answer = await _send(str(facts["url"]), body)
    except FetchFailed as error:
        await db(_fail, wake, error.message)
        return
    await db(_delivered, wake, facts["body"]["streams"] if _says_done(answer) else None)


def look_at_lease(payload: JSONObject) -> None:
    """Free the work of a worker that has not reported in time, and wake again. Sync, safe to call twice."""
    with transaction.atomic():
        row = _locked(int(payload["subscription_id"]))
        if row is None or row.generation != payload["generation"] or not row.wake_id or row.leased_until is None:
            return
        if row.leased_until > timezone.now():
            waking.watch_lease(row)
        else:
            waking.end_lease(row)


def _begin(context: FiberContext) -> JSONObject | None:
    with context.fenced():
        row = _locked(int(context.payload["subscription_id"]))
        is_due = row is not None and row.generation == context.payload["generation"] and not row.wake_id
        if row is None or not is_due:
            return None
        if not row.owner.is_active or not waking.pending_links(row).exists():  # the next wake needs a key of its own
            row.generation += 1
            row.save(update_fields=["generation"])
            return None
        facts: JSONObject = {"kind": row.kind, "subscription_id": row.pk}
        if row.kind == StreamSubscription.Kind.PULL:
            row.generation += 1
            row.save(update_fields=["generation"])
        else:
            waking.begin_lease(row, holder=WEBHOOK_HOLDER)
            facts |= {"url": row.url, "body": _body(row)}
        facts["generation"] = row.generation
        context.record_in(_BEGUN, facts)
        return facts


def _body(row: StreamSubscription) -> JSONObject:
    return {
        "subscription_id": row.name,
        "wake_id": row.wake_id,
        "generation": row.generation,
        "streams": subscriptions.snapshot(row),
        "callback_url": subscriptions.callback_url(row),
    }


async def _send(text: str, body: bytes) -> Answered:
    headers = (("Content-Type", "application/json"), (HEADER, sign(body)))
    networks = mcp_settings.private_networks
    return await post(text, body, headers, networks=networks, sender="ThinkForDjango-webhook/1")


def _says_done(answer: Answered) -> bool:
    try:
        value = load(answer.body)
    except ValueError:
        return False
    return isinstance(value, dict) and value.get("done") is True


def _append_wake(wake: BegunWake) -> None:
    """Append to the stream of wakes; the producer's epoch lets each wake be stored once, however often this runs."""
    row = StreamSubscription.objects.filter(pk=wake.subscription_id).first()
    if row is None or row.generation != wake.generation:
        return
    first = waking.pending_links(row).order_by("path").first()
    event = waking.wake_event(row, "" if first is None else first.path)
    addition = Addition(
        path=row.wake_path,
        content_type="application/json",
        body=dump(event).encode(),
        producer=ProducerClaim(id=f"subscription:{row.pk}", epoch=wake.generation, seq=0),
    )
    try:
        append(row.owner_id, addition)
    except (StreamRefused, QuotaExceeded) as error:
        StreamSubscription.objects.filter(pk=row.pk).update(error_text=error.message[:500])


def _fail(wake: BegunWake, message: str) -> None:
    with transaction.atomic():
        row = _locked(wake.subscription_id)
        if row is None or row.generation != wake.generation or not row.wake_id:
            return
        row.failures += 1
        row.error_text = message[:500]
        row.wake_id = row.holder = ""
        row.leased_until = None
        row.save(update_fields=["failures", "error_text", "wake_id", "holder", "leased_until"])
        if row.failures < waking.MAX_FAILURES:
            pause = min(FIRST_PAUSE * 2.0 ** min(row.failures - 1, 10), LONGEST_PAUSE)
            waking.start_wake(row, delay_seconds=pause * random.uniform(0.8, 1.2))  # noqa: S311 - spreads the tries


def _delivered(wake: BegunWake, done: list[JSONObject] | None) -> None:
    with transaction.atomic():
        row = _locked(wake.subscription_id)
        if row is None:
            return
        if row.failures or row.error_text:
            row.failures, row.error_text = 0, ""
            row.save(update_fields=["failures", "error_text"])
        if done is not None and row.generation == wake.generation and row.wake_id:
            waking.acknowledge(row, [(each["path"], parse_offset(each["tail_offset"])[1]) for each in done])
            waking.end_lease(row)


def _locked(subscription_id: int) -> StreamSubscription | None:
    return StreamSubscription.objects.select_for_update().filter(pk=subscription_id).first()
