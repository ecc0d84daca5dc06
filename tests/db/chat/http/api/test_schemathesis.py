"""Schemathesis asks every operation for what its schema allows and for what it does not, and checks the answers."""

from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.handlers.wsgi import WSGIHandler
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.core.failures import FailureGroup
from schemathesis.core.result import Ok
from schemathesis.specs.openapi import checks

from chat.access import api_tokens
from chat.agent.values.schedules import Work
from chat.agents import Assistant
from chat.files import attachments
from chat.llm.scripted.model import ScriptedModel
from chat.mcp_servers.changes import read_soon
from chat.members.services import add_member, invite
from chat.models import AgentInstance, AgentRun, Project, Role, SavedPrompt, SignedInBrowser, TurnTrigger
from chat.schedules.service import draft_of
from chat.shares.services import NewShare, make_link
from chat.streams.logs.database_log import write_segments
from chat.streams.logs.log import close_logs
from chat.streams.records import Record
from fibers.core.schedules.timing import Timing
from fibers.schedules.services import create_schedule
from sessions_app.compactions.services import add_compaction
from tests.budget import IS_LONG
from tests.db.chat.conftest import (
    CHUNKS,
    finished_export,
    grant_of,
    interrupted_fiber,
    looked_through,
    say,
    stored_extension,
)
from thinkproject.kernel.ids import new_id
from thinkproject.kernel.secrets import encrypt
from tools_app.calls.services import pause_call
from tools_app.core.mcp.servers import McpServerSpec
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.mcp.rows import Place, add_server
from tools_app.models import PermissionRule
from tools_app.models.code_runs import Execution

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.filterwarnings("ignore:StreamingHttpResponse must consume"),
]
Make = Callable[..., AgentInstance]
Json = dict[str, Any]

CHECKS = [
    schemathesis.checks.not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.response_headers_conformance,
    checks.negative_data_rejection,
]
"""Not among them: that whatever fits the schema is accepted. Much depends on what is stored."""
HELLO = [{"type": "text", "text": "Hello"}]
EXAMPLES = 4 if IS_LONG else 1
STRANGE_EXAMPLES = 1 if IS_LONG else 0
"""Of cases whose ids are generated too, so that nothing is there."""


class Things:
    """One of everything, and how to ask for it."""

    def __init__(self, alice: User, instance: AgentInstance) -> None:
        session = instance.session_id
        assert session is not None
        question, answer, call_id = new_id("msg"), new_id("msg"), new_id("call")
        turn = say(instance, question, answer, idempotency_key=new_id("key"), trigger=TurnTrigger.PROGRAM)
        write_segments(turn.pk, [Record(offset, text) for offset, text in enumerate(CHUNKS)])
        call = ToolCall(call_id=call_id, tool_name="pay", input={"amount": 5})
        pause_call(call, ToolPause(status=CallStatus.WAITING), turn_id=turn.pk, scope=instance.pk, owner_id=alice.pk)
        compaction = add_compaction(session, first_id=question, last_id=answer, summary="What was said.")
        made = McpServerSpec(name=new_id("mcp"), url="https://10.0.0.1/mcp")  # which no worker of this test connects to
        server, _ = add_server(made, Place(owner_id=alice.pk))
        work = Work(prompt="say: due")
        schedule, _ = create_schedule(draft_of(instance, Timing.every(3600), work, created_by="person"))
        file = attachments.store_upload(alice.pk, SimpleUploadedFile("a.txt", b"some text"))
        name = new_id("ext")
        source = "({ tools: { go: { execute: async () => 1 } } })"
        for level, scope in (("instance", instance.pk), ("user", "")):
            stored_extension(alice, name, source, level=level, scope=scope)
        execution = Execution.objects.create(
            key=new_id("key"),
            scope=instance.pk,
            owner=alice,
            turn_id=turn.pk,
            call_id=call_id,
            code="return 1",
            clock_ms=0,
            status="succeeded",
            outcome="ok",
            value=1,
        )
        self.ids = {
            "name": name,
            "instance_id": instance.pk,
            "session_id": session,
            "turn_id": turn.pk,
            "submission_id": turn.pk,
            "message_id": answer,
            "call_id": call_id,
            "server_id": server.pk,
            "schedule_id": schedule.pk,
            "run_id": AgentRun.objects.create(parent=instance, owner=alice, run_id=new_id("run"), agent="assistant").pk,
            "fiber_id": interrupted_fiber(alice, instance),
            "content_id": read_soon(server, alice.pk, {"resource": "note:1"}).pk,
            "compaction_id": compaction.id,
            "file_id": file.pk,
            "grant_id": grant_of(alice),
            **_of_account(alice, instance),
            "import_id": looked_through(alice.pk, "export.json"),
            "label": "memory",
            "method": "getMcpServers",
            "execution_id": execution.pk,
            "key": "key",
        }
        self.bodies = _bodies(session, answer)


def _of_account(alice: User, instance: AgentInstance) -> dict[str, Any]:
    """People beside her, and what her account has."""
    another = User.objects.create_user(new_id("usr"))
    browser = SignedInBrowser.objects.create(user=alice, key_hash=new_id("key"), credential=encrypt('["x", ""]'))
    return {
        "member_id": add_member(instance, another.username, Role.READER, by=alice.pk).pk,
        "invitation_id": invite(instance, Role.READER, by=alice.pk, days=1)[0].pk,
        "effect_id": 1,
        "rule_id": PermissionRule.objects.create(level="owner", owner=alice, action="deny", key=new_id("key")).pk,
        "provider": "openai",
        "token_id": api_tokens.create_token(alice, name="fuzz")[0].pk,
        "browser_id": browser.pk,
        "export_id": finished_export(alice.pk, b"a zip"),
        "project_id": Project.objects.create(owner=alice, name=new_id("prj")).pk,
        "prompt_id": SavedPrompt.objects.create(user=alice, name=new_id("prompt"), text="Say hello.").pk,
        "share_id": make_link(instance, NewShare(days=1))[0].pk,
        "device_id": "none",  # a push goes to an address of another server
        "thread_id": "none",
        "version_id": 1,
    }


def _bodies(session_id: str, answer_id: str) -> dict[str, Json]:
    """By operation: what it takes."""
    source = "({ tools: { go: { execute: async () => 1 } } })"
    return {
        "create_instance": {"agent": "assistant"},
        "add_messages": {"messages": [{"parts": HELLO}]},
        "edit_answer": {"parts": HELLO},
        "select_leaf": {"message_id": answer_id},
        "switch_session": {"session_id": session_id},
        "fork_instance": {"message_id": answer_id},
        "create_turn": {"message": {"parts": HELLO}},
        "submit_messages": {"messages": [{"parts": HELLO}]},
        "open_sub_agent": {"agent": "assistant", "name": new_id("sub")},
        "start_run": {"agent": "assistant", "input": "Look."},
        "put_state": {"state": {"a": 1}},
        "call_method": {"args": []},
        "answer_call": {"output": {"paid": True}},
        "load_extension": {"manifest": {"name": new_id("ext"), "version": "1"}, "source": source},
        "load_own_extension": {"manifest": {"name": new_id("ext"), "version": "1"}, "source": source},
        "change_extension": {"source": source, "enabled": True, "permissions": {}},
        "change_own_extension": {"source": source, "enabled": False},
    }


@pytest.fixture
def caller(alice: User, settings: Any, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Headers of a user who may do everything and meets no limit."""
    settings.ALLOWED_HOSTS = ["*"]
    settings.THINK_TURNS_PER_MINUTE = settings.THINK_FILES_PER_MINUTE = settings.THINK_EXTENSION_CHANGES_PER_HOUR = 0
    settings.THINK_MCP_SERVERS_PER_USER = settings.THINK_MCP_CONNECTS_PER_MINUTE = 0
    settings.THINK_SCHEDULES_PER_USER = 0
    monkeypatch.setattr("fibers.schedules.services.TESTS_PER_MINUTE", 1_000_000)
    settings.THINK_ARCHIVES_PER_USER = 0
    settings.THINK_OAUTH_REGISTRATIONS_PER_HOUR = settings.THINK_OAUTH_CLIENTS = (
        settings.THINK_OAUTH_GRANTS_PER_USER
    ) = 100_000
    monkeypatch.setattr(Assistant, "config_access", "write")
    monkeypatch.setattr(Assistant, "keeps_sessions", True)
    monkeypatch.setattr(Assistant, "get_model", lambda _self: ScriptedModel("say: Hello."))
    _row, secret = api_tokens.create_token(alice, name="schemathesis")
    return {"Authorization": f"Bearer {secret}"}


@pytest.mark.long
def test_every_answer_is_one_that_the_document_declares(
    alice: User, caller: dict[str, str], make_instance: Make, redis_url: str
) -> None:
    schema = schemathesis.openapi.from_wsgi("/api/v1/openapi.json", WSGIHandler(), headers=caller)
    problems: list[str] = []
    for found in schema.get_all_operations():
        assert isinstance(found, Ok), found
        operation = found.ok()
        if operation.definition.raw["operationId"] == "follow_events":
            continue  # an answer without an end; `feed/test_events.py` is about it
        things = Things(alice, make_instance(alice))
        ids = {each.name: things.ids[each.name] for each in operation.path_parameters}
        body = things.bodies.get(operation.definition.raw["operationId"])
        if body is not None:
            problems += problems_with(operation.as_strategy(path_parameters=ids, body=body), 1, caller)
        for mode in GenerationMode:
            cases = operation.as_strategy(generation_mode=mode, path_parameters=ids)
            problems += problems_with(cases, EXAMPLES, caller)
            if ids and STRANGE_EXAMPLES:
                problems += problems_with(operation.as_strategy(generation_mode=mode), STRANGE_EXAMPLES, caller)
    async_to_sync(close_logs)()
    assert not problems, "\n\n".join(problems)


def problems_with(cases: Any, count: int, caller: dict[str, str]) -> list[str]:
    """Send some cases; say what is wrong with the answers. All of it: one run is to say everything."""
    found: list[str] = []

    @settings(
        max_examples=count,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases)
    def send(case: Any) -> None:
        response = case.call(headers=caller)
        try:
            case.validate_response(response, checks=CHECKS, headers=caller)
        except FailureGroup as group:
            found.extend(f"{case.operation.label}: {failure}\n{case.as_curl_command()}" for failure in group.exceptions)

    send()
    return found
