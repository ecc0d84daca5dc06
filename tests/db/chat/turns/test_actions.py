"""Actions in turns: what they may do, what a crash leaves, and who decides about them."""

import asyncio
import base64
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from chat.errors import CallChanged, CallDecided
from chat.files import attachments
from chat.models import AgentInstance, Attachment, Turn
from chat.operations.removal import delete_instance
from chat.streams.reader import read
from chat.turns.admission.effects import replay_effect
from chat.turns.admission.stop import cancel_turn
from fibers.models import Fiber
from fibers.testing import crash_after, run_until_idle
from sessions_app.core.messages.shapes import Part
from tests.db.chat.turns.agents.action_agents import EFFECTS, PNG, Rules, fresh_rules
from tests.db.chat.turns.agents.answering import Desk, on_record
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONValue, dump, fingerprint, load
from tools_app.core.action_rules import ActionStatus
from tools_app.core.tool_calls import CallStatus
from tools_app.errors import EditInvalid
from tools_app.models import ActionRecord, ToolCallRecord

from .conftest import MakeRoom, status_of, text_of
from .refunds import REFUND, grant, part

__all__ = ["fresh_rules"]  # a fixture

RENAME = 'call tool rename {"name": "bob"} id=one\nsay: It says {result}.'
SEND = 'call tool send {"to": "bob"} id=one\nsay: It says {result}.'
POST = 'call tool post {"to": "bob"} id=one\nsay: It says {result}.'


@pytest.fixture
def clerk(make_room: MakeRoom) -> Desk:
    return Desk(make_room("clerk"))


@pytest.fixture
def warden(make_room: MakeRoom) -> Desk:
    return Desk(make_room("warden"))


def again(script: str, call_id: str = "two") -> str:
    """The same under another id."""
    return script.replace("id=one", f"id={call_id}")


async def output(desk: Desk, call_id: str = "one") -> JSONValue:
    return (await part(desk, call_id)).get("output")


async def denied(desk: Desk, words: str) -> None:
    found = await output(desk)
    assert isinstance(found, dict)
    error = found["error"]
    assert isinstance(error, dict)
    assert error["name"] == "ActionDenied"
    assert words in str(error["message"])
    assert EFFECTS == []


async def effects() -> list[ActionRecord]:
    return await db(lambda: list(ActionRecord.objects.order_by("pk")))


# --- permissions -----------------------------------------------------------------------------------------------------


async def test_an_action_needs_the_permissions_of_its_user(clerk: Desk) -> None:
    turn = await clerk.room.say(RENAME)
    assert status_of(turn) == "completed"
    await denied(clerk, "auth.change_user")
    await grant(clerk)
    await clerk.room.say(again(RENAME))
    assert await output(clerk, "two") == "renamed bob"
    assert EFFECTS == [("rename", "bob")]


async def test_the_permissions_of_a_user_who_is_not_active_do_not_count(clerk: Desk) -> None:
    await grant(clerk)
    admission = await clerk.room.admit(RENAME)
    await db(lambda: User.objects.update(is_active=False, is_superuser=True))
    await run_until_idle(skip_delays=True)
    assert (await clerk.room.turn(admission.turn.pk)).finished_at is not None
    assert EFFECTS == []


async def test_nobody_is_asked_about_an_action_that_is_not_allowed(clerk: Desk) -> None:
    await clerk.room.say(REFUND)
    await denied(clerk, "auth.change_user")
    assert await clerk.room.handle.pending_approvals() == []
    assert [row.status for row in await db(lambda: list(ToolCallRecord.objects.all()))] == [CallStatus.SUCCEEDED]


async def test_a_permission_that_is_taken_away_while_the_question_waits_denies(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [asked] = await clerk.room.handle.pending_approvals()
    await grant(clerk, granted=False)
    assert await clerk.room.handle.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)
    await denied(clerk, "auth.change_user")
    assert await effects() == []


@pytest.mark.parametrize("granted", [True, ("auth.change_user", "x")])
async def test_a_turn_grants_permissions_itself(warden: Desk, granted: Any) -> None:
    Rules.turn = granted
    await warden.room.say(RENAME)
    assert await output(warden) == "renamed bob"


@pytest.mark.parametrize("granted", [False, (), "auth.change_user", RuntimeError("hidden"), 7])
async def test_a_turn_that_grants_nothing_denies(warden: Desk, granted: Any) -> None:
    await grant(warden)
    Rules.turn = granted
    await warden.room.say(RENAME)
    await denied(warden, "")
    assert "hidden" not in str(await output(warden))


@pytest.mark.parametrize(("decision", "words"), [(False, "not allowed"), ("only on Fridays", "only on Fridays")])
async def test_an_agent_denies_an_action_whatever_is_granted(warden: Desk, decision: Any, words: str) -> None:
    Rules.turn, Rules.action = True, decision
    await warden.room.say(RENAME)
    await denied(warden, words)


async def test_an_agent_allows_an_action_without_the_permission_and_sees_what_is_missing(warden: Desk) -> None:
    Rules.action = True
    await warden.room.say(RENAME)
    assert await output(warden) == "renamed bob"
    turn, context = Rules.seen
    assert (turn.user_id, turn.continuation) == (warden.room.key.owner_id, False)
    assert (context.action, context.input, context.missing) == ("rename", {"name": "bob"}, ("auth.change_user",))
    assert not context.approved


async def test_it_is_decided_before_the_question_and_again_after_the_approval(warden: Desk) -> None:
    Rules.turn = True
    await warden.room.say(REFUND)
    [asked] = await warden.room.handle.pending_approvals()
    assert [context.approved for context in Rules.seen[1::2]] == [False]
    Rules.action = "the shop has closed"
    assert await warden.room.handle.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)
    await denied(warden, "the shop has closed")
    assert [(context.approved, context.risk) for context in Rules.seen[1::2]] == [(False, "high"), (True, "high")]


async def test_the_input_of_an_approved_action_is_not_rewritten(warden: Desk) -> None:
    Rules.turn = True
    await warden.room.say(REFUND)
    [asked] = await warden.room.handle.pending_approvals()
    Rules.rewrites = {"order": "A-1", "amount": 5000}
    assert await warden.room.handle.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)
    await denied(warden, "approved")


# --- crashes ---------------------------------------------------------------------------------------------------------


async def test_a_settled_effect_is_not_repeated_when_the_worker_dies_before_the_record(clerk: Desk) -> None:
    Rules.dies = "unrecorded"
    turn = await clerk.room.say(SEND)
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 2)
    assert EFFECTS == [("send", "bob", 1)]
    assert await output(clerk) == "sent to bob"
    assert [p["data"] for p in await replies(clerk)] == [{"to": "bob"}]


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_what_died_in_the_middle_is_reported_as_unknown(clerk: Desk, moment: str) -> None:
    Rules.dies = moment
    turn = await clerk.room.say(SEND)
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 2)
    assert len(EFFECTS) == (moment == "after")
    assert "ActionPending" in str(await output(clerk))
    [row] = await effects()
    assert (row.status, row.is_explicit) == (ActionStatus.PENDING, False)


async def test_an_explicit_key_goes_on_after_its_lease_with_the_same_idempotency_key(clerk: Desk) -> None:
    Rules.dies = "after"
    await clerk.room.say(POST)
    assert "ActionPending" in str(await output(clerk))
    await db(lambda: ActionRecord.objects.update(lease_until=timezone.now() - timedelta(seconds=1)))
    await clerk.room.say(again(POST))
    assert await output(clerk, "two") == "posted to bob"
    assert EFFECTS == [("post", "bob", "bob")] * 2
    await clerk.room.say(again(POST, "three"))
    assert await output(clerk, "three") == "posted to bob"
    assert len(EFFECTS) == 2


async def test_a_result_whose_turn_ended_without_it_is_given_to_its_call(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [asked] = await clerk.room.handle.pending_approvals()
    await clerk.room.handle.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)
    [row] = await effects()
    assert not await db(replay_effect, row.pk)  # it has its result

    def lose() -> None:
        ToolCallRecord.objects.update(status=CallStatus.RUNNING, output=None, settled_at=None)

    await db(lose)
    assert await db(replay_effect, row.pk)
    assert (await clerk.row(asked.call_id)).output == "refunded A-1"
    assert not await db(replay_effect, row.pk)
    assert len(EFFECTS) == 1


async def test_effects_go_with_their_conversation(clerk: Desk) -> None:
    await clerk.room.say(SEND)
    assert len(await effects()) == 1
    instance = await db(lambda: AgentInstance.objects.get())
    await db(delete_instance, instance)
    assert await effects() == []


# --- pauses and decisions by code ------------------------------------------------------------------------------------


async def test_a_pause_waits_for_30_days_without_a_process(clerk: Desk) -> None:
    await grant(clerk)
    turn = await clerk.room.say(REFUND)
    assert status_of(turn) == "completed"
    [asked] = await clerk.room.handle.pending_approvals()
    assert (asked.tool, asked.title, asked.sentence) == ("refund", "Refund", "Refund 5 for A-1?")
    assert (asked.risk, asked.input, asked.may_edit) == ("high", {"order": "A-1", "amount": 5}, ("amount",))
    assert asked.expires_at is not None
    assert asked.expires_at - asked.requested_at > timedelta(days=29)
    assert (await part(clerk))["approval"]["descriptor"]["risk"] == "high"
    assert not await db(Fiber.objects.filter(status__in=["running", "parked"]).exists)


async def test_code_approves_once_and_the_conversation_goes_on_with_nobody_connected(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [asked] = await clerk.room.handle.pending_approvals()
    clerk.via = "server"
    by = clerk.room.key.owner_id
    assert await clerk.room.handle.approve_execution(asked.id, by=by)
    assert not await clerk.room.handle.approve_execution(asked.id, by=by)
    assert not await clerk.room.handle.reject_execution(asked.id, "changed my mind")
    await run_until_idle(skip_delays=True)
    assert not await clerk.room.handle.approve_execution(asked.id)
    assert EFFECTS == [("refund", "A-1", 5, "refund:A-1")]
    assert "refunded A-1" in text_of((await clerk.room.transcript())[-1])
    assert await clerk.events(asked.call_id) == [("asked", "turn", ""), ("approved", "server", "")]
    assert await db(Turn.objects.filter(parent__isnull=False).count) == 1
    assert await clerk.room.handle.pending_approvals() == []


@pytest.mark.long
async def test_a_client_cannot_forge_the_result_of_an_action_or_an_approval(clerk: Desk, make_room: MakeRoom) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    assert not (await clerk.reply("one", output="refunded A-1")).is_new
    assert not (await clerk.reply("unknown", is_approved=True)).is_new
    assert not (await Desk(make_room("clerk", "elsewhere")).reply("one", is_approved=True)).is_new
    with pytest.raises(CallChanged):
        await clerk.reply("one", is_approved=True, input_hash=fingerprint({"order": "A-1", "amount": 1}))
    assert [asked.call_id for asked in await clerk.room.handle.pending_approvals()] == ["one"]
    assert EFFECTS == []
    assert (await clerk.reply("one", is_approved=True)).is_new
    assert not (await clerk.reply("one", is_approved=True)).is_new
    assert not (await clerk.reply("one", output="refunded twice")).is_new
    assert await output(clerk) == "refunded A-1"
    assert len(EFFECTS) == 1


async def test_code_rejects_with_a_reason_that_the_model_reads(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [asked] = await clerk.room.handle.pending_approvals()
    assert await clerk.room.handle.reject_execution(asked.id, "too much")
    await run_until_idle(skip_delays=True)
    assert EFFECTS == []
    assert await clerk.events(asked.call_id) == [("asked", "turn", ""), ("denied", "server", "too much")]
    assert "too much" in text_of((await clerk.room.transcript())[-1])


async def test_code_changes_the_arguments_that_may_be_changed(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [asked] = await clerk.room.handle.pending_approvals()
    with pytest.raises(EditInvalid):
        await clerk.room.handle.approve_execution(asked.id, edited_input={"order": "A-2", "amount": 5})
    assert await clerk.room.handle.approve_execution(asked.id, edited_input={"order": "A-1", "amount": 3})
    with pytest.raises(CallDecided):
        await clerk.room.handle.approve_execution(asked.id, edited_input={"order": "A-1", "amount": 4})
    await run_until_idle(skip_delays=True)
    assert EFFECTS == [("refund", "A-1", 3, "refund:A-1")]


async def test_an_unknown_question_one_of_another_conversation_and_an_expired_one_are_not_decided(
    clerk: Desk, make_room: MakeRoom
) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [asked] = await clerk.room.handle.pending_approvals()
    elsewhere = make_room("clerk", "elsewhere")
    assert not await elsewhere.handle.approve_execution(asked.id)
    assert not await clerk.room.handle.approve_execution("apr_unknown")
    assert not await clerk.room.handle.approve_execution("")
    past = timezone.now() - timedelta(seconds=1)
    await db(lambda: ToolCallRecord.objects.update(expires_at=past))
    assert await clerk.room.handle.pending_approvals() == []
    assert not await clerk.room.handle.approve_execution(asked.id)
    assert EFFECTS == []


async def test_a_decision_about_an_older_question_of_the_same_call_id_decides_nothing(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say(REFUND)
    [old] = await clerk.room.handle.pending_approvals()
    assert await clerk.room.handle.reject_execution(old.id)
    await clerk.room.say(REFUND)
    [new] = await clerk.room.handle.pending_approvals()
    await db(lambda: ToolCallRecord.objects.update(call_id=new.call_id))
    assert not await clerk.room.handle.approve_execution(old.id)
    assert [each.id for each in await clerk.room.handle.pending_approvals()] == [new.id]


# --- the reply -------------------------------------------------------------------------------------------------------


async def replies(desk: Desk) -> list[Part]:
    """What follows the text of the last answer."""
    parts = (await desk.room.transcript())[-1]["parts"]
    last = max(index for index, each in enumerate(parts) if each["type"] == "text")
    return parts[last + 1 :]


CHART = 'call tool chart {"count": 2} id=one\nsay: Done.'


async def test_parts_follow_the_text_in_the_order_in_which_they_were_attached(clerk: Desk) -> None:
    await clerk.room.say(CHART)
    attached = await replies(clerk)
    assert [each["type"] for each in attached] == ["file", "file", "source-url", "data-table"]
    assert [each.get("filename") for each in attached[:2]] == ["chart-0.png", "chart-1.png"]
    assert attached[0]["mediaType"] == "image/png"
    assert (attached[2]["url"], attached[2]["title"]) == ("https://example.org/data", "Data")
    assert attached[3]["data"] == [[1, 2]]


async def test_files_of_a_reply_belong_to_their_conversation_and_hold_the_bytes(clerk: Desk) -> None:
    await clerk.room.say(CHART)
    attached = await replies(clerk)
    rows = await db(lambda: list(Attachment.objects.select_related("instance").order_by("name")))
    assert [row.instance is not None and row.claimed_at is not None for row in rows] == [True, True]
    assert [attachments.attachment_id(each["url"]) for each in attached[:2]] == [row.pk for row in rows]
    assert await db(attachments.read_bytes, rows[1]) == PNG + bytes([1])


async def test_the_model_reads_which_files_it_made_and_is_sent_none_of_the_parts(clerk: Desk) -> None:
    await clerk.room.say(CHART)
    await clerk.room.say("say: Again.")
    sent = dump(clerk.room.model.requests[-1]["messages"])
    assert "Done." in sent
    assert "chart-0.png" in sent
    assert base64.b64encode(PNG[:30]).decode() not in sent
    assert "example.org" not in sent


@pytest.mark.parametrize("key", ["model:0", "call:one", "ending"])
async def test_parts_are_delivered_once_however_often_the_turn_is_cut(clerk: Desk, key: str) -> None:
    with crash_after(key):
        turn = await clerk.room.say(CHART)
    assert (status_of(turn), turn.fiber.attempt) == ("completed", 2)
    attached = await replies(clerk)
    assert [each["type"] for each in attached] == ["file", "file", "source-url", "data-table"]
    chunks = [load(record.text) for record in await read(turn.pk, 0)]
    assert sum(chunk["type"] in {"file", "source-url", "data-table"} for chunk in chunks) == 4
    assert chunks[-1]["type"] == "finish"
    assert text_of((await clerk.room.transcript())[-1]) == "Done."


async def test_parts_of_an_approved_action_are_in_the_answer_that_goes_on(clerk: Desk) -> None:
    await grant(clerk)
    await clerk.room.say('call tool insure {"order": "A-1"} id=one\nsay: It says {result}.')
    [asked] = await clerk.room.handle.pending_approvals()
    assert await clerk.room.handle.approve_execution(asked.id)
    await run_until_idle(skip_delays=True)
    assert [each["data"] for each in await replies(clerk)] == ["A-1"]


async def test_a_reply_has_at_most_32_parts(clerk: Desk) -> None:
    await clerk.room.say('call tool cards {"count": 20} id=one\ncall tool cards {"count": 20} id=two\nsay: Done.')
    states = [(await part(clerk, call_id))["state"] for call_id in ("one", "two")]
    assert sorted(states) == ["output-available", "output-error"]
    assert len(await replies(clerk)) == 20  # a call that fails attaches nothing
    await clerk.room.say('call tool cards {"count": 32} id=three\nsay: Done.')
    assert len(await replies(clerk)) == 32


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"type": "file", "url": "https://example.org/a.png"}, "data: URL"),
        ({"type": "source-url", "url": "javascript:alert(1)"}, "http"),
        ({"type": "data-think-status", "data": 1}, "data-chart"),
        ({"type": "text", "text": "x"}, "data-chart"),
        ({"type": "data-card"}, "data-chart"),
        ({"type": "data-card", "data": "x" * 70_000}, "characters"),
        ({"type": "data-card", "data": 1}, "failed after all"),
    ],
)
async def test_what_is_no_part_of_a_reply_is_refused_and_a_failed_call_attaches_nothing(
    clerk: Desk, given: dict[str, Any], words: str
) -> None:
    await clerk.room.say(f"call tool wrong {dump({'part': given})} id=one\nsay: Done.")
    found = await part(clerk)
    assert found["state"] == "output-error"
    assert words in found["errorText"]
    assert await replies(clerk) == []


async def test_files_by_their_urls_are_the_owners_own_or_say_that_they_were_not_kept(
    clerk: Desk, settings: Any
) -> None:
    owner = clerk.room.key.owner_id
    assert owner is not None
    bob = await db(lambda: User.objects.create_user("bob"))
    mine = await db(partial(attachments.store_bytes, owner, b"mine", name="mine.txt"))
    his = await db(partial(attachments.store_bytes, bob.pk, b"his", name="his.txt"))
    urls = [attachments.url_of(mine.pk), attachments.url_of(his.pk), "data:text/plain;base64,aGk="]
    settings.THINK_FILES_PER_USER = 1
    await clerk.room.say(f"call tool show {dump({'urls': urls})} id=one\nsay: Done.")
    first, second, third = await replies(clerk)
    assert (first["type"], first["filename"]) == ("file", "mine.txt")
    assert (second["type"], third["type"]) == ("data-attachment-failed",) * 2
    assert await output(clerk) == "shown"
    assert await db(lambda: Attachment.objects.get(pk=his.pk).instance_id) is None


async def test_a_turn_that_is_stopped_keeps_what_was_attached(clerk: Desk) -> None:
    model = clerk.room.model
    with on_record("call:one") as recorded:
        admission = await clerk.room.admit(f"{CHART}\nstream 300 words at 20/s")
        running = asyncio.create_task(run_until_idle(skip_delays=True))
        await recorded.wait()
        await db(cancel_turn, admission.turn.pk)
        await running
    turn = await clerk.room.turn(admission.turn.pk)
    assert status_of(turn) == "aborted"
    kinds = [each["type"] for each in (await clerk.room.transcript())[-1]["parts"]]
    assert kinds.count("file") == 2
    assert model.requests
