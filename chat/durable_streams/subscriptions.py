"""Subscriptions: made, read, changed, and the work of their workers. Sync; each call is one transaction.

The token of a wake names the subscription, the generation and the wake, and is signed: nothing of it is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from django.core import signing
from django.db import IntegrityError, transaction

from chat.durable_streams import waking, wire
from chat.durable_streams.conf import durable_stream_settings
from chat.durable_streams.errors import (
    StreamRefused,
    StreamRequestInvalid,
    SubscriptionNotFound,
    SubscriptionRefused,
)
from chat.durable_streams.finding import TURNS, checked_path, find_stream
from chat.errors import QuotaExceeded
from chat.models import StreamSubscription
from thinkproject.kernel.jsonvalue import JSONObject, JSONValue, fingerprint
from thinkproject.kernel.owner_lock import lock_owner
from thinkproject.kernel.phrases import Phrase

Kind = StreamSubscription.Kind
MIN_LEASE_MS: Final = 1_000
MAX_LEASE_MS: Final = 600_000
LEASE_MS: Final = 30_000
MAX_URL_CHARS: Final = 2_000
MAX_NAMED: Final = 1_000
_SALT: Final = "think.durable_streams.wake"


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionWanted:
    """The body of a PUT, checked."""

    name: str
    kind: str
    pattern: str
    streams: tuple[str, ...]
    url: str
    wake_path: str
    lease_ms: int
    description: str

    @property
    def configuration(self) -> str:
        """A fingerprint: equal for what would be the same subscription."""
        value = [self.kind, self.pattern, sorted(set(self.streams)), self.url, self.wake_path, self.lease_ms]
        return fingerprint([*value, self.description])


def read_wanted(name: str, body: JSONValue) -> SubscriptionWanted:
    """Check the body of a PUT. Errors: `SubscriptionRefused` (400, `INVALID_REQUEST`)."""
    if not isinstance(body, dict):
        raise invalid("The body is a JSON object.")
    kind = body.get("type")
    if kind not in Kind.values:
        raise invalid("`type` is webhook or pull-wake.")
    webhook = body.get("webhook")
    url = webhook.get("url") if isinstance(webhook, dict) else None
    if kind == Kind.WEBHOOK and not (isinstance(url, str) and len(url) <= MAX_URL_CHARS):
        raise invalid("A webhook has an address, `webhook.url`.")
    wake_path = _path(body.get("wake_stream")) if kind == Kind.PULL else ""
    pattern = _text(body, "pattern", 400).strip("/")
    streams = _paths(body.get("streams", []))
    if not pattern and not streams:
        raise invalid("A subscription has a `pattern` or `streams`.")
    lease_ms = body.get("lease_ttl_ms", LEASE_MS)
    if type(lease_ms) is not int or not MIN_LEASE_MS <= lease_ms <= MAX_LEASE_MS:
        raise invalid(Phrase("`lease_ttl_ms` is a number from {low} to {high}.", low=MIN_LEASE_MS, high=MAX_LEASE_MS))
    if not 1 <= len(name) <= 200 or "\x00" in name:
        raise invalid("The id of a subscription has 1 to 200 characters.")
    return SubscriptionWanted(
        name=name,
        kind=kind,
        pattern=pattern,
        streams=streams,
        url=str(url or "") if kind == Kind.WEBHOOK else "",
        wake_path=wake_path,
        lease_ms=lease_ms,
        description=_text(body, "description", 1_000),
    )


def put_subscription(owner_id: int, wanted: SubscriptionWanted, *, root: str) -> tuple[StreamSubscription, bool]:
    """Make a subscription, or find the same one; returns whether it was made.

    Errors: `SubscriptionRefused` (409) where there is another of this id; `QuotaExceeded`; for a stream of wakes that
    there is not, those of `find_stream`.
    """
    try:
        with transaction.atomic():
            found = _rows(owner_id).filter(name=wanted.name).first()
            return (_confirm(found, wanted), False) if found is not None else (_create(owner_id, wanted, root), True)
    except IntegrityError:  # another request made it between the two statements
        with transaction.atomic():
            return _confirm(_find(owner_id, wanted.name), wanted), False


def describe(owner_id: int, name: str) -> tuple[StreamSubscription, list[JSONObject]]:
    """A subscription and its streams. Errors: `SubscriptionNotFound`."""
    # PostgreSQL refuses to look for a NUL; there is nothing of such a name anyway.
    row = None if "\x00" in name else StreamSubscription.objects.filter(owner_id=owner_id, name=name).first()
    if row is None:
        raise SubscriptionNotFound
    return row, [_link(link) for link, _ in waking.listed_streams(row)]


def delete_subscription(owner_id: int, name: str) -> None:
    """Delete a subscription; its wakes end by themselves. Errors: `SubscriptionNotFound`."""
    with transaction.atomic():
        _find(owner_id, name).delete()


def add_streams(owner_id: int, name: str, body: JSONValue) -> None:
    """Link streams by name, at their ends. Errors: `SubscriptionNotFound`; as `read_wanted`."""
    paths = _paths(body.get("streams") if isinstance(body, dict) else None)
    with transaction.atomic():
        row = _find(owner_id, name)
        if row.links.filter(is_explicit=True).count() + len(paths) > MAX_NAMED:
            raise invalid(Phrase("A subscription names {limit} streams at most.", limit=MAX_NAMED))
        waking.link_named(row, paths)


def remove_stream(owner_id: int, name: str, path: str) -> None:
    """Remove the link by name; one by the pattern stays. Errors: `SubscriptionNotFound`."""
    with transaction.atomic():
        row = _find(owner_id, name)
        links = row.links.filter(path=path.replace("\x00", ""))
        if row.pattern and waking.matches(row.pattern, path):
            links.update(is_explicit=False)
        else:
            links.delete()


def claim(owner_id: int, name: str, body: JSONValue) -> JSONObject:
    """Give the work of a pull-wake subscription to a worker.

    Errors: `SubscriptionRefused` (409): `ALREADY_CLAIMED`, with the holder; `NO_PENDING_WORK`.
    """
    worker = body.get("worker") if isinstance(body, dict) else None
    if not isinstance(worker, str) or not 1 <= len(worker) <= 200 or "\x00" in worker:
        raise invalid("`worker` has 1 to 200 characters.")
    with transaction.atomic():
        row = _find(owner_id, name)
        if row.kind != Kind.PULL:
            raise invalid("The work of a webhook is not claimed.")
        if waking.is_leased(row) and row.holder:
            raise SubscriptionRefused(
                409,
                "ALREADY_CLAIMED",
                "Another worker has the work.",
                current_holder=row.holder,
                generation=row.generation,
            )
        if not waking.pending_links(row).exists():
            raise SubscriptionRefused(409, "NO_PENDING_WORK", "There is nothing new.")
        waking.begin_lease(row, holder=worker)
        return {
            "wake_id": row.wake_id,
            "generation": row.generation,
            "token": token_of(row.pk, row.generation, row.wake_id),
            "streams": snapshot(row),
            "lease_ttl_ms": row.lease_ms,
        }


def report(name: str, token: str, body: JSONValue) -> JSONObject:
    """Take what a worker says of its work: how far it is, and whether it is done. Extends the lease.

    Errors: `SubscriptionRefused`: 401 for a token that is none of this subscription's, 409 (`FENCED`) for one whose
    time is over, 400 (`INVALID_OFFSET`).
    """
    with transaction.atomic():
        row = _holding(name, token, body)
        waking.acknowledge(row, _acks(row, body.get("acks", [])))
        if body.get("done") is True:
            return {"ok": True, "next_wake": waking.end_lease(row)}
        waking.extend_lease(row)
        return {"ok": True, "next_wake": False}


def release(name: str, token: str, body: JSONValue) -> None:
    """Give the work back. Errors: as `report`."""
    with transaction.atomic():
        waking.end_lease(_holding(name, token, body))


def snapshot(row: StreamSubscription) -> list[JSONObject]:
    """The streams of a wake, with how far they go."""
    return [
        {**_link(link), "tail_offset": wire.format_offset(end), "has_pending": end > link.acked}
        for link, end in waking.listed_streams(row)
    ]


def token_of(subscription_id: int, generation: int, wake_id: str) -> str:
    """The token of a wake."""
    return signing.dumps([subscription_id, generation, wake_id], salt=_SALT)


def shown(row: StreamSubscription, *, signing_facts: JSONObject) -> JSONObject:
    """A subscription without its streams, as answers have it."""
    answer: JSONObject = {
        "id": row.name,
        "subscription_id": row.name,
        "type": row.kind,
        "lease_ttl_ms": row.lease_ms,
        "created_at": row.created_at.isoformat(),
        "status": "failed" if row.failures >= waking.MAX_FAILURES else "active",
    }
    if row.pattern:
        answer["pattern"] = row.pattern
    if row.description:
        answer["description"] = row.description
    if row.kind == Kind.WEBHOOK:
        answer["webhook"] = {"url": row.url, "signing": {**signing_facts, "jwks_url": f"{row.root}/__ds/jwks.json"}}
    else:
        answer["wake_stream"] = row.wake_path
    return answer


def callback_url(row: StreamSubscription) -> str:
    """The address at which the worker of a webhook reports."""
    return f"{row.root}/__ds/subscriptions/{quote(row.name, safe='')}/callback"


def invalid(message: str | Phrase) -> SubscriptionRefused:
    """A refusal of a request that is not valid."""
    return SubscriptionRefused(400, "INVALID_REQUEST", message)


def _rows(owner_id: int) -> Any:
    return StreamSubscription.objects.select_for_update().filter(owner_id=owner_id)


def _find(owner_id: int, name: str) -> StreamSubscription:
    row: StreamSubscription | None = None if "\x00" in name else _rows(owner_id).filter(name=name).first()
    if row is None:
        raise SubscriptionNotFound
    return row


def _confirm(row: StreamSubscription, wanted: SubscriptionWanted) -> StreamSubscription:
    if row.configuration != wanted.configuration:
        raise SubscriptionRefused(409, "SUBSCRIPTION_ALREADY_EXISTS", "There is another subscription of this id.")
    if row.failures:
        row.failures = 0
        row.save(update_fields=["failures"])
        if not row.wake_id and waking.pending_links(row).exists():
            waking.start_wake(row)
    return row


def _create(owner_id: int, wanted: SubscriptionWanted, root: str) -> StreamSubscription:
    limit = durable_stream_settings.limits.subscriptions
    lock_owner(owner_id)  # for new streams too, which are linked with what there is
    if limit and StreamSubscription.objects.filter(owner_id=owner_id).order_by()[limit - 1 : limit].exists():
        raise QuotaExceeded(Phrase("You can keep {limit} subscriptions. Delete some first.", limit=limit))
    if wanted.wake_path and not find_stream(owner_id, wanted.wake_path).is_json:
        raise invalid("`wake_stream` is a stream of application/json.")
    row = StreamSubscription.objects.create(
        owner_id=owner_id,
        name=wanted.name,
        kind=wanted.kind,
        pattern=wanted.pattern,
        configuration=wanted.configuration,
        url=wanted.url,
        root=root[:400],
        wake_path=wanted.wake_path,
        lease_ms=wanted.lease_ms,
        description=wanted.description,
    )
    waking.link_named(row, wanted.streams)
    waking.link_existing(row)
    return row


def _holding(name: str, token: str, body: JSONValue) -> StreamSubscription:
    try:
        key, generation, wake_id = signing.loads(token, salt=_SALT)
    except (signing.BadSignature, ValueError, TypeError) as error:
        raise SubscriptionRefused(401, "UNAUTHORIZED", "This is no token of a wake.") from error
    row = StreamSubscription.objects.select_for_update().filter(pk=key).first()
    if row is None or row.name != name:
        raise SubscriptionRefused(401, "UNAUTHORIZED", "This is no token of this subscription.")
    if not isinstance(body, dict):
        raise invalid("The body is a JSON object.")
    said = (body.get("generation"), body.get("wake_id"))
    if said != (generation, wake_id) or said != (row.generation, row.wake_id) or not waking.is_leased(row):
        raise SubscriptionRefused(409, "FENCED", "The work has gone to another worker.", generation=row.generation)
    return row


def _acks(row: StreamSubscription, given: JSONValue) -> Sequence[tuple[str, int]]:
    if not isinstance(given, list) or len(given) > waking.MAX_LISTED:
        raise invalid("`acks` is a list.")
    ends = {link.path: end for link, end in waking.listed_streams(row)}
    found = []
    for each in given:
        path, offset = (each.get("stream"), each.get("offset")) if isinstance(each, dict) else (None, None)
        if not isinstance(path, str) or not isinstance(offset, str):
            raise invalid("An ack has `stream` and `offset`.")
        try:
            life, position = (0, 0) if offset == wire.BEGINNING else wire.parse_offset(offset)
        except StreamRequestInvalid as error:
            raise SubscriptionRefused(400, "INVALID_OFFSET", "This is no offset of a stream.") from error
        if path not in ends or life or position > ends[path]:
            raise SubscriptionRefused(400, "INVALID_OFFSET", "The subscription does not have this stream so far.")
        found.append((path, position))
    return found


def _link(link: Any) -> JSONObject:
    return {
        "path": link.path,
        "link_type": "explicit" if link.is_explicit else "glob",
        "acked_offset": wire.format_offset(link.acked),
    }


def _text(body: JSONObject, name: str, limit: int) -> str:
    text = body.get(name) or ""
    if not isinstance(text, str) or len(text) > limit or "\x00" in text:
        raise invalid(Phrase("`{name}` is a text of up to {limit} characters.", name=name, limit=limit))
    return text


def _paths(value: JSONValue) -> tuple[str, ...]:
    if not isinstance(value, list) or len(value) > MAX_NAMED:
        raise invalid(Phrase("`streams` is a list of up to {limit} paths.", limit=MAX_NAMED))
    return tuple(_path(each) for each in value)


def _path(value: JSONValue) -> str:
    if not isinstance(value, str):
        raise invalid("The path of a stream is a text.")
    path = value.strip("/")
    try:
        checked_path(path)
    except StreamRefused as error:
        raise invalid(error.phrase) from error
    if path.split("/")[0] == TURNS:
        raise invalid("The streams of turns cannot be subscribed to.")
    return path
