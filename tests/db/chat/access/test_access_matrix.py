"""Two users, every route: whatever Bob does with Alice's ids changes nothing of hers and shows nothing.

The rows are checked against the URL resolver and the API's operations: what is added without a row here fails. Each
guarded operation is also called as Alice, so that a refusal is never a mistake in the request. Sockets:
`test_access_sockets.py`.
"""

import itertools
import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.urls import URLPattern, URLResolver, get_resolver

from chat.access import api_tokens
from chat.agent.callables import client_callable
from chat.agent.values.schedules import Work
from chat.agents import Assistant
from chat.files import attachments
from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.llm.scripted import ScriptedModel
from chat.mcp_servers.changes import read_soon
from chat.members.services import add_member, invite
from chat.models import AgentInstance, AgentRun, Membership, PushDevice, Role, SavedPrompt, SignedInBrowser
from chat.people.project_files import writable_files
from chat.people.projects import add_project
from chat.schedules.service import draft_of
from chat.shares.services import NewShare, make_link
from chat.think import SessionSetup, StoredSkills
from fibers.core.schedules.timing import Timing
from fibers.schedules.services import create_schedule
from sessions_app.compactions.services import add_compaction
from sessions_app.context import store
from sessions_app.context.history import ContextOwner
from sessions_app.core.context.context_blocks import Entry
from tests.db.chat.access_calls import call, client_of
from tests.db.chat.access_hers import Hers
from tests.db.chat.access_operations import APPROVERS, ASYNC, GUARDED, HELLO, OWN, READERS, WRITERS
from tests.db.chat.access_routes import BY_NAME, PAGES, PUBLIC, SIGNED_IN
from tests.db.chat.access_rows import all_rows, keep, unpacked
from tests.db.chat.conftest import (
    claimed_call,
    finished_export,
    grant_of,
    interrupted_fiber,
    looked_through,
    make_turn,
    say,
    stored_extension,
)
from thinkproject.api import api
from tools_app.calls.services import pause_call
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.mcp.rows import Place, add_server
from tools_app.models import PermissionRule
from tools_app.models.code_runs import Execution
from tools_app.workspace.services import attach, create_workspace
from tools_app.workspace.stores.tree import StoredContent

SECRET = "text of alices-question"


NOT_NOW = {
    ("GET", "/api/v1/instances/{instance_id}/repository"): "file_failed",  # her files are rows
    ("GET", "/api/v1/instances/{instance_id}/repository/difference"): "file_failed",
    ("GET", "/api/v1/instances/{instance_id}/repository/patch"): "file_failed",
    ("POST", "/api/v1/instances/{instance_id}/leave"): "member_not_found",
    ("GET", "/api/v1/threads/{thread_id}"): "instance_not_found",  # she has no agent that keeps threads
    ("PATCH", "/api/v1/turns/{turn_id}/message"): "turn_conflict",
    ("POST", "/api/v1/turns/{turn_id}/undo"): "undo_busy",
    ("POST", "/api/v1/turns/{turn_id}/undo/effects/{effect_id}"): "undo_impossible",
    ("POST", "/api/v1/instances/{instance_id}/redo"): "undo_impossible",
    ("POST", "/api/v1/instances/{instance_id}/review"): "undo_impossible",
    ("GET", "/api/v1/instances/{instance_id}/workspace/versions/{version_id}"): "file_failed",
}
"""Operations that her turns are in no state for, which she alone learns."""


@pytest.fixture(autouse=True)
def _skills(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent has a block of entries besides those that it comes with."""
    plain = Assistant.configure_session

    def configure_session(agent: Assistant, session: SessionSetup) -> SessionSetup:
        return plain(agent, session).with_context("skills", provider=StoredSkills())

    monkeypatch.setattr(Assistant, "configure_session", configure_session)


@pytest.fixture(autouse=True)
def _clients_may(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent has a method for clients, and an agent that they may open below it."""

    async def recall(_agent: Assistant) -> str:
        return SECRET

    monkeypatch.setattr(Assistant, "recall", client_callable(recall), raising=False)
    monkeypatch.setattr(Assistant, "sub_agents", ("assistant",))


def remember(owner: ContextOwner) -> None:
    store.write_text(owner, "memory", lambda _held: SECRET)
    store.put_entry(owner, "skills", Entry(key="tea", content=SECRET))


@pytest.fixture(autouse=True)
def _keeps_several(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that operations on histories are possible at all."""
    monkeypatch.setattr(Assistant, "keeps_sessions", True)


def _extensions(alice: User, instance: AgentInstance) -> None:
    """Alice's extensions: one of the conversation, one of all of hers."""
    source = f"({{ tools: {{ go: {{ execute: async () => {json.dumps(SECRET)} }} }} }})"
    for level, scope in (("instance", instance.pk), ("user", "")):
        stored_extension(alice, "hers", source, level=level, scope=scope, words=SECRET)


def _own_things(alice: User) -> dict[str, str]:
    """Things of Alice's that are in no conversation."""
    project = add_project(alice.pk, name=SECRET[:50], instructions=SECRET)
    content = StoredContent(size=len(SECRET), media_type="text/plain", data=SECRET.encode())
    writable_files(alice.pk, project.pk).change_now(lambda plan: plan.put("/private.txt", content))
    device = PushDevice.objects.create(user=alice, name=SECRET[:50], endpoint="https://push.example/hers")
    return {
        "device_id": device.pk,
        "prompt_id": SavedPrompt.objects.create(user=alice, name=SECRET[:50], text=SECRET).pk,
        "project_id": project.pk,
    }


@pytest.fixture
def hers(
    request: pytest.FixtureRequest,
    alice: User,
    make_instance: Callable[..., AgentInstance],
    monkeypatch: pytest.MonkeyPatch,
) -> Hers:
    remember(ContextOwner(owner_id=alice.pk))
    monkeypatch.setattr(Assistant, "config_access", "write")  # a configuration is private unless its class shares it
    monkeypatch.setattr(Assistant, "get_model", lambda _agent: ScriptedModel())  # it is not called
    instance = make_instance(alice, "talk", title="Private")
    turn = say(instance, "alices-question", "alices-answer")
    remember(ContextOwner(session_id=instance.session_id))
    file = attachments.store_bytes(alice.pk, b"private bytes", name="private.txt")
    attachments.claim(alice.pk, [file.id], instance)
    running = make_turn(instance, status="running")
    if request.node.get_closest_marker("django_db"):  # what files are asked for runs on threads of its own
        async_to_sync(InstanceWorkspace(key_of(instance)).write_file)("/private.txt", SECRET)
    question = ToolPause(status=CallStatus.ASKED, approval_id="apr_1")
    asked = ToolCall(call_id="alices-call", tool_name="pay", input={"amount": 1})
    call = pause_call(asked, question, turn_id=turn.pk, scope=instance.pk, owner_id=alice.pk)
    _extensions(alice, instance)
    submission = make_turn(instance, status="pending", trigger="program", idempotency_key="hers", started_at=None)
    assert instance.session_id is not None
    summary = add_compaction(
        instance.session_id, first_id="alices-question", last_id="alices-answer", summary="text of alices-question"
    )
    server = add_server(McpServerSpec(name=SECRET[:50], url="https://mcp.example.com"), Place(owner_id=alice.pk))[0]
    return Hers(
        instance=instance,
        turn=turn,
        running=running,
        submission=submission,
        file=file,
        call=call,
        compaction_id=summary.id,
        server=server,
        content_id=read_soon(server, alice.pk, {"resource": SECRET}).pk,
        schedule=create_schedule(
            draft_of(instance, Timing.every(3600), Work(prompt=SECRET), title=SECRET[:50], created_by="person")
        )[0],
        grant_id=grant_of(alice),
        import_id=looked_through(alice.pk, SECRET[:50]),
        rule_id=PermissionRule.objects.create(level="owner", owner=alice, action="deny", key="x", pattern=SECRET).pk,
        **_people(alice, instance),
        **_doors(alice),
        **_work(alice, instance),
        run=AgentRun.objects.create(
            parent=instance,
            owner=alice,
            run_id="hers",
            agent="assistant",
            turn=running,
            parent_turn=turn,
            input_preview={"task": SECRET},
        ),
        execution=Execution.objects.create(
            key="hers", scope=instance.pk, owner=alice, turn_id=turn.pk, call_id="x", code=SECRET, clock_ms=0
        ),
        workspace_id=_attached(alice, instance),
    )


def _attached(alice: User, instance: AgentInstance) -> str:
    """A further workspace of Alice's, which her conversation uses under the name `hers`."""
    made = create_workspace(alice.pk)
    attach(made.pk, instance.pk, name="hers")
    return str(made.pk)


def _work(alice: User, instance: AgentInstance) -> dict[str, Any]:
    """Background work of hers, and a call that a program of hers runs."""
    call = claimed_call(alice, instance, SECRET)
    return {"fiber_id": interrupted_fiber(alice, instance, SECRET), "job_id": call}


def _doors(alice: User) -> dict[str, Any]:
    """A token of Alice's, and a browser that she is signed in with."""
    client_of(alice)
    browser = SignedInBrowser.objects.get(user=alice)
    return {
        "token_id": api_tokens.create_token(alice, name="hers")[0].pk,
        "browser_id": browser.pk,
        "export_id": finished_export(alice.pk, SECRET.encode()),
    }


def _people(alice: User, instance: AgentInstance) -> dict[str, Any]:
    """A reader of Alice's conversation besides Bob, an open invitation, and a link for readers."""
    User.objects.create_user("carol")
    return {
        **_own_things(alice),
        "member_id": add_member(instance, "carol", Role.READER, by=alice.pk).pk,
        "invitation_id": invite(instance, Role.READER, by=alice.pk, days=1)[0].pk,
        "share_id": make_link(instance, NewShare(days=1))[0].pk,
    }


def routes(patterns: list[Any] | None = None, prefix: str = "") -> Iterator[str]:
    """Every route of the project as the resolver spells it."""
    for pattern in get_resolver().url_patterns if patterns is None else patterns:
        route = prefix + str(pattern.pattern)
        if isinstance(pattern, URLResolver):
            yield from routes(pattern.url_patterns, route)
        elif isinstance(pattern, URLPattern):
            yield route


def operations() -> set[tuple[str, str]]:
    paths: dict[str, dict[str, Any]] = api.get_openapi_schema(path_prefix="/api/v1/")["paths"]
    return {(method.upper(), path) for path, methods in paths.items() for method in methods}


def _as_openapi(route: str) -> str:
    return "/" + route.replace("<", "{").replace(">", "}")


# --- completeness ----------------------------------------------------------------------------------------------------


def test_every_operation_has_a_row() -> None:
    assert operations() == set(GUARDED) | set(OWN)


def test_every_route_has_a_row() -> None:
    documented = {path for _method, path in operations()}
    known = SIGNED_IN | set(PUBLIC) | set(BY_NAME) | PAGES
    unknown = [
        route
        for route in routes()
        if route not in known and _as_openapi(route) not in documented and not route.startswith("admin/")
    ]
    assert unknown == []


# --- the API ---------------------------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("power", ["", "is_staff", "is_superuser"])
def test_bob_gets_and_changes_nothing_of_alices(hers: Hers, bob: User, power: str) -> None:
    if power:  # there is no way round for those who look after the site
        User.objects.filter(pk=bob.pk).update(**{power: True})
    client = client_of(bob)
    before = all_rows()
    for (method, path), body in GUARDED.items():
        reply = call(client, method, hers.address(method, path), hers.filled(body))
        assert reply.status_code == 404, (method, path)
        assert SECRET not in reply.content.decode(), (method, path)
    assert all_rows() == before


ROLES = {Role.READER: READERS, Role.WRITER: WRITERS, Role.APPROVER: APPROVERS}
ONE_AFTER_ANOTHER = {"/approvals": -2, "/approval": -1, "/leave": 9}  # what is asked is decided first
METHODS = ["GET", "PATCH", "POST", "PUT", "DELETE"]  # what is read is there


def _order(row: tuple[str, str]) -> int:
    method, path = row
    return ONE_AFTER_ANOTHER.get(path[path.rindex("/") :], METHODS.index(method))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("role", [Role.READER, Role.WRITER, Role.APPROVER])
def test_a_member_may_what_the_role_lets(hers: Hers, alice: User, bob: User, role: Role) -> None:
    """The others of a conversation are refused by name of the role; what is a person's own is unknown to a member."""
    add_member(hers.instance, bob.username, role, by=alice.pk)
    client = client_of(bob)
    lets = ROLES[role]
    before = all_rows()
    for (method, path), body in GUARDED.items():
        if (method, path) not in lets:
            reply = call(client, method, hers.address(method, path), hers.filled(body))
            assert reply.status_code in {403, 404}, (method, path, reply.status_code)
            assert SECRET not in reply.content.decode(), (method, path)
            if "{instance_id}" in path or "{session_id}" in path or "{turn_id}" in path:
                problem = json.loads(reply.content)
                assert problem["code"] == "role_needed", (method, path)
                assert problem["data"]["needs"] != role, (method, path)
    assert all_rows() == before
    for method, path in sorted(sorted(lets), key=_order):
        if path.endswith("/result") and role is Role.WRITER:
            continue  # the call is a question, which a writer does not answer by a result either
        reply = call(client, method, hers.address(method, path), hers.filled(GUARDED[method, path]))
        assert _is_hers(reply, method, path), (method, path, reply.content)
    assert client.get(f"/api/v1/instances/{hers.instance.id}").status_code == 404  # having left
    assert not Membership.objects.filter(user=bob, revoked_at=None).exists()


@pytest.mark.django_db(transaction=True)
def test_an_anonymous_request_gets_and_changes_nothing(hers: Hers) -> None:
    client = client_of(None)
    before = all_rows()
    for (method, path), body in (GUARDED | OWN).items():
        reply = call(client, method, hers.address(method, path), hers.filled(body))
        assert (reply.status_code, reply["Content-Type"]) == (401, "application/problem+json"), (method, path)
    assert all_rows() == before


def _is_hers(reply: Any, method: str, path: str) -> bool:
    status: int = reply.status_code
    return status < 400 or bool(json.loads(reply.content)["code"] == NOT_NOW.get((method, path)))


def test_alice_herself_may(hers: Hers, alice: User) -> None:
    client = client_of(alice)
    for (method, path), body in GUARDED.items():
        if not path.endswith(ASYNC):
            with transaction.atomic():
                reply = call(client, method, hers.address(method, path), hers.filled(body))
                assert _is_hers(reply, method, path), (method, path)
                transaction.set_rollback(True)  # the next finds everything


@pytest.mark.django_db(transaction=True)  # their parts run on threads of their own
@pytest.mark.parametrize(("method", "path"), sorted(row for row in GUARDED if row[1].endswith(ASYNC)))
def test_alice_herself_may_where_the_operation_is_async(hers: Hers, alice: User, method: str, path: str) -> None:
    reply = call(client_of(alice), method, hers.address(method, path), hers.filled(GUARDED[method, path]))
    assert _is_hers(reply, method, path), reply.content


@pytest.mark.parametrize(("method", "path"), sorted(row for row in OWN if not row[1].endswith(ASYNC)))
def test_lists_and_new_things_are_ones_own(hers: Hers, bob: User, method: str, path: str) -> None:
    _shows_ones_own(hers, bob, method, path)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("method", "path"), sorted(row for row in OWN if row[1].endswith(ASYNC)))
def test_lists_are_ones_own_where_the_operation_is_async(hers: Hers, bob: User, method: str, path: str) -> None:
    _shows_ones_own(hers, bob, method, path)


def _shows_ones_own(hers: Hers, bob: User, method: str, path: str) -> None:
    client = client_of(bob)
    before = all_rows()
    if path.endswith("/account/delete"):
        del before["auth.User"][bob.pk]  # his own is closed
    reply = call(client, method, hers.fill(path), OWN[method, path])
    text = unpacked(reply.content)
    for trace in (hers.instance.id, hers.turn.id, hers.file.id, "Private", SECRET):
        assert trace.encode() not in text
    assert keep(before, all_rows()) == before


HER_FILE = {"parts": [{"type": "file", "url": "{file_url}", "mediaType": "text/plain"}]}

# Alice's ids below Bob's own things: the parent is his, the child is not
NESTED = [
    ("PUT", "/leaf", {"message_id": "alices-question"}),
    ("PUT", "/session", {"session_id": "{session_id}"}),
    ("POST", "/fork", {"message_id": "alices-question"}),
    ("POST", "/fork", {"message_id": "alices-question", "session_id": "{session_id}"}),
    ("POST", "/messages/alices-answer/edit", {"parts": HELLO["message"]["parts"]}),
    ("POST", "/turns", HELLO | {"parent_id": "alices-question"}),
    ("POST", "/messages", {"messages": [HELLO["message"]], "parent_id": "alices-question"}),
    ("POST", "/messages", {"messages": [HER_FILE]}),
    ("POST", "/submissions", {"messages": [HER_FILE]}),
    ("POST", "/turns", HELLO | {"trigger": "edit-message", "message_id": "alices-question"}),
    ("POST", "/turns", {"trigger": "regenerate-message", "message_id": "alices-question"}),
    ("POST", "/turns", {"message": HER_FILE}),
]


@pytest.mark.parametrize(("method", "path", "body"), NESTED)
def test_her_child_under_his_parent_is_unknown(
    hers: Hers, bob: User, make_instance: Callable[..., AgentInstance], method: str, path: str, body: Any
) -> None:
    his = make_instance(bob, "his")
    say(his, "his-question", "his-answer")
    client = client_of(bob)
    before = all_rows()
    filled = json.loads(hers.fill(json.dumps(body)))
    reply = call(client, method, f"/api/v1/instances/{his.id}{path}", filled)
    assert reply.status_code in {404, 422}
    assert all_rows() == before


def test_a_page_before_her_message_shows_nothing_of_hers(
    hers: Hers, bob: User, make_instance: Callable[..., AgentInstance]
) -> None:
    his = make_instance(bob, "his")
    say(his, "his-question", "his-answer")
    reply = client_of(bob).get(f"/api/v1/instances/{his.id}/messages?before=alices-question")
    assert SECRET not in reply.content.decode()


# --- other routes ----------------------------------------------------------------------------------------------------


def test_a_name_is_the_callers_own(hers: Hers, alice: User, bob: User) -> None:
    path = "/agents/assistant/talk/get-messages"
    _row, secret = api_tokens.create_token(bob, name="his")
    client = client_of(bob)
    before = all_rows()
    for reply in (client.get(path), Client().get(f"{path}?token={secret}")):
        assert (reply.status_code, reply.json()) == (200, [])
    assert Client().get(path).status_code == 401
    after = all_rows()
    after["think_chat.ApiToken"] = before["think_chat.ApiToken"]  # its use was noted
    assert after == before
    assert SECRET in client_of(alice).get(path).content.decode()  # the same address is hers for her


@pytest.mark.parametrize("route", sorted(PAGES))
def test_a_page_shows_nothing_of_anybody_else(hers: Hers, alice: User, bob: User, route: str) -> None:
    path = "/" + hers.fill(route.replace("<str:instance_id>", "{instance_id}").replace("<slug:section>", "tokens"))
    client = client_of(bob)
    before = all_rows()
    reply = client.get(path)
    assert reply.status_code == (404 if "instance_id" in route else 200)
    for trace in (hers.turn.id, "Private", SECRET):
        assert trace not in reply.content.decode()
    assert client_of(None).get(path).status_code == 302
    assert all_rows() == before
    assert "Private" in client_of(alice).get(path).content.decode()


@pytest.mark.parametrize("route", sorted(SIGNED_IN))
def test_documentation_needs_a_sign_in(bob: User, route: str) -> None:
    assert client_of(None).get(f"/{route}").status_code == 302
    assert client_of(bob).get(f"/{route}").status_code == 200


@pytest.mark.long
def test_the_admin_is_closed_to_everybody_without_rights(hers: Hers, bob: User) -> None:
    ids = {"object_id": "{instance_id}", "path:object_id": "{instance_id}"}
    of_ours = [route for route in routes() if route.startswith("admin/") and "think_" in route and "(?P" not in route]
    paths = ["/" + hers.fill(route.replace("<path:object_id>", ids["object_id"])) for route in of_ours]
    assert paths
    client = client_of(bob)
    for staff in (False, True):
        User.objects.filter(pk=bob.pk).update(is_staff=staff)
        before = all_rows()
        for path, method in itertools.product(paths, ("GET", "POST")):
            reply = call(client, method, path, None)
            assert reply.status_code in {302, 403}, (method, path, staff, reply.status_code)
            assert SECRET not in reply.content.decode()
        assert all_rows() == before
