"""Actions that run: shared, replayed, failed, too slow, lost, undone."""

import asyncio
import threading
from dataclasses import replace

import pytest

from fibers.errors import LeaseLost, Parked
from thinkproject.kernel.aio import db
from thinkproject.kernel.jsonvalue import JSONObject
from tools_app.actions import ledger, run_action
from tools_app.actions.action import action
from tools_app.actions.compensation import Undo, compensation
from tools_app.actions.ledger import BegunAction
from tools_app.actions.run_action import RunAction
from tools_app.actions.undoing import undo_effect
from tools_app.core.action_rules import ActionRules, ActionStatus, UndoStatus
from tools_app.core.tool import ToolContext
from tools_app.errors import UndoRefused
from tools_app.models import ActionRecord

from .support import EFFECT, EVENTS, Replies, allow, call, error_of, expire, row

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _no_events() -> None:
    EVENTS.clear()


@action(key="order")
def pay(order: str, amount: float = 1.0) -> str:
    """Pay for an order."""
    EVENTS.append((order, amount))
    return f"paid {order}"


@action
async def note(text: str, context: ToolContext) -> str:
    """Note something."""
    EVENTS.append((text, context.idempotency_key, context.attempt))
    return text


@action(key="order")
def fragile(order: str, breaks: bool = False) -> str:
    """Fail where it is asked to."""
    EVENTS.append(order)
    if breaks:
        raise ValueError("no such order")
    return "done"


# --- runs ------------------------------------------------------------------------------------------------------------


async def test_the_second_call_with_a_key_gets_the_result_of_the_first() -> None:
    assert await call(pay, order="A-1") == "paid A-1"
    assert await call(pay, order="A-1", call_id="c2", turn_id="t2") == "paid A-1"
    assert EVENTS == [("A-1", 1.0)]


async def test_other_arguments_under_a_key_are_a_conflict_that_the_model_reads() -> None:
    await call(pay, order="A-1")
    assert error_of(await call(pay, order="A-1", amount=2)) == "ActionConflict"
    assert EVENTS == [("A-1", 1.0)]


async def test_a_default_that_is_spelled_out_is_the_same_input() -> None:
    await call(pay, order="A-1")
    assert await call(pay, order="A-1", amount=1) == "paid A-1"


async def test_without_a_key_each_call_is_an_effect_of_its_own() -> None:
    await call(note, text="tea")
    await call(note, text="tea", call_id="c2")
    assert EVENTS == [("tea", "t1:c1", 1), ("tea", "t1:c2", 1)]
    await call(note, text="tea")
    assert len(EVENTS) == 2


async def test_a_function_makes_the_key_or_leaves_it_to_the_call() -> None:
    async def of_order(given: JSONObject) -> str | None:
        return None if given["order"] == "none" else str(given["order"]).lower()

    keyed = action(name="keyed", key=of_order)(lambda_order)
    await call(keyed, order="A")
    await call(keyed, order="A", call_id="c2")
    await call(keyed, order="none")
    keys = await db(lambda: sorted(ActionRecord.objects.values_list("key", "is_explicit")))
    assert keys == [("a", True), ("t1:c1", False)]
    assert EVENTS == ["A", "none"]


def lambda_order(order: str) -> str:
    """Note an order."""
    EVENTS.append(order)
    return order


async def test_a_failure_is_a_result_and_frees_the_key() -> None:
    output = await call(fragile, order="A-1", breaks=True)
    assert output == {"error": {"name": "ValueError", "message": "no such order"}}
    assert (await row()).status == ActionStatus.FAILED
    assert await call(fragile, order="A-1") == "done"
    assert EVENTS == ["A-1", "A-1"]


async def test_an_explicit_key_runs_again_after_its_lease_under_the_same_idempotency_key() -> None:
    keyed = action(name="keyed", key="text")(note.action.function)  # type: ignore[union-attr]
    effect = replace(EFFECT, action="keyed", key="tea", input={"text": "tea"})
    assert isinstance(await db(ledger.begin_effect, effect), BegunAction)  # by a process that was lost
    assert error_of(await call(keyed, text="tea")) == "ActionPending"
    await expire()
    assert await call(keyed, text="tea", turn_id="t5") == "tea"
    assert EVENTS == [("tea", "s1:keyed:tea", 2)]


async def test_what_a_lost_process_began_without_a_key_is_reported_as_unknown() -> None:
    effect = replace(EFFECT, action="note", key="t1:c1", is_explicit=False, input={"text": "tea"})
    await db(ledger.begin_effect, effect)
    await expire()
    output = await call(note, text="tea")
    assert error_of(output) == "ActionPending"
    assert "not known" in str(output)
    assert EVENTS == []


async def test_duplicates_at_the_same_moment_share_one_run() -> None:
    gate, begun = asyncio.Event(), asyncio.Event()

    async def slow(order: str) -> str:
        """Wait for the test."""
        EVENTS.append(order)
        begun.set()
        await gate.wait()
        return f"shipped {order}"

    ship = action(key="order")(slow)
    calls = [asyncio.create_task(call(ship, order="A-1", call_id=f"c{n}")) for n in range(3)]
    await begun.wait()
    assert (
        error_of(await call(action(name="slow", key="order")(pay_like), order="A-1", call_id="x")) == "ActionConflict"
    )
    gate.set()
    assert await asyncio.gather(*calls) == ["shipped A-1"] * 3
    assert EVENTS == ["A-1"]


def pay_like(order: str, more: int = 1) -> str:
    """Have other arguments."""
    return f"{order} {more}"


async def test_who_shared_a_run_that_was_stopped_learns_that_its_end_is_unknown() -> None:
    begun = asyncio.Event()

    async def hang(order: str) -> str:
        """Never end."""
        begun.set()
        await asyncio.Event().wait()
        return order

    stuck = action(key="order")(hang)
    first = asyncio.create_task(call(stuck, order="A-1"))
    await begun.wait()
    second = asyncio.create_task(call(stuck, order="A-1", call_id="c2"))
    await asyncio.sleep(0)
    first.cancel()
    assert error_of(await second) == "ActionPending"
    assert (await row()).status == ActionStatus.PENDING


async def test_after_a_timeout_it_is_not_known_whether_an_async_action_happened() -> None:
    async def hang(order: str) -> str:
        """Never end."""
        await asyncio.Event().wait()
        return order

    slow = action(key="order", timeout_seconds=0.05)(hang)
    output = await call(slow, order="A-1")
    assert error_of(output) == "ActionTimeout"
    assert (await row()).status == ActionStatus.PENDING
    assert error_of(await call(slow, order="A-1", call_id="c2")) == "ActionPending"


async def test_a_sync_action_that_ends_after_its_timeout_is_settled_all_the_same() -> None:
    gate = threading.Event()

    def slow(order: str) -> str:
        """Take longer than allowed."""
        gate.wait(20)
        EVENTS.append(order)
        return f"late {order}"

    late = action(key="order", timeout_seconds=0.05)(slow)
    assert error_of(await call(late, order="A-1")) == "ActionTimeout"
    gate.set()
    await asyncio.wait(set(run_action._left), timeout=20)
    assert (await row()).status == ActionStatus.SETTLED
    assert await call(late, order="A-1", call_id="c2") == "late A-1"
    assert EVENTS == ["A-1"]


@pytest.mark.parametrize(("raised", "status"), [(Parked("x"), "failed"), (LeaseLost(), "pending")])
async def test_an_action_that_parks_runs_again_and_one_whose_lease_is_lost_does_not(
    raised: BaseException, status: str
) -> None:
    async def asks(order: str) -> str:
        """Wait for an answer."""
        EVENTS.append(order)
        if len(EVENTS) == 1:
            raise raised
        return "done"

    waiting = action(asks)
    runner = RunAction(scope="s1", owner_id=None, turn_id="t1", authorize=allow, replies=Replies())
    context = ToolContext(
        call_id="c1",
        tool_name="asks",
        user_id=None,
        agent="shop",
        instance_name="room",
        turn_id="t1",
        attempt=1,
        idempotency_key="t1:c1",
    )
    assert waiting.action is not None
    with pytest.raises(type(raised)):
        await runner(waiting.action, {"order": "A-1"}, context)
    assert (await row()).status == status
    again = await runner(waiting.action, {"order": "A-1"}, context)
    assert (again == "done") is (status == "failed")


async def test_a_result_that_json_cannot_carry_is_kept_as_its_text() -> None:
    def odd(order: str) -> object:
        """Return something odd."""
        return {"order": order, "of": EVENTS.append}

    output = await call(action(odd), order="A-1")
    assert "A-1" in str(output)
    assert (await row()).status == ActionStatus.SETTLED


async def test_a_long_result_is_cut_alike_for_the_model_and_for_the_ledger() -> None:
    def talk(order: str) -> str:
        """Say much."""
        return order * 30_000

    output = await call(action(talk), order="x")
    assert isinstance(output, str)
    assert 19_900 < len(output) <= 20_000
    assert (await row()).output == output


async def test_parts_of_the_reply_are_replayed_with_the_result() -> None:
    part: JSONObject = {"type": "data-card", "id": "c1:0", "data": 1}
    await call(pay, order="A-1", replies=Replies([part]))
    later = Replies()
    await call(pay, order="A-1", call_id="c2", replies=later)
    assert later.parts == [part]
    failed = Replies([part])
    await call(fragile, order="A-2", breaks=True, replies=failed)
    assert failed.parts == []


async def test_a_refusal_is_a_result_and_leaves_no_row() -> None:
    async def deny(_rules: ActionRules, _given: JSONObject) -> str | None:
        return "not today"

    runner = RunAction(scope="s1", owner_id=None, turn_id="t1", authorize=deny, replies=Replies())
    assert pay.action is not None
    context = ToolContext(
        call_id="c1",
        tool_name="pay",
        user_id=None,
        agent="shop",
        instance_name="room",
        turn_id="t1",
        attempt=1,
        idempotency_key="t1:c1",
    )
    assert await runner(pay.action, {"order": "A-1", "amount": 1.0}, context) == {
        "error": {"name": "ActionDenied", "message": "not today"}
    }
    assert not await db(ActionRecord.objects.exists)


# --- compensations ---------------------------------------------------------------------------------------------------


@compensation
async def cancel_order(undo: Undo) -> str:
    EVENTS.append(undo)
    if undo.input["order"] == "broken":
        raise ValueError("cannot be cancelled")
    return f"cancelled {undo.input['order']}"


@action(key="order", undo=cancel_order)
def order_goods(order: str) -> str:
    """Order."""
    return f"ordered {order}"


async def test_a_compensation_gets_the_effect_and_runs_once() -> None:
    await call(order_goods, order="A-1")
    assert EVENTS == []
    made = await row()
    assert await undo_effect(made.pk) == "cancelled A-1"
    [undo] = EVENTS
    assert (undo.input, undo.output, undo.idempotency_key) == (
        {"order": "A-1"},
        "ordered A-1",
        "undo:s1:order_goods:A-1",
    )
    made = await row()
    assert (made.undo_status, made.undo_output) == (UndoStatus.DONE, "cancelled A-1")
    with pytest.raises(UndoRefused):
        await undo_effect(made.pk)


async def test_a_compensation_that_failed_may_run_again_and_a_lost_one_only_when_asked_to() -> None:
    await call(order_goods, order="broken")
    made = await row()
    for _ in range(2):
        with pytest.raises(ValueError, match="cannot be cancelled"):
            await undo_effect(made.pk)
    assert (await row()).undo_status == UndoStatus.FAILED
    await db(lambda: ActionRecord.objects.update(undo_status=UndoStatus.RUNNING, input={"order": "A-1"}))
    with pytest.raises(UndoRefused):
        await undo_effect(made.pk)
    assert await undo_effect(made.pk, repeats=True) == "cancelled A-1"


async def test_what_has_no_compensation_cannot_be_undone() -> None:
    await call(pay, order="A-1")
    with pytest.raises(UndoRefused):
        await undo_effect((await row()).pk)
    await db(lambda: ActionRecord.objects.update(undo="forgotten"))
    with pytest.raises(UndoRefused):
        await undo_effect((await row()).pk)
