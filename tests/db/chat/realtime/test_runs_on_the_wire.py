"""Runs of other agents as the sockets of their parent get them: live, late, once more, and when notices are lost."""

import asyncio
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from chat.instances.rows import ensure_instance
from chat.models import AgentInstance, AgentRun
from chat.realtime import monitor
from chat.realtime.runs import relay
from chat.streams.logs.database_log import write_segments
from chat.streams.records import Record
from chat.sub_agents import views
from fibers.testing import run_until_idle
from tests.db.chat.conftest import make_turn
from tests.db.chat.notes import ROOT, Connect, keys
from tests.db.chat.run_events import STEP, delta, events, events_until, sequences, text_of
from tests.db.chat.runs_by_hand import end_run, start_run
from thinkproject.kernel.aio import db

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("notes")]


@pytest.fixture(autouse=True)
def _idle_soon(settings: Any) -> None:
    settings.THINK_STREAM_IDLE_SECONDS = 0.1


def said(run: AgentRun, texts: list[str], *, first: int = 0) -> None:
    """Put chunks into the log of the child's turn, as a worker does."""
    assert run.turn_id is not None
    write_segments(run.turn_id, [Record(first + at, text) for at, text in enumerate(texts)])


async def test_every_viewer_of_the_parent_is_sent_a_run_from_its_start_to_its_end(
    connect: Connect, alice: User
) -> None:
    one, other = await connect(ROOT), await connect(ROOT)
    run = await db(start_run, alice, "say: From below.")
    await run_until_idle(skip_delays=True)
    await db(lambda: end_run(run, summary="From below."))
    for socket in (one, other):
        sent = await events(socket)
        assert [frame.get("replay", False) for frame in sent] == [False] * len(sent)
        assert sequences(sent) == list(range(len(sent)))
        assert {frame["parentToolCallId"] for frame in sent} == {"c1"}
        begin, end = sent[0]["event"], sent[-1]["event"]
        assert (begin["kind"], begin["runId"], begin["agentType"]) == ("started", "r1", "note-under-test")
        assert (begin["display"], begin["inputPreview"]) == ({"name": "Note"}, {"task": "say: From below."})
        assert (end["kind"], end["summary"]) == ("finished", "From below.")
        assert text_of(sent) == "From below."


async def test_a_late_client_is_sent_the_same_again_marked_as_such(connect: Connect, alice: User) -> None:
    live = await connect(ROOT)
    run = await db(start_run, alice, "say: From below.")
    await run_until_idle(skip_delays=True)
    await db(end_run, run)
    first = await events(live)
    late = await events(await connect(ROOT))
    assert {frame.pop("replay") for frame in late} == {True}
    assert late == first


async def test_who_comes_in_the_middle_gets_the_beginning_again_and_the_rest_live_without_a_gap(
    connect: Connect, alice: User
) -> None:
    run = await db(start_run, alice, "say: unused")
    await db(said, run, [STEP, delta("a"), delta("b")])
    late = await connect(ROOT)
    sent = await events_until(late, '"b"')
    await db(lambda: said(run, [delta("c")], first=3))
    sent += await events_until(late, '"c"')
    assert sequences(sent) == [0, 1, 2, 3, 4]
    assert [frame.get("replay", False) for frame in sent] == [True] * 4 + [False]
    await db(
        lambda: end_run(run, ok=False, status="interrupted", reason="no-progress", error="", childStillRunning=True)
    )
    [end] = await events(late)
    assert (end["sequence"], end["event"]["kind"], end["event"]["childStillRunning"]) == (5, "interrupted", True)
    await db(lambda: said(run, [delta("d")], first=4))
    assert await late.receive_nothing(timeout=0.5)  # the parent waits no longer for the child, which goes on


@pytest.mark.parametrize(
    ("outcome", "event"),
    [
        ({"status": "error", "error": "No."}, {"kind": "error", "runId": "r1", "error": "No."}),
        ({"status": "aborted", "reason": "enough"}, {"kind": "aborted", "runId": "r1", "reason": "enough"}),
        ({"status": "skipped", "error": "Cleared."}, {"kind": "aborted", "runId": "r1", "reason": "Cleared."}),
        (
            {"status": "interrupted", "error": "Late.", "reason": "budget-exceeded", "childStillRunning": False},
            {
                "kind": "interrupted",
                "runId": "r1",
                "error": "Late.",
                "reason": "budget-exceeded",
                "childStillRunning": False,
            },
        ),
        (
            {"status": "interrupted", "error": "", "reason": "other"},
            {"kind": "interrupted", "runId": "r1", "error": ""},
        ),
    ],
)
async def test_each_outcome_has_its_event(connect: Connect, alice: User, outcome: Any, event: Any) -> None:
    run = await db(start_run, alice, "say: unused")
    await db(lambda: end_run(run, ok=False, **outcome))
    assert (await events(await connect(ROOT)))[-1]["event"] == event


async def test_lost_notifications_of_start_and_end_are_noticed(
    connect: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(monitor, "LOOK_SECONDS", 0.2)
    monkeypatch.setattr(relay, "POLL_SECONDS", 0.2)
    socket = await connect(ROOT)
    runs = await db(lambda: [start_run(alice, "say: Heard.", f"r{at}", notify=False) for at in (1, 2)])
    await run_until_idle(skip_delays=True)
    for run in runs:
        await db(end_run, run, notify=False)
    sent = await events(socket, ends=2)
    for name in ("r1", "r2"):
        mine = [frame for frame in sent if frame["event"]["runId"] == name]
        assert (sequences(mine), text_of(mine)) == (list(range(len(mine))), "Heard.")


async def test_a_run_goes_on_with_the_turn_that_follows_a_persons_answer(connect: Connect, alice: User) -> None:
    run = await db(start_run, alice, "say: Before.")
    await run_until_idle(skip_delays=True)
    # As if the answer had ended with a question to a person, for which the run waits.
    await db(lambda: AgentRun.objects.filter(pk=run.pk).update(outcome=None, finished_at=None))
    socket = await connect(ROOT)
    await events_until(socket, '"finish"')

    @transaction.atomic  # a turn that has ended has said all: a relay that looks in between would find it empty
    def go_on() -> None:
        child = AgentInstance.objects.get(pk=run.child_id)
        turn = make_turn(child, status="completed", parent_id=run.turn_id, trigger="continue")
        write_segments(turn.pk, [Record(0, STEP), Record(1, delta("After."))])

    await db(go_on)
    await db(end_run, run)
    rest = await events(socket)
    again = await events(await connect(ROOT))
    assert text_of(rest) == "After."
    assert text_of(again) == "Before.After."
    assert sequences(again) == list(range(len(again)))
    assert sequences(rest) == sequences(again)[-3:]


async def test_the_newest_runs_are_sent_again_in_their_order_and_only_those_of_this_conversation(
    connect: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "SHOWN_RUNS", 2)

    def make() -> None:
        cleared = make_turn(ensure_instance(keys(alice)[0]))
        for at in range(3):
            end_run(start_run(alice, "say: x", f"r{at}"))
        AgentInstance.objects.filter(pk=cleared.instance_id).update(generation=1)
        end_run(start_run(alice, "say: x", "cleared", parent_turn=cleared))

    await db(make)
    sent = await events(await connect(ROOT), ends=2)
    assert [frame["event"]["runId"] for frame in sent if frame["event"]["kind"] == "started"] == ["r1", "r2"]


async def test_too_long_a_run_is_sent_again_in_part_and_goes_on_at_its_next_step(
    connect: Connect, alice: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relay, "REPLAY_BYTES", 100)
    progress: dict[str, Any] = {"progress": {"fraction": 0.5}, "progress_at": timezone.now()}
    run = await db(lambda: start_run(alice, "say: unused", **progress))
    await db(said, run, [STEP, delta("a"), delta("b" * 100), delta("c")])
    socket = await connect(ROOT)
    sent = await events_until(socket, "data-agent-progress")
    assert (text_of(sent), sent[-1]["event"]["unstoredId"].split(":")[0]) == ("a", run.pk)
    await db(lambda: said(run, [delta("d"), STEP, delta("e")], first=4))
    sent = await events_until(socket, '"e"')
    assert (sequences(sent), text_of(sent)) == ([6, 7], "e")
    await db(end_run, run)


async def test_a_run_that_is_deleted_ends_for_those_who_watch_it(connect: Connect, alice: User) -> None:
    socket = await connect(ROOT)
    run = await db(start_run, alice, "say: unused")
    await db(said, run, [STEP])
    await events_until(socket, "start-step")
    await db(run.delete)
    assert [frame["event"]["kind"] for frame in await events(socket)] == ["aborted"]


async def test_who_leaves_in_the_middle_of_a_run_leaves_no_task(connect: Connect, alice: User) -> None:
    before = asyncio.all_tasks()
    socket = await connect(ROOT)
    run = await db(start_run, alice, "say: unused")
    await db(said, run, [STEP, delta("a")])
    await events_until(socket, '"a"')
    await socket.disconnect()
    waiting = [task for task in asyncio.all_tasks() - before if "Event.wait" in repr(task.get_coro())]
    assert waiting == []
    await db(end_run, run)


async def test_others_and_the_child_itself_are_sent_nothing_of_it(connect: Connect, alice: User, bob: User) -> None:
    below, his = await connect(f"{ROOT}/sub/note-under-test/x"), await connect(ROOT, bob)
    run = await db(start_run, alice, "say: Mine.")
    await run_until_idle(skip_delays=True)
    await db(end_run, run)
    assert await below.receive_nothing(timeout=0.3)
    assert await his.receive_nothing(timeout=0.1)
