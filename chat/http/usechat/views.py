"""`/agents/{agent}/{name}/chat`: the AI SDK's `useChat` with its own HTTP transport. Source: wire protocol 4.8.

`POST` asks for a turn and streams it; `GET …/chat/{id}/stream` follows what runs, for a page that comes back; `DELETE`
of the same stops it. The turn belongs to the server: a connection that ends stops nothing. `{id}` is the page's own
word for its chat and says nothing here: the URL names the instance.
"""

import logging

from django.core.exceptions import RequestDataTooBig
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse, HttpResponseNotAllowed, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt

from chat.access.auth import may_stay, open_key, open_shared
from chat.agent.base import InstanceKey
from chat.errors import BUSY, AgentNotFound, InputInvalid
from chat.http.api.authentication import Caller, caller_of_page
from chat.http.api.problems import problem, problem_of
from chat.http.sse import CONTENT_TYPE, HEADERS, event_body
from chat.http.usechat import posts
from chat.http.usechat.messages import address_of
from chat.http.usechat.playback import CUT, Playback, lines
from chat.instance.resolve import resolve
from chat.instances.addresses import Address
from chat.models import Role
from thinkproject.kernel.aio import db
from thinkproject.kernel.errors import ThinkError
from thinkproject.kernel.jsonvalue import dump

logger = logging.getLogger(__name__)


@csrf_exempt  # the transport knows no token; the Origin rule stands in its place
async def chat(request: HttpRequest) -> HttpResponseBase:
    """Admit the posted request, and stream its answer."""
    return await _answer(request, ("POST",))


@csrf_exempt  # as above
async def chat_stream(request: HttpRequest) -> HttpResponseBase:
    """Stream the active turn (`204` without one), or stop it."""
    return await _answer(request, ("GET", "DELETE"))


async def _answer(request: HttpRequest, methods: tuple[str, ...]) -> HttpResponseBase:
    method = str(request.method)
    if method == "OPTIONS":
        return HttpResponse(status=204, headers={"Allow": ", ".join((*methods, "OPTIONS"))})
    if method not in methods:
        return HttpResponseNotAllowed([*methods, "OPTIONS"])
    try:
        caller = await db(caller_of_page, request, may_change=method != "GET")
        key = await _key(request, caller, _address(request, length=1 if method == "POST" else 3))
        if method == "DELETE":
            return await db(_stop, caller, key)
        playbacks = await db(_post, request, caller, key) if method == "POST" else await db(_resume, caller, key)
    except ThinkError as error:
        return problem_of(error)
    except RequestDataTooBig:
        return problem(413, "too_large", "The request is larger than this server accepts.")
    except DatabaseError:  # one refused request; nothing was changed
        logger.exception("turn not admitted", extra={"action": "turn_not_admitted"})
        return problem(503, "busy", BUSY, {"retry_after_seconds": 1})
    if not playbacks:
        return HttpResponse(status=204, headers={"Cache-Control": "no-store"})
    return _stream(caller, key, playbacks)


async def _key(request: HttpRequest, caller: Caller, address: Address) -> InstanceKey:
    """The address of the caller's own conversation; with `?instance=` that of one that the caller is in."""
    if instance_id := request.GET.get("instance", ""):
        return await db(open_shared, caller.user.pk, instance_id, address)
    # On the loop: the classes' hooks may ask the database, which must not wait for a thread that waits for them.
    return await resolve(caller.user.pk, address)


def _stream(caller: Caller, key: InstanceKey, playbacks: list[Playback]) -> StreamingHttpResponse:
    async def still_allowed() -> bool:
        return await db(may_stay, caller.credential, key)

    played = lines(playbacks, key=key, user_id=caller.user.pk)
    member_id = None if key.owner_id == caller.user.pk else caller.user.pk
    body = event_body(played, still_allowed=still_allowed, on_failure=CUT, member_id=member_id)
    return StreamingHttpResponse(body, content_type=CONTENT_TYPE, headers=HEADERS)


# What follows asks the database and runs off the loop, the reading of a large body too.


def _post(request: HttpRequest, caller: Caller, key: InstanceKey) -> list[Playback]:
    opened = open_key(caller.user, key, needs=Role.WRITER)
    if request.content_type != "application/json":
        raise InputInvalid("Send JSON, with the header `Content-Type: application/json`.")
    post = posts.read_post(request.body.decode("utf-8", "replace"))
    idempotency_key = request.headers.get("Idempotency-Key") or None
    actor_id = caller.user.pk
    return [posts.accept_post(key, opened.instance, post, actor_id=actor_id, idempotency_key=idempotency_key)]


def _resume(caller: Caller, key: InstanceKey) -> list[Playback]:
    return posts.find_playbacks(open_key(caller.user, key, needs=Role.READER).instance, caller.user.pk)


def _stop(caller: Caller, key: InstanceKey) -> HttpResponse:
    stopped = posts.stop_turns(open_key(caller.user, key, needs=Role.WRITER).instance)
    return HttpResponse(dump({"stopped": stopped}), content_type="application/json")


def _address(request: HttpRequest, *, length: int) -> Address:
    address = address_of(request)
    tail = address.tail
    if len(tail) != length or tail[0] != "chat" or (length == 3 and tail[2] != "stream"):
        raise AgentNotFound
    return address
