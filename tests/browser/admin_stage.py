"""A staff's view of a lived-in product for the admin's browser tests. Runs within the product, called by a `Hand`."""

import base64
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from asgiref.sync import async_to_sync
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.utils import timezone

from chat.access import api_tokens
from chat.durable_streams.subscriptions import put_subscription, read_wanted
from chat.durable_streams.waking import MAX_FAILURES
from chat.durable_streams.writing import Creation, create_stream
from chat.files import attachments
from chat.instances.rows import key_of
from chat.instances.workspaces import InstanceWorkspace
from chat.models import AgentInstance, AgentMessage, AgentRun, Revert, StreamSegment, StreamSubscription, Turn
from chat.runtime.add_messages import AppendAuthor, edit_answer
from fibers.models import EffectEntry, EffectState, Fiber, FiberStep
from fibers.models.schedules import Schedule, ScheduleRun
from sessions_app.compactions.services import add_compaction
from sessions_app.context.history import ContextOwner
from sessions_app.context.store import put_entry, write_text
from sessions_app.core.context.context_blocks import Entry
from sessions_app.core.messages.shapes import Message, Part
from sessions_app.messages.services import append_messages, create_session, fork_session
from thinkproject.kernel.ids import new_id
from tools_app.calls.services import pause_call
from tools_app.core.files.workspace import Put
from tools_app.core.tool_calls import CallStatus, ToolCall, ToolPause
from tools_app.models import Execution, ExecutionCall, PermissionRule, ToolCallRecord, WorkspaceEntry

LONG_TITLE = "How the quarterly reconciliation of supplier invoices went wrong in the northern region, and what to do"
LONG_WORD = "Donaudampfschifffahrtselektrizitätenhauptbetriebswerkbauunterbeamtengesellschaft"


def furnish(user_id: int) -> dict[str, Any]:
    """Give a user a conversation with everything in it, and rows in every list; returns ids by what they are of."""
    instance = _conversation(user_id, LONG_TITLE)
    session_id = str(instance.session_id)
    turn = _turn(instance, "completed", "a2", cost=Decimal("0.0123"))
    failed = _turn(instance, "failed", "a9", error_code="rate_limited", error_text="The provider asks to wait. " * 6)
    running = _turn(instance, "running", "a10")
    append_messages(session_id, _messages(turn.pk), turn_id="")
    _attribute(session_id, {"u1": turn.pk, "a2": turn.pk, "u3": failed.pk})
    edited, _ = edit_answer(
        key_of(instance),
        "a4",
        {"parts": [{"type": "text", "text": "The corrected answer, in the words of a person."}]},
        shows=True,
        by=AppendAuthor(user_id=user_id, via="admin", action="edit", replaces="a4"),
    )
    add_compaction(session_id, first_id="u1", last_id="a2", summary="They greeted each other. " * 8)
    fork_session(session_id, "a2", name="Another way")
    session = ContextOwner(session_id=session_id)
    write_text(session, "memory", lambda _held: f"Likes tea. {LONG_WORD} " * 5)
    write_text(ContextOwner(owner_id=user_id), "profile", lambda _held: "Works in Oslo.")
    put_entry(
        session, "handbook", Entry(key="refunds", content="Within 30 days.", title="Refunds", description="Rules")
    )
    token, _ = api_tokens.create_token(User.objects.get(pk=user_id), name="The laptop of the accounting department")
    file = attachments.store_bytes(user_id, b"x" * 4000, name=f"{LONG_WORD}.txt")
    attachments.claim(user_id, [file.id], instance)
    call = _call(instance, turn)
    StreamSegment.objects.create(stream=turn.pk, first_offset=0, last_offset=20, data='{"type":"start"}')
    FiberStep.objects.create(fiber=turn.fiber, step_key="model:0", value={"finish": "stop"}, attempt=1)
    return {
        "instance": instance.pk,
        "session": session_id,
        "turn": turn.pk,
        "failed": failed.pk,
        "running": running.pk,
        "fiber": turn.fiber_id,
        "edited": edited,
        "token": token.pk,
        "file": file.id,
        "call": call.pk,
        "tools": _tools(instance, turn),
        "durable": _durable(instance, turn),
        "streams": _streams(user_id),
        "undone": _undone(instance, turn),
    }


def grow(user_id: int, messages: int, conversations: int) -> str:
    """Give a user one conversation of so many messages, and so many others; returns the id of the first."""
    instance = _conversation(user_id, "A very long talk")
    said: list[Message] = [
        {
            "id": f"m{n}",
            "role": "assistant" if n % 2 else "user",
            "parts": [{"type": "text", "text": f"Line {n}. " * 12}],
        }
        for n in range(messages)
    ]
    append_messages(str(instance.session_id), said)
    now = timezone.now()
    rows = [
        AgentInstance(
            owner_id=user_id,
            agent="assistant",
            name=f"bulk-{number}",
            title=f"{LONG_TITLE} ({number})"[:100],
            active_at=now - timedelta(minutes=number),
        )
        for number in range(conversations)
    ]
    AgentInstance.objects.bulk_create(rows)
    return instance.pk


def empty(user_id: int) -> str:
    """Give a user a conversation in which nothing was said; returns its id."""
    return _conversation(user_id, "").pk


def allow_only(user_id: int, *codenames: str) -> None:
    """Make a user a member of the staff with these permissions and no others."""
    user = User.objects.get(pk=user_id)
    user.is_staff, user.is_superuser = True, False
    user.save()
    user.user_permissions.set(Permission.objects.filter(codename__in=codenames))


def _conversation(user_id: int, title: str) -> AgentInstance:
    instance = AgentInstance(owner_id=user_id, agent="assistant", name=new_id("chat"), title=title)
    instance.session = create_session(owner_id=user_id, scope=instance.id)
    instance.save(force_insert=True)
    return instance


def _messages(turn_id: str) -> list[Message]:
    call: Part = {
        "type": "tool-weather",
        "toolCallId": f"c-{turn_id}",
        "state": "output-available",
        "input": {"city": "Oslo", "days": 3},
        "output": {"celsius": [3, 4, 5], "note": LONG_WORD},
    }
    answer: list[Part] = [
        {"type": "step-start"},
        {"type": "reasoning", "text": "The person wants the weather. Let me look it up."},
        call,
        {"type": "text", "text": "It will be cold:\n\n- Monday 3°\n- Tuesday 4°\n\nTake a coat. " + "Really. " * 40},
        {"type": "source-url", "sourceId": "s1", "url": "https://weather.example/oslo", "title": "The weather in Oslo"},
    ]
    picture: Part = {
        "type": "file",
        "mediaType": "image/png",
        "filename": "sky.png",
        "url": "https://elsewhere.example/x",
    }
    return [
        {"id": "u1", "role": "user", "parts": [{"type": "text", "text": "What is the weather in Oslo?"}, picture]},
        {"id": "a2", "role": "assistant", "parts": answer},
        {"id": "u3", "role": "user", "parts": [{"type": "text", "text": f"And in {LONG_WORD}? {'x' * 300}"}]},
        {"id": "a4", "role": "assistant", "parts": [{"type": "text", "text": "مرحبا، الطقس بارد جدا اليوم."}]},
    ]


def _turn(instance: AgentInstance, status: str, answer_id: str, **fields: Any) -> Turn:
    now = timezone.now()
    instance.turn_count += 1
    instance.save(update_fields=["turn_count"])
    is_final = status != "running"
    fiber = Fiber.objects.create(
        name="chat.turn",
        status=status,
        lane=f"instance:{instance.pk}",
        lane_position=instance.turn_count,
        owner_id=instance.owner_id,
        worker="worker-1",
        lease_until=None if is_final else now + timedelta(hours=12),
        attempt=2,
        recoveries=1,
        finished_at=now if is_final else None,
    )
    turn = Turn.objects.create(
        instance=instance,
        session_id=str(instance.session_id),
        fiber=fiber,
        position=instance.turn_count,
        request_id=new_id("req"),
        trigger="submit-message",
        generation=0,
        assistant_id=answer_id,
        model_name="openai/gpt-oss-120b-with-a-long-name",
        input_tokens=12_345,
        output_tokens=678,
        started_at=now - timedelta(seconds=7),
        finished_at=now if is_final else None,
        **fields,
    )
    Fiber.objects.filter(pk=fiber.pk).update(payload={"turn_id": turn.pk})
    return turn


def _attribute(session_id: str, turns: dict[str, str]) -> None:
    from sessions_app.models import Message as Row

    for message_id, turn_id in turns.items():
        Row.objects.filter(session_id=session_id, message_id=message_id).update(turn_id=turn_id)


def _call(instance: AgentInstance, turn: Turn) -> ToolCallRecord:
    pause = ToolPause(status=CallStatus.ASKED, approval_id=new_id("apr"))
    call = ToolCall(call_id=new_id("call"), tool_name="pay_invoice", input={"amount": 5, "to": LONG_WORD})
    return pause_call(call, pause, turn_id=turn.pk, scope=instance.pk, owner_id=instance.owner_id)


def _durable(instance: AgentInstance, turn: Turn) -> list[str]:
    """Background work that was interrupted, a schedule with a run, and a run of another agent; returns their pages."""
    now = timezone.now()
    payload = {"instance_id": instance.pk, "method": "report", "payload": {"note": LONG_WORD}, "id": None}
    ended = {"owner_id": instance.owner_id, "attempt": 1, "started_at": now, "finished_at": now}
    name = "chat.agent_fiber:assistant.report"
    scope = {"scope": instance.pk, "status": "interrupted", "reason": "not_restarted"}
    work = Fiber.objects.create(name=name, payload=payload, stash={"note": LONG_WORD}, **scope, **ended)
    FiberStep.objects.create(fiber=work, step_key="fetch", value={"found": LONG_WORD}, attempt=1)
    schedule = Schedule.objects.create(
        scope=instance.pk,
        owner_id=instance.owner_id,
        title=LONG_TITLE,
        kind="cron",
        spec="0 9 * * *",
        zone="Europe/Oslo",
        function="chat.scheduled",
        payload={"prompt": LONG_WORD},
        status="paused",
        created_by="person",
    )
    fiber = Fiber.objects.create(name="chat.scheduled", status="completed", result={"turn_id": turn.pk}, **ended)
    ScheduleRun.objects.create(schedule=schedule, due_at=now, fiber=fiber)
    run = AgentRun.objects.create(
        parent=instance,
        owner_id=instance.owner_id,
        run_id=new_id("run"),
        agent="assistant",
        parent_turn=turn,
        call_id="c1",
        display={"name": LONG_WORD},
        input_preview={"task": LONG_TITLE},
        outcome={"status": "error", "error": LONG_TITLE},
        finished_at=now,
    )
    fibers = [f"think_fibers/fiber/{each.pk}" for each in (work, fiber)]
    return [
        *fibers,
        _effect(now),
        f"think_fibers/schedule/{schedule.pk}",
        f"think_chat/agentrun/{run.pk}",
        _talk(instance),
    ]


def _effect(now: datetime) -> str:
    """An effect that knows rows and failed at its last look; returns its page."""
    error = f"LookupError: {LONG_TITLE}"
    effect, _ = EffectState.objects.get_or_create(
        name=LONG_WORD, defaults={"is_primed": True, "looked_at": now, "looks": 7, "error": error}
    )
    EffectEntry.objects.bulk_create(
        [EffectEntry(effect=effect, object_pk=f"{at}") for at in range(3)], ignore_conflicts=True
    )
    return f"think_fibers/effectstate/{quote(effect.pk)}"


def _talk(instance: AgentInstance) -> str:
    """Messages of agents to each other; returns the page of one."""
    asked, *_ = [
        AgentMessage.objects.create(
            room=instance,
            sender=sender,
            target=target,
            role=role,
            content=f"Look into the invoices of the northern region, please. {LONG_WORD}",
            request_id=request,
            call_chain=["planner"],
            processed_at=timezone.now() if role != "user" else None,
        )
        for sender, target, role, request in (
            ("planner", instance.agent, "user", new_id("req")),
            (instance.agent, "planner", "assistant", ""),
            (instance.agent, "planner", "system", ""),
            ("", instance.agent, "user", ""),
        )
    ]
    return f"think_chat/agentmessage/{asked.pk}"


def _streams(user_id: int) -> list[str]:
    """Durable streams, one a fork that will end, and subscriptions, one of them given up; returns their pages."""
    create_stream(user_id, Creation(path="wakes", content_type="application/json"))
    row, _ = create_stream(user_id, Creation(path=f"jobs/{LONG_WORD}", content_type="text/plain", body=b"x" * 4000))
    fork, _ = create_stream(user_id, Creation(path="branch", forked_from=row.path, ttl_seconds=3600, is_closed=True))
    hook = {"type": "webhook", "pattern": "jobs/**", "webhook": {"url": "https://hooks.example/secret"}}
    pull = {"type": "pull-wake", "streams": [row.path], "wake_stream": "wakes", "description": LONG_TITLE}
    made = [
        put_subscription(user_id, read_wanted(name, body), root="https://here.example/v1/stream")[0]
        for name, body in (("worker", hook), (LONG_WORD, pull))
    ]
    known = {"failures": MAX_FAILURES, "error_text": "The server answered with 503. " * 8}
    StreamSubscription.objects.filter(pk=made[0].pk).update(**known)
    streams = [f"think_chat/durablestream/{each.pk}" for each in (row, fork)]
    return [*streams, *(f"think_chat/streamsubscription/{each.pk}" for each in made)]


def _undone(instance: AgentInstance, turn: Turn) -> str:
    """Rules of each level, and an undo with its redo; returns the page of the redo."""
    for level, key, pattern in (("site", "bash", "rm *"), ("conversation", "edit", f"/{LONG_WORD}/*")):
        of = {"owner_id": instance.owner_id, "scope": instance.pk} if level == "conversation" else {}
        PermissionRule.objects.create(level=level, action="deny", key=key, pattern=pattern, **of)
    made = {"instance": instance, "session_id": turn.session_id, "turn_id": turn.pk, "actor_id": instance.owner_id}
    undo = Revert.objects.create(**made, includes_files=True, includes_messages=True, file_count=3, left_count=1)
    return f"revert/{Revert.objects.create(**made, redoes=undo, includes_files=True, file_count=3).pk}"


def _tools(instance: AgentInstance, turn: Turn) -> list[str]:
    """Files and code with everything in them; returns their pages."""
    files = InstanceWorkspace(key_of(instance), instance_id=instance.pk)
    long = f"/{LONG_WORD}/{LONG_WORD}.md"
    async_to_sync(files.apply)([Put(path=long, content=b"Line. " * 20_000), Put(path="/sky.png", content=_PICTURE)])
    execution = Execution.objects.create(
        key=new_id("key"),
        scope="scope",
        owner_id=instance.owner_id,
        turn_id=turn.pk,
        call_id="c1",
        code=f"// {LONG_WORD}\nconst found = await tools.search({{query: 'x'}});\nfound.length",
        seed="0",
        clock_ms=0,
        status="failed",
        error=f"Error: {LONG_WORD}",
        console=[{"level": "log", "text": LONG_WORD * 3}],
        ended_at=timezone.now(),
    )
    ExecutionCall.objects.create(
        execution=execution,
        ordinal=1,
        name="tools.search",
        input=[{"query": LONG_WORD}],
        input_hash="",
        status="succeeded",
        output={"found": [LONG_WORD] * 40},
        settled_as=1,
        duration_ms=1_234,
    )
    entries = WorkspaceEntry.objects.filter(kind="file").order_by("path_key")
    workspace_id = entries[0].workspace_id
    return [
        f"execution/{execution.pk}",
        f"storedworkspace/{workspace_id}",
        *(f"workspaceentry/{entry.pk}" for entry in entries.filter(workspace_id=workspace_id)),
    ]


_PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
