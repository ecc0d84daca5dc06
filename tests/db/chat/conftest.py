"""Two signed-in people and a conversation of the first one's."""

import functools
import io
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.test import Client
from django.utils import timezone

from chat.access.oauth import clients, grants
from chat.access.oauth.scopes import Scope
from chat.agent.base import InstanceKey
from chat.conversations.archive_imports import take_in
from chat.instances.rows import ensure_instance
from chat.models import AgentInstance, ArchiveImport, DataExport, Turn
from chat.operations.data_exports import FOLDER as EXPORTS
from chat.reads import snapshots
from chat.streams.logs.database_log import write_segments
from chat.streams.logs.log import close_logs
from chat.streams.records import Record
from fibers.models import Fiber
from sessions_app.core.messages.shapes import Message
from sessions_app.messages.services import Leaf, place_messages, put_assistant, queue_messages
from tests.db.chat.notes import Connect, opener, served_notes
from tests.db.chat.sockets import Open, opening_sockets
from tests.db.chat.use_chat import Page
from thinkproject.api import api
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.object_storage import object_storage
from tools_app.core.extensions.manifest import parse_manifest
from tools_app.core.extensions.surface import Surface
from tools_app.extensions.services import hash_of
from tools_app.models.extensions import Extension, ExtensionAuthor

Reply = Any


@functools.cache
def documented() -> dict[str, dict[str, set[int]]]:
    """Statuses that the OpenAPI document declares, by the route of an operation and its method."""
    paths = api.get_openapi_schema(path_prefix="/api/v1/")["paths"]
    return {
        path.removeprefix("/"): {
            method.upper(): {int(status) for status in operation["responses"]} for method, operation in methods.items()
        }
        for path, methods in paths.items()
    }


def assert_documented(reply: Reply) -> Reply:
    """Every answer of an operation is one that the OpenAPI document declares, and every 429 says when to come back."""
    route = getattr(reply, "resolver_match", None)
    path = re.sub(r"<(?:\w+:)?(\w+)>", r"{\1}", route.route) if route else ""
    methods = documented().get(path)
    if methods is not None and reply.request["REQUEST_METHOD"] in methods:
        assert reply.status_code in methods[reply.request["REQUEST_METHOD"]], (path, reply.status_code, reply.content)
    assert reply.status_code != 429 or int(reply["Retry-After"]) > 0
    return reply


class ApiClient:
    """A signed-in browser of one user's: JSON in, JSON out, below `/api/v1`."""

    def __init__(self, user: User | None) -> None:
        self.http = Client()
        if user is not None:
            self.http.force_login(user)

    def get(self, path: str, **headers: str) -> Reply:
        return assert_documented(self.http.get(f"/api/v1{path}", headers=headers))

    def send(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        return assert_documented(
            self.http.generic(method, f"/api/v1{path}", _encode(body), content_type="application/json", headers=headers)
        )


def _encode(body: object) -> bytes:
    return b"" if body is None else json.dumps(body).encode()


@pytest.fixture(autouse=True)
def _nobody_works(settings: Any) -> None:
    """Turns stay as they were admitted."""
    settings.THINK_FIBER_DISPATCH = "manual"


@pytest.fixture
def as_alice(alice: User) -> ApiClient:
    return ApiClient(alice)


@pytest.fixture
def as_bob(bob: User) -> ApiClient:
    return ApiClient(bob)


@pytest.fixture
def as_nobody(db: None) -> ApiClient:
    return ApiClient(None)


@pytest.fixture
def make_instance() -> Callable[..., AgentInstance]:
    def make(owner: User, name: str = "", *, agent: str = "assistant", title: str = "") -> AgentInstance:
        key = InstanceKey(owner_id=owner.pk, agent=agent, name=name or new_id("chat"))
        return ensure_instance(key, title=title)

    return make


@pytest.fixture
def conversation(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    """Alice's: a question and an answer."""
    instance = make_instance(alice, "talk", title="A talk")
    say(instance, "q1", "a1")
    return instance


def say(instance: AgentInstance, question: str, answer: str, **turn: Any) -> Turn:
    """Put a question and its answer at the end, with a final turn."""
    assert instance.session_id is not None
    made = make_turn(instance, assistant_id=answer, **turn)
    queue_messages(instance.session_id, [text_message(question, "user")], turn_id=made.id)
    place_messages(instance.session_id, [question], after=Leaf.ACTIVE)
    put_assistant(instance.session_id, text_message(answer, "assistant"), after=question, turn_id=made.id)
    return made


def stored_extension(owner: User, name: str, source: str, *, level: str, scope: str = "", words: str = "") -> Extension:
    """An extension as it is stored, of one version, with one recorded call. Its source is not run."""
    manifest = parse_manifest({"name": name, "version": "1", "description": words})
    row = Extension.objects.create(
        level=level,
        scope=scope,
        owner=owner,
        name=name,
        prefix=manifest.prefix,
        manifest=manifest.to_json(),
        surface=Surface().to_json(),
        granted=manifest.permissions.to_json(),
        sha256=hash_of(source),
    )
    row.versions.create(
        number=1, manifest=row.manifest, source=source, sha256=row.sha256, via=ExtensionAuthor.API, author=owner
    )
    row.calls.create(name=name, scope=scope, owner=owner, during="go", method="fetch", subject=words)
    return row


def text_message(message_id: str, role: str) -> Message:
    return {"id": message_id, "role": role, "parts": [{"type": "text", "text": f"text of {message_id}"}]}


def make_turn(instance: AgentInstance, *, status: str = "completed", **fields: Any) -> Turn:
    instance.refresh_from_db()
    assert instance.session is not None
    instance.turn_count += 1
    instance.save(update_fields=["turn_count"])
    now = timezone.now()
    fiber = Fiber.objects.create(
        name="chat.turn",
        status=status,
        lane=f"instance:{instance.pk}",
        lane_position=instance.turn_count,
        available_at=now,
        owner_id=instance.owner_id,
        finished_at=now if status in {"completed", "failed", "cancelled", "interrupted"} else None,
    )
    defaults: dict[str, Any] = {
        "request_id": new_id("req"),
        "trigger": "submit-message",
        "generation": instance.generation,
        "assistant_id": new_id("msg"),
        "position": instance.turn_count,
        "started_at": now,
        "finished_at": fiber.finished_at,
    }
    turn = Turn.objects.create(instance=instance, session=instance.session, fiber=fiber, **defaults | fields)
    Fiber.objects.filter(pk=fiber.pk).update(payload={"turn_id": turn.pk})
    return turn


CHUNKS = ['{"type":"start","messageId":"a1"}', '{"type":"start-step"}', '{"type":"finish-step"}']
"""What `running` has said."""


@pytest.fixture
def running(alice: User, make_instance: Callable[..., AgentInstance]) -> Turn:
    """A turn in the middle of its answer."""
    turn = make_turn(make_instance(alice, "talk"), status="running", request_id="r1", assistant_id="a1")
    write_segments(turn.id, [Record(offset, text) for offset, text in enumerate(CHUNKS)])
    return turn


@pytest.fixture
def has_looked(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set once a delivery has read a turn's row and found that it is not over; what is left to it then is to wait."""
    found_running = threading.Event()
    is_final = snapshots.is_final

    def looking(turn_id: str) -> bool:
        found = is_final(turn_id)
        if not found:
            found_running.set()
        return found

    monkeypatch.setattr(snapshots, "is_final", looking)
    return found_running


@pytest.fixture
async def page(alice: User) -> AsyncIterator[Page]:
    """A page of Alice's with `useChat` over plain HTTP."""
    yield await Page(alice).sign_in()
    await close_logs()


@pytest.fixture
async def talk(alice: User, make_instance: Callable[..., AgentInstance]) -> AgentInstance:
    """A conversation of Alice's with a question and an answer, for async tests."""

    def make() -> AgentInstance:
        instance = make_instance(alice, "talk")
        say(instance, "q1", "a1")
        return instance

    return await sync_to_async(make)()


def looked_through(owner_id: int, name: str) -> str:
    """An archive of another product that was looked through and can be imported."""
    counts = ("conversation", "known", "grown", "message", "file", "unreadable")
    preview = {**{f"{each}_count": 1 for each in counts}, "products": {}, "unreadable": [], "left_out": {}}
    row = take_in(owner_id, io.BytesIO(b"[]"), name=name)
    ArchiveImport.objects.filter(pk=row.pk).update(preview=preview)
    return row.pk


def finished_export(owner_id: int, content: bytes) -> str:
    """An export of everything that can be downloaded, with this content."""
    name = object_storage().save(f"{EXPORTS}/{new_id('obj')}", ContentFile(content))
    row = DataExport.objects.create(
        owner_id=owner_id, storage_name=name, byte_size=len(content), finished_at=timezone.now()
    )
    return str(row.pk)


def grant_of(user: User) -> str:
    """A grant to a program of hers, in use."""
    program = clients.register("hers", ["https://app.example/callback"], network="")
    consent = grants.Consent(
        client_id=program.pk,
        agent="assistant",
        resource="http://testserver/mcp/assistant",
        scopes=(Scope.CHAT,),
        code_challenge="x" * 43,
        redirect_uri="https://app.example/callback",
        redirect_is_explicit=True,
    )
    found = grants.find_code(program.pk, grants.create_grant(user, consent))
    assert found is not None
    grants.exchange_code(found.pk)
    return found.pk


def interrupted_fiber(alice: User, instance: AgentInstance, words: str = "") -> str:
    """Background work of an agent that was interrupted; `words` are in its input and metadata."""
    payload = {"instance_id": instance.pk, "method": "report", "payload": words, "id": None, "is_spawned": False}
    fiber = Fiber(
        name="chat.agent_fiber:assistant.report",
        payload=payload,
        metadata={"for": words},
        scope=instance.pk,
        owner=alice,
        status="interrupted",
        attempt=1,
        finished_at=timezone.now(),
    )
    fiber.save()
    return fiber.pk


def claimed_call(alice: User, instance: AgentInstance, words: str) -> str:
    """A call of a durable tool that a program of Alice's runs, as the executor `hers`."""
    call = {"call_id": "one", "user_id": alice.pk, "agent": "assistant", "instance_name": "talk", "turn_id": "t"}
    fiber = Fiber(
        name="chat.tool:hers/pay",
        payload={
            "instance_id": instance.pk,
            "method": "pay",
            "payload": {"for": words},
            "id": "",
            "call": {**call, "idempotency_key": "t:one"},
            "session_id": "",
            "wait": None,
            "is_async": True,
            "notify": False,
            "output_schema": None,
            "more": {},
        },
        scope=instance.pk,
        owner=alice,
        status="running",
        worker=f"program:{alice.pk}:hers",
        fence=1,
        attempt=1,
        started_at=timezone.now(),
        lease_until=timezone.now() + timedelta(hours=1),
    )
    fiber.save()
    return fiber.pk


@pytest.fixture
async def connect(alice: User) -> AsyncIterator[Connect]:
    """Open sockets of Alice's, or another's, which are closed at the end."""
    async with opener(alice) as go:
        yield go


@pytest.fixture
def notes() -> Iterator[None]:
    """Agents with sub-agents, which are served during the test."""
    with served_notes():
        yield


@pytest.fixture
async def open_socket() -> AsyncIterator[Open]:
    """Open sockets, which are closed at the end."""
    async with opening_sockets() as go:
        yield go
