"""What a browser test needs done beside the product. Runs within it, called by a `Hand`."""

import json
import urllib.request
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management import call_command
from django.utils import timezone

from chat.access.api_tokens import create_token
from chat.instances.notifications import notify_conversation
from chat.instances.rows import key_of
from chat.instances.workspaces import attach_directory
from chat.llm.conf import llm_settings
from chat.models import AgentInstance, Turn
from chat.turns.state.parking import answer_wait
from fibers.models import Fiber, FiberStep
from sessions_app.compactions.services import add_compaction
from sessions_app.context.history import ContextOwner
from sessions_app.context.store import write_text
from sessions_app.messages.services import append_messages, create_session, fork_session
from sessions_app.models import ContextBlock
from tools_app.calls.services import pause_call
from tools_app.core.mcp.catalogue import CatalogueLimits, Listed, build_catalogue
from tools_app.core.mcp.servers import McpState
from tools_app.core.questions import Question
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import ToolCallRecord
from tools_app.models.mcp import McpServer


def seed(job: dict[str, Any]) -> str:
    """Store a conversation; returns its id."""
    instance = AgentInstance(owner_id=job["user"], agent=job["agent"], name=job["name"], title=job["title"])
    session = create_session(owner_id=job["user"], scope=instance.id)
    instance.session = session
    instance.save(force_insert=True)
    append_messages(session.pk, job["messages"])
    return str(instance.id)


def probe_model(name: str, scripts: dict[str, str]) -> str:
    """Let the provider answer questions with these words in them so, and probe a model; returns what is printed."""
    root = llm_settings.openai_base_url.removesuffix("/v1")
    for match, script in scripts.items():
        body = json.dumps({"match": match, "script": script}).encode()
        with urllib.request.urlopen(f"{root}/_scripted/scripts", body, timeout=5):
            pass
    printed = StringIO()
    call_command("probe_model", name, "--yes", "--overflow-tokens=0", stdout=printed, stderr=StringIO())
    return printed.getvalue()


def work_of(instance_id: str) -> dict[str, Any]:
    """The turns of a conversation: the status of the last one, the steps of all, the exit code of the last command."""
    turns = list(Turn.objects.filter(instance_id=instance_id).select_related("fiber").order_by("position"))
    runs = ToolCallRecord.objects.filter(turn_id__in=[turn.pk for turn in turns], tool_name="run_command")
    last = runs.order_by("pk").last()
    return {
        "status": turns[-1].fiber.status,
        "steps": sum(turn.step_count for turn in turns),
        "exit_code": None if last is None else last.output["exitCode"],
    }


def running(user_id: int) -> int:
    """How many turns of a user have not ended."""
    return Turn.objects.filter(instance__owner_id=user_id, finished_at=None).count()


def work_in(instance_id: str, folder: str) -> None:
    """Make a directory of the machine the workspace of a conversation."""
    attach_directory(key_of(AgentInstance.objects.get(pk=instance_id)), Path(folder))


def make_many(user_id: int, count: int) -> None:
    """Store conversations without messages, two of each minute."""
    now = timezone.now()
    for number in range(count):
        row = AgentInstance(owner_id=user_id, agent="assistant", name=f"n{number}", title=f"Number {number}")
        row.save(force_insert=True)
        AgentInstance.objects.filter(pk=row.pk).update(active_at=now - timedelta(minutes=number // 2))


def rename(user_id: int, title: str) -> None:
    """Give all conversations of a user a title."""
    AgentInstance.objects.filter(owner_id=user_id).update(title=title)


def set_duration(call_id: str, milliseconds: int) -> None:
    """Have a tool call have taken so long."""
    ToolCallRecord.objects.filter(call_id=call_id).update(duration_ms=milliseconds)


def give_password(user_id: int, password: str) -> None:
    """Let a person sign in by the form."""
    user = get_user_model().objects.get(pk=user_id)
    user.set_password(password)
    user.save(update_fields=["password"])


def make_staff(user_id: int) -> None:
    """Let a user do everything in the admin."""
    get_user_model().objects.filter(pk=user_id).update(is_staff=True, is_superuser=True)


def remember(instance_id: str, first_id: str, last_id: str) -> dict[str, Any]:
    """Give a conversation a summary, a fork and a block; returns the ids of the session and of the block."""
    session_id = str(AgentInstance.objects.get(pk=instance_id).session_id)
    add_compaction(session_id, first_id=first_id, last_id=last_id, summary="What was said before.")
    fork_session(session_id, last_id, name="Another way")
    write_text(ContextOwner(session_id=session_id), "memory", lambda _held: "Likes tea.")
    return {"session": session_id, "block": ContextBlock.objects.get(session_id=session_id).pk}


def answer_waiting(user_id: int, value: str) -> bool:
    """Answer what the only call of a user's running turn waits for."""
    turn = Turn.objects.select_related("instance").get(instance__owner_id=user_id, finished_at=None)
    call = ToolCallRecord.objects.get(turn_id=turn.pk)
    return answer_wait(key_of(turn.instance), call.call_id, value, wait="window")


def choose_model(instance_id: str, name: str) -> None:
    """Store a choice as it was made before the site withdrew the model."""
    AgentInstance.objects.filter(pk=instance_id).update(model_choice={"model": name})


def ask_often(instance_ids: list[str], count: int) -> None:
    """Put so many unanswered questions into conversations, by turns."""
    for number in range(count):
        instance = AgentInstance.objects.get(pk=instance_ids[number % len(instance_ids)])
        turn = Turn.objects.filter(instance=instance).latest("position")
        question = Question(
            title="Payment", sentence=f"Pay bill {number}?", may_edit=False, input_schema=None
        ).to_json()
        call = ToolCall(call_id=f"{instance.id}-{number}", tool_name="pay", input={"amount": number})
        pause = ToolPause(status=CallStatus.ASKED, approval_id=f"apr-{instance.id}-{number}", question=question)
        pause_call(call, pause, turn_id=turn.pk, scope=instance.pk, owner_id=instance.owner_id)


def put_question(instance_id: str, asked: dict[str, Any]) -> None:
    """Put a question into a conversation: `tool_name`, `call_id`, `input`, `title`, `sentence`."""
    instance = AgentInstance.objects.get(pk=instance_id)
    turn = Turn.objects.filter(instance=instance).latest("position")
    question = Question(title=asked["title"], sentence=asked["sentence"], may_edit=False, input_schema=None).to_json()
    call = ToolCall(call_id=asked["call_id"], tool_name=asked["tool_name"], input=asked["input"])
    pause = ToolPause(status=CallStatus.ASKED, approval_id=f"apr-{asked['call_id']}", question=question)
    pause_call(call, pause, turn_id=turn.pk, scope=instance.pk, owner_id=instance.owner_id)


def know_servers(user_id: int, servers: list[dict[str, Any]]) -> None:
    """Give a user servers in states that are hard to reach: fields of each, and names of `tools` that it has listed."""
    for number, fields in enumerate(servers):
        names = fields.pop("tools", [])
        listed = [{"name": name, "description": f"About {name}.", "inputSchema": {"type": "object"}} for name in names]
        McpServer.objects.create(
            id=f"m{user_id}x{number}",
            owner_id=user_id,
            scope="user",
            transport="http",
            catalogue=build_catalogue(Listed(tools=listed), CatalogueLimits()) if listed else None,
            accepted={} if listed else None,
            **{"url": f"https://mcp.example/{number}", "state": McpState.READY, **fields},
        )


def add_fibers(instance_id: str, rows: list[dict[str, Any]]) -> list[str]:
    """Give a conversation background work that no worker runs, each in a state; returns the ids."""
    instance = AgentInstance.objects.get(pk=instance_id)
    now = timezone.now()
    made = []
    for number, row in enumerate(rows):
        is_over = row["status"] not in ("pending", "running", "parked")
        begun = now - timedelta(minutes=5, seconds=number)
        made.append(
            Fiber(
                name=f"chat.agent_fiber:nobody.{row['method']}",
                payload={"instance_id": instance.pk, "method": row["method"], "payload": None, "id": None},
                owner_id=instance.owner_id,
                scope=instance.pk,
                attempt=1,
                created_at=begun,
                started_at=begun + timedelta(seconds=1) if is_over else None,
                finished_at=now if is_over else None,
                incident=_losses(now.isoformat()) if row["status"] == "interrupted" else None,
                status=row["status"],
                reason=row.get("reason", ""),
                error=row.get("error"),
                waits=row.get("waits", []),
            )
        )
    Fiber.objects.bulk_create(made)
    FiberStep.objects.bulk_create(
        FiberStep(fiber=fiber, step_key="fetch", value=1, attempt=1, created_at=now - timedelta(minutes=4))
        for fiber in made
        if fiber.status == "interrupted"
    )
    return [fiber.pk for fiber in made]


def end_fiber(fiber_id: str) -> None:
    """Have a fiber be done, as its worker does, and its owner's pages notified."""
    found = Fiber.objects.filter(pk=fiber_id)
    found.update(status="completed", finished_at=timezone.now())
    fiber = found.get()
    notify_conversation(fiber.owner_id, str(fiber.scope))


def _losses(at: str) -> dict[str, Any]:
    return {
        "id": "losses",
        "since": at,
        "lost_at": at,
        "counted_at": at,
        "losses": 2,
        "memory_losses": 0,
        "steps": 1,
        "work": 0,
    }


def executor_token(user_id: int) -> str:
    """A token of the user's that opens the calls of the lab, and nothing else."""
    return create_token(get_user_model()._default_manager.get(pk=user_id), name="lab", scopes=["execute:lab"])[1]
