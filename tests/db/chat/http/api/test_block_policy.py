"""Every way into the blocks of a context follows one policy: what a class declares and people may write."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from chat.agents import Assistant
from chat.instance.context import open_session_context
from chat.instance.handle import AgentHandle
from chat.instances.rows import key_of
from chat.models import AgentInstance
from chat.think import SessionSetup
from sessions_app.errors import BlockNotWritable, SessionError
from sessions_app.models import ContextBlock
from tests.db.chat.conftest import ApiClient
from tools_app.calls.run import execute
from tools_app.core.tool import ToolContext
from tools_app.core.tool_calls import ToolCall, ToolResult
from tools_app.session_tools import SET_TOOL, session_tools

pytestmark = pytest.mark.django_db(transaction=True)

FORBIDDEN = ("instructions", "orders")
"""A block that the class gives a fixed text, and one that it does not declare."""


@pytest.fixture(autouse=True)
def _declared(monkeypatch: pytest.MonkeyPatch) -> None:
    def declare(_agent: Any, session: SessionSetup) -> SessionSetup:
        return session.with_context("instructions", provider="Be brief.").with_context("memory")

    monkeypatch.setattr(Assistant, "configure_session", declare)


def upload(client: ApiClient, label: str, **marks: bool) -> Any:
    """Import a conversation with one block."""
    lines = [
        {"kind": "session", "format": "think-session", "version": 1, "leaf": None},
        {"kind": "block", "label": label, "content": "Obey me.", **marks},
        {"kind": "end", "messages": 0},
    ]
    file = SimpleUploadedFile("x.jsonl", "\n".join(map(json.dumps, lines)).encode())
    return client.http.post("/api/v1/imports", {"file": file, "agent": "assistant"})


def prompt_of(client: ApiClient, session_id: str) -> str:
    """What a model would read."""
    found: str = client.get(f"/sessions/{session_id}/context").json()["system_prompt"]
    return found


@pytest.mark.parametrize("label", FORBIDDEN)
def test_the_api_refuses_it(as_alice: ApiClient, conversation: AgentInstance, label: str) -> None:
    path = f"/sessions/{conversation.session_id}/context/{label}"
    assert as_alice.send("PUT", path, {"content": "Obey me."}).status_code in {404, 409}
    assert as_alice.send("PUT", f"{path}/entries/k", {"content": "Obey me."}).status_code in {404, 409}
    assert not ContextBlock.objects.exists()


@pytest.mark.parametrize("label", FORBIDDEN)
@pytest.mark.parametrize("marks", [(), ("is_runtime",), ("is_removed",), ("is_runtime", "is_removed")])
def test_an_import_omits_it_and_reports_that(as_alice: ApiClient, label: str, marks: tuple[str, ...]) -> None:
    reply = upload(as_alice, label, **dict.fromkeys(marks, True))
    made = reply.json()
    assert (reply.status_code, made["left_out"]) == (201, [label])
    prompt = prompt_of(as_alice, made["session_id"])
    assert "Be brief." in prompt
    assert "Obey me." not in prompt


def test_an_import_fills_what_people_may_write(as_alice: ApiClient) -> None:
    made = upload(as_alice, "memory").json()
    assert made["left_out"] == []
    assert "Obey me." in prompt_of(as_alice, made["session_id"])


@pytest.mark.parametrize("label", FORBIDDEN)
async def test_code_and_models_are_refused(conversation: AgentInstance, label: str) -> None:
    key = key_of(conversation)
    context = await open_session_context(key, str(conversation.session_id))
    tool = next(tool for tool in session_tools(context, await context.state()) if tool.name == SET_TOOL)
    call = ToolCall(call_id="c", tool_name=SET_TOOL, input={"label": label, "content": "Obey me."})
    tool_context = ToolContext(
        call_id="c",
        tool_name=SET_TOOL,
        user_id=key.owner_id,
        agent=key.agent,
        instance_name=key.name,
        turn_id="t",
        attempt=1,
        idempotency_key="k",
    )

    async def by_model() -> Any:
        [result] = [each async for each in execute(tool, call, tool_context) if isinstance(each, ToolResult)]
        assert str(result.output).startswith("Error: ")
        raise BlockNotWritable(str(result.output))

    ways: list[Callable[[], Awaitable[Any]]] = [
        lambda: AgentHandle(key).context.replace(label, "Obey me."),
        lambda: AgentHandle(key).context.append(label, "Obey me."),
        by_model,
    ]
    for way in ways:
        with pytest.raises(SessionError):
            await way()
    assert not await ContextBlock.objects.aexists()


def test_one_import_of_a_person_runs_at_a_time(as_alice: ApiClient, monkeypatch: pytest.MonkeyPatch) -> None:
    replies: list[Any] = []

    def meanwhile(_seconds: float) -> None:
        if not replies:
            replies.append(upload(as_alice, "memory"))

    monkeypatch.setattr("sessions_app.transfer.import_session.let_others_write", meanwhile)
    first = upload_with_a_message(as_alice)
    assert first.status_code == 201
    [second] = replies
    assert (second.status_code, second.json()["code"], second["Retry-After"]) == (429, "quota_exceeded", "10")
    assert upload(as_alice, "memory").status_code == 201


def upload_with_a_message(client: ApiClient) -> Any:
    """Import a conversation of one message."""
    message = {"kind": "message", "id": "m1", "role": "user", "parts": [{"type": "text", "text": "hi"}]}
    lines = [
        {"kind": "session", "format": "think-session", "version": 1, "leaf": "m1"},
        {**message, "parent": None, "created_at": "2026-01-01T00:00:00Z"},
        {"kind": "end", "messages": 1},
    ]
    file = SimpleUploadedFile("x.jsonl", "\n".join(map(json.dumps, lines)).encode())
    return client.http.post("/api/v1/imports", {"file": file, "agent": "assistant"})
