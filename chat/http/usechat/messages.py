"""`GET /agents/{agent}/{name}/get-messages`: the transcript that published clients load before they open a socket.

Answers at any path below an instance that ends so, by cookie, bearer header or `?token=`; an instance that does not
exist yet has no messages and is not made. Other origins are the CORS middleware's business. Source: wire protocol 1.6.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from asgiref.sync import async_to_sync
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.cache import never_cache
from django.views.decorators.csrf import csrf_exempt

from chat.access.auth import check_address, open_shared
from chat.errors import AgentNotFound
from chat.http.api.authentication import caller_of_page
from chat.http.api.problems import problem_of
from chat.http.usechat.list_read_markers import list_for_page
from chat.instance.resolve import resolve, resolve_now
from chat.instances.addresses import Address, parse_address
from chat.reads import snapshots
from thinkproject.kernel.errors import ThinkError

METHODS = ("GET", "HEAD", "POST", "OPTIONS")


@csrf_exempt  # it only reads, whatever the method
@never_cache
def get_messages(request: HttpRequest) -> HttpResponse:
    """Answer with the bounded window of the shown path as a JSON array, queued messages last."""
    if request.method not in METHODS:
        return HttpResponseNotAllowed(METHODS)
    if request.method == "OPTIONS":
        return HttpResponse(status=204, headers={"Allow": ", ".join(METHODS)})
    try:
        return HttpResponse(_messages(request), content_type="application/json")
    except ThinkError as error:
        return problem_of(error)


def address_of(request: HttpRequest) -> Address:
    """The path of the request, raw if the server provides it, else decoded.

    Errors: `AgentNotFound`.
    """
    scope: Mapping[str, Any] = getattr(request, "scope", {})
    raw: bytes | str = scope.get("raw_path") or quote(request.path)
    return parse_address(raw)


def _messages(request: HttpRequest) -> str:
    user = caller_of_page(request).user
    address = address_of(request)
    if address.tail[-1:] != ("get-messages",):
        raise AgentNotFound
    if instance_id := request.GET.get("instance", ""):
        return list_for_page(snapshots.snapshot(open_shared(user.pk, instance_id, address), user.pk), user.pk)
    key = resolve_now(user.pk, address) or async_to_sync(resolve)(user.pk, address)
    snapshot = snapshots.snapshot(key, user.pk)
    check_address(user.pk, key, exists=snapshot.instance_id is not None)
    return list_for_page(snapshot, user.pk)
