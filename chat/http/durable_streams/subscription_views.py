"""`/v1/stream/__ds/…`: subscriptions, the work of their workers, and the public keys of webhooks.

Workers show the token of a wake in place of a person's. Errors have the codes of the protocol.
"""

from urllib.parse import unquote

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from chat.access.auth import bearer
from chat.durable_streams import signatures, subscriptions
from chat.durable_streams.errors import SubscriptionNotFound, SubscriptionRefused
from chat.durable_streams.wakes import check_address
from chat.http.durable_streams.answers import empty, root_of, stream_caller, stream_door
from chat.models import StreamSubscription
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue, dump, load
from tools_app.fetching.errors import FetchFailed


@stream_door("GET")
async def public_keys(_request: HttpRequest) -> HttpResponseBase:
    """The keys by which a receiver checks a webhook. They are public."""
    headers = {"Cache-Control": "public, max-age=300"}
    return HttpResponse(dump(signatures.public_keys()), content_type="application/jwk-set+json", headers=headers)


@stream_door("GET", "PUT", "DELETE")
async def subscription(request: HttpRequest, name: str) -> HttpResponseBase:
    """Make, describe or delete a subscription."""
    owner_id = await db(_caller_id, request)
    try:
        if request.method == "GET":
            row, streams = await db(subscriptions.describe, owner_id, name)
            return _json(200, {**_shown(row), "streams": streams})
        if request.method == "DELETE":
            await db(subscriptions.delete_subscription, owner_id, name)
            return empty(204, {})
        wanted = subscriptions.read_wanted(name, await db(_body, request))
        if wanted.url:
            await _check_address(wanted.url)
        row, is_new = await db(subscriptions.put_subscription, owner_id, wanted, root=root_of(request))
        _, streams = await db(subscriptions.describe, owner_id, name)
        return _json(201 if is_new else 200, {**_shown(row), "streams": streams})
    except (SubscriptionRefused, SubscriptionNotFound) as error:
        return _refused(error)


@stream_door("POST", "DELETE")
async def subscription_work(request: HttpRequest, name: str, verb: str) -> HttpResponseBase:
    """Link and unlink streams; claim, report and give back the work."""
    try:
        return await db(_work, request, name, verb)
    except (SubscriptionRefused, SubscriptionNotFound) as error:
        return _refused(error)


# What follows asks the database and runs off the loop.


def _work(request: HttpRequest, name: str, verb: str) -> HttpResponse:
    head, _, path = verb.partition("/")
    match (request.method, head):
        case ("DELETE", "streams") if path:
            subscriptions.remove_stream(_caller_id(request), name, unquote(path))
            return empty(204, {})
        case ("POST", "streams") if not path:
            subscriptions.add_streams(_caller_id(request), name, _body(request))
            return empty(204, {})
        case ("POST", "claim"):
            return _json(200, subscriptions.claim(_caller_id(request), name, _body(request)))
        case ("POST", "callback" | "ack"):
            return _json(200, subscriptions.report(name, _wake_token(request), _body(request)))
        case ("POST", "release"):
            subscriptions.release(name, _wake_token(request), _body(request))
            return empty(204, {})
    raise SubscriptionNotFound("There is no such operation of a subscription.")


def _caller_id(request: HttpRequest) -> int:
    return int(stream_caller(request).user.pk)


def _wake_token(request: HttpRequest) -> str:
    return bearer(request.headers.get("Authorization", "")) or ""


def _body(request: HttpRequest) -> JSONValue:
    try:
        return load(request.body)
    except ValueError as error:
        raise subscriptions.invalid("The body is not valid JSON.") from error


async def _check_address(url: str) -> None:
    try:
        await check_address(url)
    except FetchFailed as error:
        raise SubscriptionRefused(400, "WEBHOOK_URL_REJECTED", error.message) from error


def _shown(row: StreamSubscription) -> JSONValue:
    return subscriptions.shown(row, signing_facts=signatures.signing_facts())


def _json(status: int, value: JSONValue) -> HttpResponse:
    return HttpResponse(dump(value), status=status, content_type="application/json")


def _refused(error: SubscriptionRefused | SubscriptionNotFound) -> HttpResponse:
    facts = {"code": error.code, "message": error.message, **error.data}
    return _json(error.response_status, {"error": facts})
